"""Control: timm's MLP-Mixer, which mixes places by a fixed map where attention weighs them by what they hold."""

from importlib import metadata
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from vitbench.models import MODELS, Card, ModelMeta
from vitbench.models._patches import PatchSize, card, check, patch_size
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """Options of `mixer`; a size sets width and depth."""

    patch_size: PatchSize = None
    embed_dim: Annotated[int, Field(ge=2, le=4096)] = 76
    depth: Annotated[int, Field(ge=1, le=64)] = 2


def _card(options: Options, image: ImageSpec) -> Card:
    return {**card(options, image), "timm": metadata.version("timm")}


SIZES = {
    "xs": {"embed_dim": 32, "depth": 2},
    "s": {"embed_dim": 76, "depth": 2},
    "m": {"embed_dim": 124, "depth": 3},
    "l": {"embed_dim": 212, "depth": 4},
    "xl": {"embed_dim": 428, "depth": 4},
}


@MODELS.add("mixer", ModelMeta("control", options=Options, sizes=SIZES, check=check, card=_card,
                               imports=("vitbench.nn.mixer",)))
def mixer(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """MLP-Mixer; within 15 % of `token_transformer`'s parameters at 28 x 28 x 1, size by size."""
    from vitbench.nn import mixer

    model: nn.Module = mixer.mixer(**{**options.model_dump(), "patch_size": patch_size(options, image)},
                                   channels=image.channels, image_size=image.size, num_classes=num_classes)
    return model
