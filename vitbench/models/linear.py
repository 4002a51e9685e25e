"""Control: logistic regression on pixels. What it reaches needs neither attention nor convolution."""

from typing import TYPE_CHECKING

from vitbench.models import MODELS, Card, ModelMeta
from vitbench.spec import ImageSpec

if TYPE_CHECKING:
    from torch import nn


def _card(_options: object, _image: ImageSpec) -> Card:
    return {"sizes": "one: pixels and classes leave nothing to choose"}


@MODELS.add("linear", ModelMeta("control", card=_card))
def linear(image: ImageSpec, num_classes: int) -> "nn.Module":
    """One linear map from all pixels to the classes."""
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(image.channels * image.size**2, num_classes))
