"""Claims: one file each, a sentence with a decision rule fixed before any study is run."""

from dataclasses import dataclass, replace
from math import isfinite
from typing import get_args

from vitbench.registry import PluginError, Registry, nearest
from vitbench.verdicts import Blocked, Evidence, Planted, Unmeasured, Verdict
from vitbench.verdicts.controls import HEADLINE, controls_run
from vitbench.verdicts.verdict import Outcome


class ClaimError(ValueError):
    """A claim whose own code fails or gives no verdict; the message names it."""


@dataclass(frozen=True)
class ClaimMeta:
    """What a claim says and what it was built to find, fixed beside its rule.

    `null` says what is true where the claim is not, `planted` what is where it is: simulated studies of both show how
    often the rule tells them apart. `planted` is None for a claim of rule D, which looks at no run.
    """

    sentence: str
    source: str
    null: str
    planted: Planted | None
    margin: float = 0.01
    unit: str = "test accuracy, as a share of images"  # of the contrast and the margin
    controls: tuple[str, ...] = ()  # of HEADLINE

    def __post_init__(self) -> None:
        if not (isfinite(self.margin) and self.margin > 0):
            raise PluginError(f"margin: should be a number above 0; found {self.margin!r}")
        if not all(text.strip() for text in (self.sentence, self.source, self.null)):
            raise PluginError("sentence, source and null: each says something; found an empty one")
        for control in self.controls:
            if control not in HEADLINE:
                raise PluginError(f"controls: should be of {', '.join(HEADLINE)}; found {control!r}."
                                  f"{nearest(control, HEADLINE)}")


CLAIMS: Registry[ClaimMeta] = Registry("claim", "vitbench.claims")


def judge(name: str, evidence: Evidence) -> Verdict:
    """The claim's verdict on one study. Missing, lost and few runs give an outcome, never an error.

    Where runs diverged or failed the claim is judged twice, with them as chance and without their seeds, and both must
    agree (protocol rule 13). Raises UnknownName, or ClaimError where the claim's own code fails.
    """
    meta = CLAIMS.get(name).meta
    verdict = _judge(name, evidence)
    studies = [evidence, *_elsewhere(meta, evidence)]
    lost = {row.run_id for study in studies for row in study.lost}
    if evidence.lost or lost & set(verdict.run_ids):
        verdict = _agreed(verdict, _judge(name, evidence.without_lost()), lost)
    verdict = _anchored(verdict, evidence)
    why = " ".join(study.exploratory for study in studies if study.exploratory and (
        study is evidence or {row.run_id for row in study.rows} & set(verdict.run_ids)))
    if why:
        verdict = replace(verdict, outcome="exploratory",
                          sentence=f"{why} Without that: {verdict.outcome}. {verdict.sentence}")
    run = controls_run(evidence) if meta.controls else frozenset()
    return replace(verdict, controls_run=tuple(c for c in meta.controls if c in run),
                   controls_missing=tuple(c for c in meta.controls if c not in run))


def _elsewhere(meta: ClaimMeta, evidence: Evidence) -> list[Evidence]:
    """The other studies that the claim may look at: on the datasets of the studies that it plants."""
    datasets = meta.planted.datasets if meta.planted else ()
    return [study for dataset in datasets for study in evidence.elsewhere(dataset)]


def _judge(name: str, evidence: Evidence) -> Verdict:
    try:
        verdict = CLAIMS.get(name).build(evidence)
    except Blocked as why:
        return Verdict(outcome="blocked", sentence=str(why))
    except Unmeasured as what:
        return Verdict(outcome="undecided", sentence=str(what))
    except Exception as error:
        raise ClaimError(f"claim {name!r} fails: {type(error).__name__}: {error}") from error
    if not isinstance(verdict, Verdict) or verdict.outcome not in get_args(Outcome) or not verdict.sentence:
        raise ClaimError(f"claim {name!r} should give a Verdict of one of {', '.join(get_args(Outcome))}, with a "
                         f"sentence; found {verdict!r}")
    return verdict


def _anchored(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Blocked where a baseline lies below its reference band; unmarked where all have reached theirs (rule 19)."""
    rests_on = set(verdict.run_ids)
    states = {family: evidence.anchors.get(family, "missing") for family in sorted(
        {row.family for row in evidence.rows if row.run_id in rests_on})}
    below = [family for family, state in states.items() if state == "below"]
    if below:
        return replace(verdict, outcome="blocked", marks=(), sentence=(
            f"The anchor of {' and '.join(below)} lies below its reference band. Without that: {verdict.outcome}. "
            f"{verdict.sentence}"))
    return replace(verdict, marks=()) if states and "missing" not in states.values() else verdict


def _agreed(main: Verdict, second: Verdict, lost: set[str]) -> Verdict:
    count = len(lost & set(main.run_ids))
    told = f"{count} of its runs diverged or failed"
    if main.outcome != second.outcome:
        return replace(main, outcome="undecided", sentence=(
            f"{told}. With them as chance: {main.outcome}. {main.sentence}. Without their seeds (n = {second.n}): "
            f"{second.outcome}. {second.sentence}"))
    if not count:
        return main
    return replace(main, sentence=f"{main.sentence}. {told}; as chance and without their seeds the outcome is the same")
