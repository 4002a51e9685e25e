"""The CIFAR-style ResNet family: ResNet-20 is width 16 with 3 blocks a stage."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from vitbench.models import MODELS, ModelMeta
from vitbench.models._stages import Normalisation, card
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """Options of `resnet`; a size sets width and depth."""

    width: Annotated[int, Field(ge=1, le=4096)] = 16
    blocks_per_stage: Annotated[int, Field(ge=1, le=200)] = 3
    normalisation: Normalisation = "batch"


# ResNet-20 but for xs, where its fewest channels would be 4: a ResNet-8.
SIZES = {
    "xs": {"width": 8, "blocks_per_stage": 1},
    "s": {"width": 10, "blocks_per_stage": 3},
    "m": {"width": 20, "blocks_per_stage": 3},
    "l": {"width": 38, "blocks_per_stage": 3},
    "xl": {"width": 76, "blocks_per_stage": 3},
}


@MODELS.add("resnet", ModelMeta("convolution", options=Options, sizes=SIZES, card=card,
                                imports=("vitbench.nn.resnet",)))
def resnet(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """Residual network; within 15 % of `token_transformer`'s parameters at 28 x 28 x 1, size by size."""
    from vitbench.nn import resnet

    return resnet.resnet(**options.model_dump(), channels=image.channels, num_classes=num_classes)
