"""What a model costs: parameters, multiply-adds, activations and memory of one image, counted without data."""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from vitbench.spec import ImageSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn


@dataclass(frozen=True)
class ModelCost:
    """Counts for one image. `macs` holds every matrix product of the forward pass, those of attention too."""

    params: int
    macs: int
    activations: int


@dataclass(frozen=True)
class Footprint(ModelCost):
    """Counts for one image, and the bytes in float32 that it holds at once beside the weights: in a training step with
    its backward pass, and in evaluation."""

    training_bytes: int
    evaluation_bytes: int


def count(build: "Callable[[], nn.Module]", image: ImageSpec) -> ModelCost:
    """Counts of the model that `build` makes; no memory is taken and no arithmetic done."""
    import torch
    from torch import nn
    from torch.utils.flop_counter import FlopCounterMode

    activations = 0

    def add_output(module: nn.Module, _: object, output: "Tensor") -> None:
        nonlocal activations
        if not any(True for _ in module.children()) and isinstance(output, torch.Tensor):
            activations += output.numel()

    # On the CPU fused attention would count as 0; on the meta device it is counted.
    with torch.device("meta"):
        # Nothing is differentiated here, and the counter stumbles over parameters that a model passes on as they are.
        model = build().eval().requires_grad_(False)
        images = torch.empty(1, image.channels, image.size, image.size)
    for module in model.modules():
        module.register_forward_hook(add_output)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(images)
    params = sum(p.numel() for p in model.parameters())
    return ModelCost(params, counter.get_total_flops() // 2, activations)


BATCH = 1024  # so many that what a batch holds once, such as the weights' gradients, adds nothing to each image


def footprint(model: "nn.Module", image: ImageSpec) -> Footprint:
    """Counts of a model that is on the meta device, with its memory; the model is of no use afterwards.

    Every tensor is seen, also those inside a module, such as the scores of attention that is written out or one-hot
    codes, and so is that fused attention on a CPU keeps no scores. What kernels hold inside and what an allocator
    wastes comes on top.
    """
    trained = [p.requires_grad for p in model.parameters()]
    counted = count(lambda: model, image)
    for parameter, requires_grad in zip(model.parameters(), trained, strict=True):
        parameter.requires_grad_(requires_grad)
    try:
        training, evaluation = _held(model, image)
    except Exception:  # it keeps tensors that are neither parameters nor buffers, or asks what a number is
        # At the very least half of what the layers put out: of a normalisation and the activation after it one stays.
        training, evaluation = 2 * counted.activations, 0
    return Footprint(**asdict(counted), training_bytes=training, evaluation_bytes=evaluation)


def _held(model: "nn.Module", image: ImageSpec) -> tuple[int, int]:
    import torch
    import torch.nn.functional as F  # noqa: N812 - torch's own name for it
    from torch._subclasses.fake_tensor import FakeTensorMode

    # Tensors that pretend to be on a CPU and choose its kernels: on the meta device all attention is written out.
    with FakeTensorMode(allow_non_fake_inputs=True):
        state = {name: torch.empty_like(tensor, device="cpu").requires_grad_(tensor.requires_grad)
                 for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
        images = torch.empty(BATCH, image.channels, image.size, image.size)
        with _most_bytes(state.values()) as training, torch.enable_grad():
            logits = torch.func.functional_call(model.train(), state, (images,))
            F.cross_entropy(logits, torch.zeros(BATCH, dtype=torch.long)).backward()
        with _most_bytes(state.values()) as evaluation, torch.inference_mode():
            torch.func.functional_call(model.eval(), state, (images,))
    return training[0] // BATCH, evaluation[0] // BATCH


@contextmanager
def _most_bytes(beside: "Iterable[Tensor]") -> Iterator[list[int]]:
    """Within, the tensors that come and go are counted, those `beside` left out; afterwards the list holds the most
    bytes at any time."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    held, most, known = 0, [0], weakref.WeakSet(tensor.untyped_storage() for tensor in beside)

    def free(size: int) -> None:
        nonlocal held
        held -= size

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal held
            output = func(*args, **(kwargs or {}))
            for tensor in tree_leaves(output):
                if isinstance(tensor, torch.Tensor) and (storage := tensor.untyped_storage()) not in known:
                    known.add(storage)
                    held += storage.nbytes()
                    most[0] = max(most[0], held)
                    weakref.finalize(storage, free, storage.nbytes())
            return output

    with Counting():  # type: ignore[no-untyped-call]
        yield most
