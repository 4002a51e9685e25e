"""Whether a ranking flips between two ways of doing the same study (claims.md, claims 8 and 9)."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitbench.stats.intervals import FEW_SEEDS, Interval, t_interval


@dataclass(frozen=True)
class Change:
    """What became of one pair: `flips` needs both differences to exclude 0 on opposite sides and to matter;
    `stays` that both lie, at 95 %, above minus the margin or both below it."""

    flips: bool
    stays: bool


def change(before_S: Sequence[float], after_S: Sequence[float], *, margin: float, comparisons: int) -> Change:
    """Of the paired differences of two models over seeds S, in one setting and in another.

    A flip is held to level 1 - .05 / `comparisons`. Below six seeds nothing is decided.
    """
    if min(len(before_S), len(after_S)) < FEW_SEEDS:
        return Change(flips=False, stays=False)
    sides = [_side(t_interval(values_S, level=1 - 0.05 / comparisons), margin) for values_S in (before_S, after_S)]
    usual = [t_interval(values_S) for values_S in (before_S, after_S)]
    stays = all(i.low is not None and i.low > -margin for i in usual) or all(
        i.high is not None and i.high < margin for i in usual)
    return Change(flips=sides[0] * sides[1] < 0, stays=stays)


def _side(interval: Interval, margin: float) -> int:
    """1 where the first model leads, -1 where the second one does, 0 where neither is shown to."""
    if interval.low is None or interval.high is None or abs(interval.mean) < margin:
        return 0
    return 1 if interval.low > 0 else -1 if interval.high < 0 else 0
