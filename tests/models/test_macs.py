"""Multiply-adds of every family against a count by hand, layer by layer, of one image."""

import pytest

from vitbench import cost
from vitbench.models import MODELS, build
from vitbench.spec import ImageSpec

K = 10  # classes
IMAGES = (ImageSpec(8, 1), ImageSpec(28, 1), ImageSpec(32, 3))
PATCH = {8: 2, 28: 4, 32: 4}


def token_transformer(S: int, C: int, D: int, depth: int) -> int:
    """A block: queries, keys, values and merge, a perceptron of 4 D, and the N x N scores and mixtures."""
    P = PATCH[S]
    N = (S // P) ** 2
    return N * P * P * C * D + depth * (N * (4 * D * D + 8 * D * D) + 2 * N * N * D) + D * K


def window_fc(S: int, C: int, D: int, depth: int, window: int = 3) -> int:
    """A block: window x window vectors to one, at every place; the zeros beyond the border are multiplied, too."""
    P = PATCH[S]
    N = (S // P) ** 2
    return N * P * P * C * D + depth * N * window * window * D * D + D * K


def mixer(S: int, C: int, D: int, depth: int) -> int:
    """A block: for each channel N places to D / 2 and back, for each place D channels to 4 D and back."""
    P = PATCH[S]
    N = (S // P) ** 2
    return N * P * P * C * D + depth * (D * 2 * N * (D // 2) + N * 2 * D * 4 * D) + D * K


def convnet(S: int, C: int, W: int, per_stage: int) -> int:
    """Three stages of 3 x 3 convolutions on S, S / 2 and S / 4 pixels a side, W, 2 W and 4 W channels."""
    stages = [(S**2, W, W), ((S // 2) ** 2, W, 2 * W), ((S // 4) ** 2, 2 * W, 4 * W)]
    return S**2 * 9 * C * W + 4 * W * K + sum(places * 9 * (before * after + (per_stage - 1) * after * after)
                                             for places, before, after in stages)


def resnet(S: int, C: int, W: int, blocks: int) -> int:
    """As many convolutions as a convnet with two for each block; the shortcuts multiply nothing."""
    return convnet(S, C, W, 2 * blocks)


def convnext(S: int, C: int, W: int, blocks: int) -> int:
    """A block: 49 products a channel (depthwise 7 x 7), a perceptron of 4 times the width; 2 x 2 between stages."""
    stages = [(S**2, W), ((S // 2) ** 2, 2 * W), ((S // 4) ** 2, 4 * W)]
    between = (S // 2) ** 2 * 4 * W * 2 * W + (S // 4) ** 2 * 4 * 2 * W * 4 * W
    return S**2 * 9 * C * W + between + 4 * W * K + sum(blocks * places * (49 * width + 8 * width**2)
                                                       for places, width in stages)


def hybrid(S: int, C: int, D: int, depth: int, mlp_ratio: int) -> int:
    """3 x 3 convolutions on S, S / 2, ... pixels a side, all but the last D / 2 wide, make the tokens of a
    token_transformer; its pooling scores N tokens and mixes them."""
    N, halvings = (S // PATCH[S]) ** 2, PATCH[S].bit_length() - 1
    widths = [C, *[D // 2] * (halvings - 1), D]
    stem = sum((S // 2**i) ** 2 * 9 * widths[i] * widths[i + 1] for i in range(halvings))
    blocks = depth * (N * (4 + 2 * mlp_ratio) * D * D + 2 * N * N * D)
    return stem + blocks + 2 * N * D + D * K


def linear(S: int, C: int) -> int:
    """Every pixel to every class."""
    return S * S * C * K


def mlp(S: int, C: int, hidden: int) -> int:
    """Every pixel to every hidden unit, these to every class."""
    return S * S * C * hidden + hidden * K


BY_HAND = {
    (token_transformer, "xs"): (28, 2), (token_transformer, "s"): (64, 2), (token_transformer, "xl"): (352, 4),
    (window_fc, "xs"): (32, 2), (window_fc, "m"): (120, 3),
    (mixer, "xs"): (32, 2), (mixer, "m"): (124, 3),
    (convnet, "s"): (32, 1), (convnet, "l"): (72, 2),
    (resnet, "xs"): (8, 1), (resnet, "s"): (10, 3),
    (convnext, "xs"): (9, 1), (convnext, "l"): (52, 3),
    (hybrid, "xs"): (28, 2, 3), (hybrid, "m"): (100, 3, 4),
    (linear, None): (), (mlp, "xs"): (25,), (mlp, "s"): (128,),
}


def macs(name: str, size: str | None, image: ImageSpec, **options: object) -> int:
    return cost.count(lambda: build(name, size, options, image, K), image).macs


@pytest.mark.parametrize("image", IMAGES, ids=lambda i: f"{i.size}x{i.channels}")
@pytest.mark.parametrize(("by_hand", "size"), BY_HAND, ids=lambda of: getattr(of, "__name__", of))
def test_macs_agree_with_a_count_by_hand(by_hand, size: str | None, image: ImageSpec) -> None:
    shape = BY_HAND[by_hand, size]
    assert macs(by_hand.__name__, size, image) == by_hand(image.size, image.channels, *shape)


def test_every_family_is_counted_by_hand() -> None:
    assert {by_hand.__name__ for by_hand, _ in BY_HAND} == set(MODELS.shipped()) - {"timm"}  # its ViT: test_timm


def test_a_window_over_the_whole_image_costs_what_it_sees() -> None:
    assert macs("window_fc", "s", ImageSpec(28, 1), window=13) == window_fc(28, 1, 76, 2, window=13)
