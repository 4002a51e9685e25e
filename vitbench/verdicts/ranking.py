"""Rankings: whether the order of two models changes from one condition to another (claims 8 and 9)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from statistics import fmean
from typing import Literal, NamedTuple

from vitbench.stats import Interval
from vitbench.stats.ranking import Change, change, outcome
from vitbench.stats.ranks import kendall_tau_b
from vitbench.verdicts.contrast import Contrast
from vitbench.verdicts.evidence import DEFAULT, CellOf, Condition, Evidence, Stratum
from vitbench.verdicts.groups import matched_pairs
from vitbench.verdicts.pairing import accuracy_contrast
from vitbench.verdicts.rules import decided, rule_g, undecided
from vitbench.verdicts.verdict import Leg, Verdict

MOST = 3  # comparisons that a sentence names; the legs name all


class Two(NamedTuple):
    """Two conditions at one size."""

    share: str
    before: Condition
    after: Condition

    @property
    def name(self) -> str:
        """'0.1, none, steps:300: default, then tuned'."""
        both = list(zip(self.before, self.after, strict=True))
        same, changed = [a for a, b in both if a == b], [f"{a}, then {b}" for a, b in both if a != b]
        return f"{', '.join((self.share, *same))}: {', '.join(changed)}"


class Comparison(NamedTuple):
    """Two models, at one size under two conditions."""

    models: tuple[str, str]
    of: Two

    @property
    def name(self) -> str:
        """'token_transformer:s against convnet:s at 0.1, none, steps:300: default, then tuned'."""
        return f"{' against '.join(self.models)} at {self.of.name}"


def comparisons(evidence: Evidence, axis: Literal["budget", "setting"]) -> tuple[Comparison, ...]:
    """The declared pairs, else the matched ones, at each size under each two conditions that differ in `axis` alone;
    of settings the default one and another. Raises Blocked where no models match.
    """
    pairs = set(evidence.pairs or (stratum.models for stratum in matched_pairs(evidence)))
    return tuple(Comparison((a, b), Two(share, before, after)) for a, b in sorted(pairs) for share in evidence.shares
                 for before, after in combinations(_conditions(evidence, a, b, share), 2)
                 if before._replace(**{axis: getattr(after, axis)}) == after
                 and (axis != "setting" or before.setting == DEFAULT))


def _conditions(evidence: Evidence, a: str, b: str, share: str) -> list[Condition]:
    """Those in which the study asks for both models at a size."""
    found = [{cell.condition for cell in evidence.seeds if (cell.label, cell.share) == (label, share)}
             for label in (a, b)]
    return sorted(found[0] & found[1])


@dataclass(frozen=True)
class Compared:
    """A comparison's differences, the first model minus the second, over the same seeds; `shift` is the second
    difference minus the first, its alpha divided by the number of comparisons."""

    name: str
    before: Contrast
    after: Contrast
    shift: Contrast

    @property
    def strict(self) -> tuple[Interval, Interval]:
        """Of both differences at the level that a flip is held to."""
        return (replace(self.before, alpha=self.shift.alpha).interval,
                replace(self.after, alpha=self.shift.alpha).interval)

    def change(self, margin: float) -> Change:
        """What became of the pair."""
        return change(self.strict, (self.before.interval, self.after.interval), margin=margin)

    @cached_property
    def told(self) -> str:
        """'-0.05 [-0.06, -0.04], then +0.03 [+0.02, +0.04]'."""
        return ", then ".join(f"{i.mean:+.3g}" + ("" if i.low is None else f" [{i.low:+.3g}, {i.high:+.3g}]")
                              for i in self.strict)


def compared(evidence: Evidence, of: Sequence[Comparison]) -> tuple[Compared, ...]:
    """Each comparison, at levels that all of them share. Raises Blocked as `accuracy_contrast` does."""
    return tuple(_compared(evidence, one, evidence.alpha / len(of)) for one in of)


def _compared(evidence: Evidence, one: Comparison, alpha: float) -> Compared:
    share, before, after = one.of
    stratum = Stratum(before, one.models * 2, (before, before, after, after))

    def difference(*weights: float) -> Contrast:
        found = accuracy_contrast(evidence, (stratum,), {
            (place, share): weight for place, weight in enumerate(weights) if weight})
        return replace(found, strata=(one.name,))

    return Compared(one.name, difference(1, -1), difference(0, 0, 1, -1),
                    replace(difference(-1, 1, 1, -1), alpha=alpha))


def ranking_changes(of: Sequence[Compared], *, margin: float) -> Verdict:
    """`holds` if any comparison flips, `fails` if all stay, else `undecided`, with the seeds needed.

    Its effect is the largest shift: of those that flip, where any does.
    """
    changes = [one.change(margin) for one in of]
    flips = [one for one, found in zip(of, changes, strict=True) if found.flips]
    open_ = [one for one, found in zip(of, changes, strict=True) if not found.flips and not found.stays]
    fewest = min((one.shift for one in of), key=lambda y: y.n)
    found = outcome(changes)
    if fewest.few_seeds:
        sentence = rule_g(fewest, margin=margin).sentence
    elif found == "holds":
        sentence = f"{len(flips)} of {len(of)} comparisons flip: {_listed(flips)}"
    elif found == "fails":
        sentence = (f"No comparison of {len(of)} flips, and in each both intervals lie above {-margin:g} or both below "
                    f"{margin:g}")
    else:
        widest = max((y for one in open_ for y in (one.before, one.after)), key=_width)
        sentence = undecided(f"No comparison of {len(of)} flips, and these are not shown to stay: {_listed(open_)}",
                             widest, margin=margin).sentence
    most = max(flips or of, key=lambda one: abs(one.shift.interval.mean))
    return replace(decided(found, sentence, most.shift), p=None, t_p=None,  # the level is shared already
                   run_ids=tuple(sorted({run_id for one in of for run_id in one.shift.run_ids})))


def legs(of: Sequence[Compared], *, margin: float) -> tuple[Leg, ...]:
    """Each comparison with both differences, at the level that a flip is held to."""
    words = {(True, False): "flips", (False, True): "stays", (False, False): "neither flips nor stays"}
    return tuple(Leg(name=one.name, sentence=f"{one.told}: {words[found.flips, found.stays]}",
                     effect=one.shift.interval, level=1 - one.shift.alpha, run_ids=one.shift.run_ids)
                 for one in of for found in (one.change(margin),))


def agreement(evidence: Evidence, of: Sequence[Comparison]) -> Leg:
    """Kendall's tau-b between the mean accuracies of all models under each two conditions: described, not tested."""
    told = []
    for two in dict.fromkeys(one.of for one in of):
        cells = [[evidence.by_cell.get(CellOf(label, two.share, condition)) for condition in (two.before, two.after)]
                 for label in sorted(evidence.models)]
        means = [[fmean(row.counted_accuracy for row in rows.values()) for rows in both if rows]
                 for both in cells if all(both)]
        tau = kendall_tau_b(*zip(*means, strict=True)).tau_b
        told.append(f"{two.name}: {'undefined' if tau is None else f'{tau:.3g}'} of {len(means)} models")
    return Leg(name="Kendall's tau-b of all models", sentence="; ".join(told))


def _listed(of: Sequence[Compared]) -> str:
    more = f"; and {len(of) - MOST} more" if len(of) > MOST else ""
    return "; ".join(f"{one.name}: {one.told}" for one in of[:MOST]) + more


def _width(y: Contrast) -> float:
    assert y.interval.low is not None
    assert y.interval.high is not None
    return y.interval.high - y.interval.low
