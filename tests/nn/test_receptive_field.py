"""What a place of a feature map sees, against kernels put there by hand and gradients on a large image."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from vitbench.models import build
from vitbench.nn.grid import CannotTake
from vitbench.nn.receptive_field import last_features, receptive_field, seen
from vitbench.spec import ImageSpec


class Features(nn.Module):
    """A network of one feature map."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.features = nn.Sequential(*layers)


class Branches(nn.Module):
    """Two ways that do not reach equally far, one of them by padding and taking every second place."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv2d(2, 2, 3, stride=2, padding=3, dilation=3)
        self.behind = nn.Conv2d(2, 2, (3, 5), padding=(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        """To half the size."""
        shifted = F.avg_pool2d(F.pad(x, (2, 0, 0, 1)), 2, stride=1)[:, :, ::2, 1::2]
        size = min(shifted.shape[2], x.shape[2] // 2)
        return torch.relu(self.behind(F.max_pool2d(self.wide(x), 3, stride=1, padding=1))[:, :, :size, :size]
                          + shifted[:, :, :size, :size])


def images(count: int, side: int, channels: int = 1) -> Tensor:
    return torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(0)) + 0.1


def test_of_one_convolution_the_gradient_is_its_kernel() -> None:
    convolution = nn.Conv2d(1, 1, 3, padding=1, bias=False)
    kernel = torch.tensor([[0.1, -0.2, 0.3], [0.4, 0.5, -0.6], [-0.7, 0.8, 0.9]])
    convolution.weight.data[:] = kernel
    found = receptive_field(Features(convolution), images(3, 6))
    expected = torch.zeros(6, 6)
    expected[2:5, 2:5] = kernel.abs()  # around row and column 3 of 6
    assert torch.allclose(found.gradient_HW, expected.double())
    assert (found.rows, found.columns) == ((2, 4), (2, 4))


def test_channels_of_the_map_are_summed_before_and_those_of_the_image_after() -> None:
    convolution = nn.Conv2d(2, 2, 1, bias=False)
    convolution.weight.data[:] = torch.tensor([[1.0, 2.0], [3.0, -5.0]])[:, :, None, None]
    found = receptive_field(Features(convolution), images(1, 4, channels=2))
    assert found.gradient_HW[2, 2] == pytest.approx(abs(1 + 3) + abs(2 - 5))


def test_the_gradient_is_the_mean_over_images_however_they_are_batched() -> None:
    model = Features(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))
    alone = torch.stack([receptive_field(model, image[None]).gradient_HW for image in images(5, 8)])
    assert torch.allclose(receptive_field(model, images(5, 8), batch=2).gradient_HW, alone.mean(0))


def by_formula(layers: list[tuple[int, int]]) -> int:
    """Pixels a side: each layer (kernel, stride) adds kernel - 1 steps of the strides before it."""
    side, jump = 1, 1
    for kernel, stride in layers:
        side, jump = side + (kernel - 1) * jump, jump * stride
    return side


@pytest.mark.parametrize(("name", "size", "layers"), [
    ("convnet", "s", [(3, 1), (3, 1), (3, 2), (3, 2)]),
    ("convnet", "l", [(3, 1), *[(3, 1)] * 2, (3, 2), (3, 1), (3, 2), (3, 1)]),
    ("resnet", "xs", None)])
def test_the_theoretical_field_of_our_networks_is_that_of_the_formula(
        name: str, size: str, layers: list[tuple[int, int]] | None) -> None:
    model = build(name, size, {}, ImageSpec(28, 1), 10).eval()
    strides = [(m.kernel_size[0], m.stride[0]) for m in model.modules() if isinstance(m, nn.Conv2d)]  # in their order
    found = receptive_field(model, images(1, 28))
    assert found.rows == found.columns
    assert found.rows[1] - found.rows[0] + 1 == by_formula(layers or strides)
    assert layers in (None, strides)


def test_convnet_s_sees_11_pixels() -> None:
    """3, then 5, then 7 of stride 2, then two steps of 2 on each side."""
    found = receptive_field(build("convnet", "s", {}, ImageSpec(28, 1), 10).eval(), images(1, 28))
    assert (found.rows, found.columns) == ((7, 17), (7, 17))  # the place is row 3 of 7, which lies at pixel 12


@pytest.mark.parametrize("made", [
    lambda: Features(nn.Conv2d(2, 2, 3), Branches()),
    lambda: Features(nn.Conv2d(2, 3, (1, 7), stride=(2, 3), padding=(0, 5))),
    lambda: Features(nn.MaxPool2d(2), nn.Conv2d(2, 2, 4, padding=1), nn.AvgPool2d(3, 2, padding=1))])
def test_what_can_be_reached_is_where_a_gradient_can_arrive(made: Callable[[], nn.Module]) -> None:
    """With positive weights and images nothing cancels and no ReLU is closed."""
    model = made()
    for parameter in model.parameters():
        parameter.data.abs_()
    # A pool passes to its largest alone, which falls to every pixel in one of many images.
    large = images(200, 48, channels=2).requires_grad_()
    features = last_features(model, large)
    row, column = (side // 2 for side in features.shape[2:])
    found = [seen(features, large, place, axis) for axis, place in enumerate((row, column))]
    (gradient,) = torch.autograd.grad(features[:, :, row, column].sum(), large)
    reached_HW = gradient.abs().sum(dim=(0, 1)) > 0
    for axis, interval in enumerate(found):
        places = reached_HW.any(dim=1 - axis).nonzero().flatten()
        assert interval == (int(places[0]), int(places[-1]))


def test_it_leaves_the_model_as_it_was_and_needs_no_gradients_on() -> None:
    model = Features(nn.Conv2d(1, 2, 3, padding=1))
    with torch.no_grad():
        receptive_field(model, images(2, 6))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_without_a_feature_map_is_refused() -> None:
    with pytest.raises(CannotTake, match=r"Linear has no last feature map to look at: .* `features`"):
        receptive_field(nn.Linear(2, 2), images(1, 4))
    with pytest.raises(CannotTake, match="Features has no last feature map"):
        receptive_field(Features(nn.Flatten()), images(1, 4))
