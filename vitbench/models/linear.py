"""Control: logistic regression on pixels. What it reaches needs neither attention nor convolution."""

from typing import TYPE_CHECKING

from vitbench.models import MODELS, ModelMeta
from vitbench.spec import ImageSpec

if TYPE_CHECKING:
    from torch import nn


@MODELS.add("linear", ModelMeta("control"))
def linear(image: ImageSpec, num_classes: int) -> "nn.Module":
    """One linear map from all pixels to the classes."""
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(image.channels * image.size**2, num_classes))
