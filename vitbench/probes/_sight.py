"""What is seen of a run's model: how its attention is spread over pairs of places, or what a convolution sees."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vitbench.grid import Run
from vitbench.probes import Look, ProbeError, Trained
from vitbench.probes._spread import Floats, Spread, spreads

if TYPE_CHECKING:
    from vitbench.nn.receptive_field import Interval


@dataclass(frozen=True)
class Gradient:
    """Of the place in the middle of a convolutional network's last feature map: how its gradient is spread over the
    image, shares of H x W pixels that sum to 1 (all 0 where nothing passes), and the pixels that can reach it, those
    outside of the image, which is padded, too."""

    share_HW: Floats
    rows: "Interval"
    columns: "Interval"

    @property
    def side(self) -> int:
        """Of the theoretical receptive field, in pixels; the larger where sides differ."""
        return max(last - first + 1 for first, last in (self.rows, self.columns))

    @property
    def distance_HW(self) -> Floats:
        """From the middle of the receptive field to each pixel's centre, in pixels."""
        return np.asarray(np.linalg.norm(self._offsets_HW2, axis=2))

    def within(self, half_side: float) -> Floats:
        """1 for each pixel whose centre lies in the square of 2 half_side pixels around the middle, H x W."""
        return np.asarray(np.abs(self._offsets_HW2).max(axis=2) <= half_side, dtype=np.float64)

    def mean(self, of_HW: Floats) -> float | None:
        """The mean of a quantity of pixels under the gradient; None where nothing passes."""
        return float((self.share_HW * of_HW).sum()) if self.share_HW.any() else None

    @property
    def _offsets_HW2(self) -> Floats:
        middle = [sum(interval) / 2 for interval in (self.rows, self.columns)]
        return np.asarray(np.moveaxis(np.indices(self.share_HW.shape), 0, 2) - np.array(middle))


def sight(trained: Trained, images: int) -> list[Spread] | Gradient | None:
    """On so many test images: the spread of each attention layer, or the gradient of a convolutional network; None of
    a model that has neither attention of ours nor a last feature map."""
    from vitbench.nn.grid import CannotTake
    from vitbench.nn.looking import attention_layers
    from vitbench.nn.receptive_field import receptive_field

    model, (images_BCHW, _) = trained.module.model, trained.images("test", images)
    if attention_layers(model):
        return spreads(model, images_BCHW)
    if trained.record.family != "convolution":
        return None
    try:
        found = receptive_field(model, images_BCHW)
    except CannotTake:
        return None
    total = float(found.gradient_HW.sum())
    return Gradient(found.gradient_HW.numpy() / (total or 1), found.rows, found.columns)


def can_be_seen(look: Look) -> tuple[list[Run], str]:
    """The runs whose models can be looked into, and a sentence about the others. Raises ProbeError where none can."""
    first = {run.label: run for run in reversed(look.runs)}
    unseen = sorted(label for label, run in first.items() if sight(look.untrained(run), 1) is None)
    told = f" Left out: {', '.join(unseen)}; {WANTED}." if unseen else ""
    runs = [run for run in look.runs if run.label not in unseen]
    if not runs:
        raise ProbeError(f"{', '.join(unseen)}: cannot be looked into; {WANTED}")
    return runs, told


WANTED = ("a model should have layers of vitbench.nn.attention.SelfAttention, as token_transformer and hybrid have, or "
          "be a convolutional network with a last feature map")
