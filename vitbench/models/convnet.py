"""A plain CNN with a stem made for small images."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from vitbench.models import MODELS, ModelMeta
from vitbench.models._stages import Normalisation, card
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """Options of `convnet`; a size sets width and depth."""

    width: Annotated[int, Field(ge=1, le=4096)] = 32
    convs_per_stage: Annotated[int, Field(ge=1, le=16)] = 1
    normalisation: Normalisation = "batch"


SIZES = {
    "xs": {"width": 14, "convs_per_stage": 1},
    "s": {"width": 32, "convs_per_stage": 1},
    "m": {"width": 64, "convs_per_stage": 1},
    "l": {"width": 72, "convs_per_stage": 2},
    "xl": {"width": 144, "convs_per_stage": 2},
}


@MODELS.add("convnet", ModelMeta("convolution", options=Options, sizes=SIZES, card=card,
                                 imports=("vitbench.nn.convnet",)))
def convnet(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """Convolutional network; within 15 % of `token_transformer`'s parameters at 28 x 28 x 1, size by size."""
    from vitbench.nn import convnet

    return convnet.convnet(**options.model_dump(), channels=image.channels, num_classes=num_classes)
