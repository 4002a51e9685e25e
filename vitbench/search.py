"""Search: what the tuning of one cell tried, and what it found best (protocol rule 11)."""

from typing import Annotated, Literal

from pydantic import Field

from vitbench.config.tuning import Params, Range, Tuning
from vitbench.grid import Condition
from vitbench.spec import Frozen, Recipe

EDGE = 0.05
"""Share of a range, at each end, that counts as its edge."""


class Trial(Frozen):
    """One setting that was tried. Judged on validation after the last step, mean over folds; None where it failed."""

    number: Annotated[int, Field(ge=0)]
    params: Params
    state: Literal["done", "diverged", "failed", "pruned"]
    reason: str | None = None
    val_accuracy: float | None = None
    val_loss: float | None = None
    rungs: tuple[float, ...] = ()  # the objective on the way, larger is better; only where weak trials are ended early
    seconds: float


class Search(Frozen):
    """All trials of one cell, in their order; `best` is a trial's number once all have ended."""

    setting: str
    label: str
    share: str
    regime: str
    budget: str
    tuning: Tuning
    validation: str  # 'holdout' or '5-fold cross-validation, 2 times'
    validation_images: int  # that each trial was judged on
    trials: tuple[Trial, ...] = ()

    @property
    def condition(self) -> Condition:
        """Names the cell, as a Run's does."""
        return self.label, self.share, self.regime, self.budget

    @property
    def left(self) -> int:
        """Trials that have not ended."""
        return self.tuning.trials - len(self.trials)

    @property
    def ended(self) -> bool:
        """True if every trial has ended."""
        return self.left <= 0

    @property
    def best(self) -> Trial | None:
        """The best of all trials once they have ended; None before, or where none gave a number."""
        done = [trial for trial in self.trials if trial.state == "done"]
        return min(done, key=self._rank, default=None) if self.ended else None

    def _rank(self, trial: Trial) -> tuple[float, float, int]:
        assert trial.val_accuracy is not None
        assert trial.val_loss is not None
        error = 1 - trial.val_accuracy
        first, second = (error, trial.val_loss) if self.tuning.objective == "accuracy" else (trial.val_loss, error)
        return first, second, trial.number

    @property
    def edge(self) -> tuple[str, ...]:
        """Keys whose best value lies on the edge of what was searched; a limit of the key itself is no edge."""
        best = self.best
        return () if best is None else tuple(
            key for key, dimension in self.tuning.dimensions.items() if on_edge(key, dimension, best.params[key]))


def on_edge(key: str, dimension: object, value: object) -> bool:
    """True in the outer 5 % of a range (in its logarithm where it is searched so), or at the ends of a list of
    numbers; words have no edge, and 0 is none where the key cannot be negative."""
    from math import log

    if isinstance(value, bool | str) or not isinstance(value, int | float):
        return False
    if value == 0 and _least_is_zero(key):
        return False
    if not isinstance(dimension, Range):
        numbers = sorted(v for v in dimension if isinstance(v, int | float))  # type: ignore[attr-defined]
        return value in (numbers[0], numbers[-1])
    low, high, at = float(dimension.low), float(dimension.high), float(value)
    if dimension.log:
        low, high, at = log(low), log(high), log(at)
    place = (at - low) / (high - low)
    return (place < EDGE and not (dimension.low == 0 and _least_is_zero(key))) or place > 1 - EDGE


def _least_is_zero(key: str) -> bool:
    return any(getattr(limit, "ge", None) == 0 for limit in Recipe.model_fields[key].metadata)
