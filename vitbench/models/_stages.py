"""What the cards and options of models made of stages (vitbench.nn.stages) have in common."""

from typing import Annotated, Literal, Protocol

from pydantic import Field

from vitbench.models import Card
from vitbench.spec import ImageSpec

Normalisation = Annotated[Literal["batch", "layer", "group"],
                          Field(description="layer: over channels and places of an image; group: by groups of them")]
NAMES = {"batch": "BatchNorm", "layer": "LayerNorm", "group": "GroupNorm, gcd(channels, 8) groups"}


class Staged(Protocol):
    """Options of such a model."""

    @property
    def normalisation(self) -> Normalisation:
        """Of every convolution."""


def card(options: Staged, image: ImageSpec) -> Card:
    """Two of the three stages halve the image, rounded up."""
    return {"stem": "3x3 convolution", "stride": 1, "places_at_the_end": (-(-image.size // 4)) ** 2,
            "normalisation": NAMES[options.normalisation]}
