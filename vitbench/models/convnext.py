"""timm's ConvNeXt, a CNN of depthwise 7 x 7 convolutions, with a stem made for small images."""

from importlib import metadata
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from vitbench.models import MODELS, Card, ModelMeta
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """Options of `convnext`; a size sets width and depth."""

    width: Annotated[int, Field(ge=1, le=1024)] = 16
    blocks_per_stage: Annotated[int, Field(ge=1, le=100)] = 2
    layer_scale: Annotated[float, Field(gt=0, le=1, description="what branches begin multiplied by")] = 1e-6


def _card(_options: Options, image: ImageSpec) -> Card:
    return {"stem": "3x3 convolution", "stride": 1, "places_at_the_end": (image.size // 4) ** 2,
            "normalisation": "LayerNorm", "timm": metadata.version("timm")}


SIZES = {
    "xs": {"width": 9, "blocks_per_stage": 1},
    "s": {"width": 16, "blocks_per_stage": 2},
    "m": {"width": 32, "blocks_per_stage": 2},
    "l": {"width": 52, "blocks_per_stage": 3},
    "xl": {"width": 104, "blocks_per_stage": 3},
}


@MODELS.add("convnext", ModelMeta("convolution", options=Options, sizes=SIZES, card=_card,
                                  imports=("vitbench.nn.convnext",)))
def convnext(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """ConvNeXt; within 15 % of `token_transformer`'s parameters at 28 x 28 x 1, size by size."""
    from vitbench.nn import convnext

    model: nn.Module = convnext.convnext(**options.model_dump(), channels=image.channels, num_classes=num_classes)
    return model
