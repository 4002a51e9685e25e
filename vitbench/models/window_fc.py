"""Control: each vector with its neighbours through one fully connected layer; what attention does at less cost."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from vitbench.models import MODELS, Card, ModelError, ModelMeta
from vitbench.models._patches import (
    PatchSize,
    card,
    check,
    nearest_window,
    patch_size,
    tokens_a_side,
    whole_image,
)
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """Options of `window_fc`; a size sets width and depth, for a window of 3."""

    patch_size: PatchSize = None
    embed_dim: Annotated[int, Field(ge=1, le=4096)] = 76
    depth: Annotated[int, Field(ge=1, le=64)] = 2
    window: Annotated[int, Field(ge=1, le=1023, description="neighbours a side, odd; the whole image at 2 G - 1 "
                                                            "for G tokens a side")] = 3


def _check(options: Options, image: ImageSpec) -> None:
    check(options, image)
    most = whole_image(tokens_a_side(options, image))
    fit = nearest_window(options.window, most)
    if fit != options.window:
        raise ModelError(f"window: should be odd, from 1 to {most}, where every place sees the whole image of "
                         f"{tokens_a_side(options, image)} tokens a side; found {options.window}. The nearest is {fit}")


def _layer_parameters(embed_dim: int, window: int) -> int:
    return embed_dim * (window**2 * embed_dim + 1)


def _card(options: Options, image: ImageSpec) -> Card:
    """With the parameters of one layer as its window grows, beside those of an attention layer: 4 maps of one vector,
    however far it sees."""
    most, width = whole_image(tokens_a_side(options, image)), options.embed_dim
    windows = sorted({w for w in (1, 3, 7, 15, 31, 63, 127) if w < most} | {options.window, most})
    return {**card(options, image), "positions": "none", "window_of_the_whole_image": most,
            **{f"parameters_of_a_layer_with_window_{w}": _layer_parameters(width, w) for w in windows},
            "parameters_of_an_attention_layer": 4 * _layer_parameters(width, 1)}


SIZES = {
    "xs": {"embed_dim": 32, "depth": 2},
    "s": {"embed_dim": 76, "depth": 2},
    "m": {"embed_dim": 120, "depth": 3},
    "l": {"embed_dim": 204, "depth": 4},
    "xl": {"embed_dim": 408, "depth": 4},
}


@MODELS.add("window_fc", ModelMeta("control", options=Options, sizes=SIZES, check=_check, card=_card,
                                   imports=("vitbench.nn.window_fc",)))
def window_fc(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """Windows through a layer; at a window of 3 within 15 % of `token_transformer`'s parameters at 28 x 28 x 1."""
    from vitbench.nn.window_fc import WindowFC

    return WindowFC(**{**options.model_dump(), "patch_size": patch_size(options, image)}, channels=image.channels,
                    num_classes=num_classes)
