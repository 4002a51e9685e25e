"""Control: one hidden layer on pixels, with as many parameters as the other families but no idea of an image."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from vitbench.models import MODELS, ModelMeta
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """Options of `mlp`; a size sets it."""

    hidden: Annotated[int, Field(ge=1, le=65536)] = 128


SIZES = {size: {"hidden": hidden} for size, hidden in zip(("xs", "s", "m", "l", "xl"), (25, 128, 512, 2048, 7680),
                                                          strict=True)}


@MODELS.add("mlp", ModelMeta("control", options=Options, sizes=SIZES))
def mlp(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """Perceptron with one hidden ReLU layer; sized at 28 x 28 x 1."""
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(image.channels * image.size**2, options.hidden), nn.ReLU(),
                         nn.Linear(options.hidden, num_classes))
