"""Whether a ranking flips between two ways of doing the same study (claims.md, claims 8 and 9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vitbench.stats.intervals import Interval

TOLERANCE = 1e-9  # a mean of decimals such as .3 - .29 meets a margin of .01
Both = tuple[Interval, Interval]


@dataclass(frozen=True)
class Change:
    """What became of one pair: `flips` needs both differences to exclude 0 on opposite sides and to matter;
    `stays` that both lie above minus the margin, or both below it."""

    flips: bool
    stays: bool


def change(strict: Both, usual: Both, *, margin: float) -> Change:
    """Of the paired difference of two models in one setting and in another.

    `strict` are its intervals at level 1 - alpha over the number of comparisons, which a flip is held to; `usual` those
    at 1 - alpha. Below six seeds nothing is decided.
    """
    if any(interval.few_seeds for interval in (*strict, *usual)):
        return Change(flips=False, stays=False)
    first, second = (_side(interval, margin) for interval in strict)
    stays = all(i.low is not None and i.low > -margin for i in usual) or all(
        i.high is not None and i.high < margin for i in usual)
    return Change(flips=first * second < 0, stays=stays)


def outcome(changes: Sequence[Change]) -> Literal["holds", "fails", "undecided"]:
    """Of 'the ranking changes': `holds` if any pair flips, `fails` if all stay. Raises ValueError without a pair."""
    if not changes:
        raise ValueError("a ranking changes in pairs of models; found none")
    if any(one.flips for one in changes):
        return "holds"
    return "fails" if all(one.stays for one in changes) else "undecided"


def _side(interval: Interval, margin: float) -> int:
    """1 where the first model leads, -1 where the second one does, 0 where neither is shown to."""
    if interval.low is None or interval.high is None or abs(interval.mean) < margin - TOLERANCE:
        return 0
    return 1 if interval.low > 0 else -1 if interval.high < 0 else 0
