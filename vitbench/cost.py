"""What a model costs: parameters, multiply-adds and activations of one image, counted on the meta device."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
