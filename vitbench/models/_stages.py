"""What the cards of models made of stages (vitbench.nn.stages) have in common."""

from vitbench.models import Card
from vitbench.spec import ImageSpec


def card(_options: object, image: ImageSpec) -> Card:
    """Two of the three stages halve the image, rounded up."""
    return {"stem": "3x3 convolution", "stride": 1, "places_at_the_end": (-(-image.size // 4)) ** 2,
            "normalisation": "BatchNorm"}
