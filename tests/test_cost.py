"""The memory of an image, counted without data, against sums by hand and against tensors that are there."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from vitbench import cost
from vitbench.cost import Footprint
from vitbench.models import build, checked_footprint
from vitbench.spec import ImageSpec

IMAGE = ImageSpec(8, 1)
N, K, CODES = 64, 4, 256


class Mixing(nn.Module):
    """Pixels as 64 tokens of width 4, mixed by `mix`."""

    def __init__(self, mix: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.mix, self.embed, self.head = mix, nn.Linear(1, K), nn.Linear(K, 10)

    def forward(self, x_BCSS: Tensor) -> Tensor:
        return self.head(self.mix(self.embed(x_BCSS.flatten(2).mT)[:, None]).mean(dim=(1, 2)))


def written_out(x: Tensor) -> Tensor:
    return torch.softmax(x @ x.mT, dim=-1) @ x


def fused(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x)


class OneHot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(N * CODES, 10)

    def forward(self, x_BCSS: Tensor) -> Tensor:
        return self.head(F.one_hot(x_BCSS.flatten(1).long(), CODES).float().flatten(1))


class OfItsOwn(nn.Module):
    """Keeps a tensor that is neither parameter nor buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.scale = nn.Linear(N, 10), torch.ones(10)

    def forward(self, x_BCSS: Tensor) -> Tensor:
        return self.head(x_BCSS.flatten(1)) * self.scale


def footprint(make: Callable[[], nn.Module]) -> Footprint:
    with torch.device("meta"):
        model = make()
    return cost.footprint(model, IMAGE)


def kept_bytes(model: nn.Module, batch: int) -> float:
    """Bytes an image that autograd keeps for the backward pass of a model on the CPU, weights left out."""
    kept: dict[int, int] = {}
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    images = torch.randn(batch, 1, IMAGE.size, IMAGE.size)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        F.cross_entropy(model.train()(images), torch.zeros(batch, dtype=torch.long))
    return sum(kept.values()) / batch


def test_attention_that_is_written_out_holds_its_scores_and_its_weights_and_fused_attention_neither() -> None:
    square, tokens = 4 * N * N, 4 * N * K
    out, one = footprint(lambda: Mixing(written_out)), footprint(lambda: Mixing(fused))
    assert 2 * square <= out.evaluation_bytes <= 2 * square + 3 * tokens  # scores and softmax, x and its copies
    # Weights are kept, and so are their gradient and the scores' on the way back.
    assert 3 * square <= out.training_bytes <= 3 * square + 8 * tokens
    assert one.training_bytes < square / 2
    assert one.evaluation_bytes < square / 2


def test_a_mask_that_is_trained_is_seen_to_write_attention_out() -> None:
    # torch's fused attention on a CPU has no gradient for its mask; nobody tells but the kernel that is taken.
    class Biased(Mixing):
        def __init__(self) -> None:
            super().__init__(lambda x: F.scaled_dot_product_attention(x, x, x, self.bias_NN))
            self.bias_NN = nn.Parameter(torch.zeros(N, N))

    assert footprint(Biased).training_bytes > 2 * 4 * N * N
    assert footprint(Biased).evaluation_bytes < 4 * N * N


def test_one_hot_codes_are_seen_inside_a_module() -> None:
    assert footprint(OneHot).evaluation_bytes == 4 * N + (8 + 4) * N * CODES  # images, whole numbers, float32


@pytest.mark.parametrize(("name", "options"), [
    ("token_transformer", {}), ("token_transformer", {"tokens": "pixel", "normaliser": "relu"}), ("convnet", {}),
    ("resnet", {}),
])
def test_no_less_is_counted_than_autograd_keeps_of_images_that_are_there(name: str, options: dict[str, str]) -> None:
    found = checked_footprint(name, "s", options, IMAGE, 10)
    kept = kept_bytes(build(name, "s", options, IMAGE, 10), batch=256)
    assert 0.95 * kept <= found.training_bytes <= 1.7 * kept  # resnet frees inputs of ReLU in place: .98


def test_weights_are_no_part_of_an_image() -> None:
    found = footprint(lambda: nn.Sequential(nn.Flatten(), nn.Linear(N, 10_000), nn.Linear(10_000, 10)))
    assert found.params > 700_000
    assert found.training_bytes < 5 * 4 * 10_000 + 4 * found.params / 500


def test_the_counts_are_those_that_records_hold() -> None:
    found = checked_footprint("token_transformer", "s", {}, IMAGE, 10)
    counted = cost.count(lambda: build("token_transformer", "s", {}, IMAGE, 10), IMAGE)
    assert (found.params, found.macs, found.activations) == (counted.params, counted.macs, counted.activations)


def test_a_model_that_cannot_be_followed_counts_half_of_its_outputs() -> None:
    found = footprint(OfItsOwn)
    assert (found.training_bytes, found.evaluation_bytes) == (4 * 10 // 2, 0)


def test_frozen_weights_need_no_gradient() -> None:
    def frozen() -> nn.Module:
        model = Mixing(written_out)
        model.embed.requires_grad_(False)
        return model

    assert footprint(frozen).training_bytes < 3 * 4 * N * N  # nothing flows back through the scores
