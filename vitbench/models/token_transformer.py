"""Self-attention on pixels or patches as a sequence of vectors."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from vitbench.models import MODELS, Card, ModelError, ModelMeta, check_patch_size, default_patch_size
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """Options of `token_transformer`; a size sets width, depth and heads."""

    patch_size: Annotated[int, Field(ge=1, le=64)] | None = None  # None: 16 tokens or more, see `default_patch_size`
    embed_dim: Annotated[int, Field(ge=1, le=4096)] = 64
    depth: Annotated[int, Field(ge=1, le=64)] = 2
    num_heads: Annotated[int, Field(ge=1, le=256)] = 4
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 4.0
    positions: Literal["learned", "sinusoidal"] = "learned"


def patch_size(options: Options, image: ImageSpec) -> int:
    """The chosen patch size, or the default at this image size."""
    return options.patch_size or default_patch_size(image)


def _check(options: Options, image: ImageSpec) -> None:
    check_patch_size(patch_size(options, image), image)
    if options.embed_dim % options.num_heads:
        heads = [h for h in range(1, options.embed_dim + 1) if options.embed_dim % h == 0]
        nearest = min(heads, key=lambda h: abs(h - options.num_heads))
        raise ModelError(f"num_heads: should divide embed_dim {options.embed_dim}; found {options.num_heads}. "
                         f"The nearest that does is {nearest}")


def _card(options: Options, image: ImageSpec) -> Card:
    patch = patch_size(options, image)
    return {"stem": "none", "patch": patch, "tokens": (image.size // patch) ** 2, "normalisation": "LayerNorm",
            "positions": options.positions}


SIZES = {
    "xs": {"embed_dim": 28, "depth": 2, "num_heads": 2},
    "s": {"embed_dim": 64, "depth": 2, "num_heads": 4},
    "m": {"embed_dim": 104, "depth": 3, "num_heads": 4},
    "l": {"embed_dim": 176, "depth": 4, "num_heads": 4},
    "xl": {"embed_dim": 352, "depth": 4, "num_heads": 8},
}


@MODELS.add("token_transformer", ModelMeta("attention", options=Options, sizes=SIZES, check=_check, card=_card,
                                           imports=("vitbench.nn.token_transformer",)))
def token_transformer(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """Token transformer for `image`; about 20 k, 100 k, 400 k, 1.6 M, 6 M parameters at 28 x 28 x 1."""
    from vitbench.nn.token_transformer import TokenTransformer

    return TokenTransformer(**{**options.model_dump(), "patch_size": patch_size(options, image)},
                            channels=image.channels, image_size=image.size, num_classes=num_classes)
