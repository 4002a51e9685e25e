"""Control: one hidden layer on pixels, with as many parameters as the other families but no idea of an image."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from vitbench.models import MODELS, ModelMeta
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """Options of `mlp`; a size sets it."""

    hidden: Annotated[int, Field(ge=1, le=65536)] = 128


def _card(options: Options, image: ImageSpec) -> dict[str, Any]:  # noqa: ARG001 - the contract's two arguments
    return {"stem": "none", "normalisation": "none", "regularisers": "weight decay"}


SIZES = {"xs": {"hidden": 25}, "s": {"hidden": 128}, "m": {"hidden": 512}, "l": {"hidden": 2048}, "xl": {"hidden": 7680}}


@MODELS.add("mlp", ModelMeta("control", options=Options, sizes=SIZES, card=_card))
def mlp(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """Perceptron with one hidden ReLU layer; sized at 28 x 28 x 1."""
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(image.channels * image.size**2, options.hidden), nn.ReLU(),
                         nn.Linear(options.hidden, num_classes))
