"""A convolution computed by attention, against torch's own and against sums written out."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from vitbench.nn.attention_as_convolution import AttentionAsConvolution, OtherConvolution


def made(kernel: Any, channels: tuple[int, int] = (3, 4), **values: Any) -> nn.Conv2d:
    torch.manual_seed(0)
    given = {"padding": (kernel // 2 if isinstance(kernel, int) else tuple(k // 2 for k in kernel)), **values}
    return nn.Conv2d(*channels, kernel, **given).double()


def images(height: int = 6, width: int = 9) -> torch.Tensor:
    return torch.randn(2, 3, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kernel", [1, 3, 5, 7, (1, 3), (5, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_the_map_is_that_of_the_convolution_borders_included(kernel: Any, bias: bool) -> None:
    convolution = made(kernel, bias=bias)
    layer = AttentionAsConvolution(convolution)
    heads = kernel**2 if isinstance(kernel, int) else kernel[0] * kernel[1]
    assert len(layer.query_H3) == heads
    with torch.no_grad():
        assert (layer(images()) - convolution(images())).abs().max() < 1e-13


def test_an_image_smaller_than_the_kernel_is_all_border() -> None:
    convolution = made(7)
    with torch.no_grad():
        assert (AttentionAsConvolution(convolution)(images(2, 1)) - convolution(images(2, 1))).abs().max() < 1e-13


def test_each_head_looks_at_its_own_offset_alone() -> None:
    weight_HNM = AttentionAsConvolution(made(3)).weights(4, 5).numpy()
    assert weight_HNM.shape == (9, 20, 42)
    for head, (down, right) in enumerate((y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)):
        for place, (row, column) in enumerate((y, x) for y in range(4) for x in range(5)):
            expected = np.zeros((6, 7))  # the image with its border
            expected[1 + row + down, 1 + column + right] = 1
            assert np.abs(weight_HNM[head, place] - expected.ravel()).max() < 1e-20


def test_weights_are_softmax_of_minus_sharpness_times_squared_distance_to_the_heads_offset() -> None:
    sharpness, head, (down, right) = 0.7, 5, (0, 1)
    weight_HNM = AttentionAsConvolution(made(3), sharpness).weights(3, 3).numpy()
    for place, (row, column) in enumerate((y, x) for y in range(3) for x in range(3)):
        score = [-sharpness * ((y - row - down)**2 + (x - column - right)**2)
                 for y in range(-1, 4) for x in range(-1, 4)]
        expected = np.exp(score) / np.exp(score).sum()
        assert weight_HNM[head, place] == pytest.approx(expected, abs=1e-15)


def test_soft_positions_blur_it() -> None:
    convolution = made(3)
    with torch.no_grad():
        assert (AttentionAsConvolution(convolution, 2.0)(images()) - convolution(images())).abs().max() > 0.1


@pytest.mark.parametrize(("kernel", "values", "message"), [
    (2, {}, r"kernel \(2, 2\); it should be odd"), (3, {"stride": 2}, r"stride \(2, 2\); it should be 1"),
    (3, {"padding": 0}, r"padding \(0, 0\); it should be \(1, 1\)"), (3, {"dilation": 2}, "dilation"),
    (3, {"padding_mode": "circular"}, "padding_mode circular; it should be 'zeros'"),
    (3, {"channels": (3, 3), "groups": 3}, "groups 3; it should be 1"),
    (4, {"stride": 3}, "kernel .* and stride")])
def test_another_convolution_is_refused_with_what_it_has(kernel: int, values: dict[str, Any], message: str) -> None:
    with pytest.raises(OtherConvolution, match=message):
        AttentionAsConvolution(made(kernel, **values))


def test_padding_same_is_zero_padding() -> None:
    convolution = made(3, padding="same")
    with torch.no_grad():
        assert (AttentionAsConvolution(convolution)(images()) - convolution(images())).abs().max() < 1e-13
