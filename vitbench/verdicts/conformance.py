"""What every claim promises, checked on simulated studies; the claims that ship and a user's file alike."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import bdtr

from vitbench.row import Row
from vitbench.verdicts.evidence import Evidence
from vitbench.verdicts.simulated import Planted, simulate
from vitbench.verdicts.verdict import Verdict

STUDIES, MOST_FALSE = 40, 2
CONFIDENCE = 0.01  # a claim with the power that it states falls below the number asked for once in a hundred
NOTHING = Evidence(study="simulated", rows=(), planned=(), models={}, drawn={}, correct_I=lambda _: None,
                   sha256="0" * 64)
Judge = Callable[[Evidence], Verdict]


class BrokenPromise(ValueError):
    """What a claim does instead of what it should."""


def rarely_holds_under_its_null(judge: Judge, planted: Planted) -> None:
    """Where its null is true, by default all models alike, at most 2 of 40 simulated studies give `holds`."""
    found = _holds(judge, planted, null=True)
    if found > MOST_FALSE:
        raise BrokenPromise(f"should hold in {MOST_FALSE} of {STUDIES} studies of its null at most; found {found}")


def finds_what_is_planted(judge: Judge, planted: Planted) -> None:
    """Where its planted effect is true, `holds` is found as often as the power that it states."""
    asked = next(k for k in range(STUDIES + 1) if bdtr(k, STUDIES, planted.power) > CONFIDENCE)
    found = _holds(judge, planted)
    if found < asked:
        raise BrokenPromise(f"should hold in {asked} of {STUDIES} studies of its planted effect at least, as its power "
                            f"of {planted.power:g} asks; found {found}")


def ignores_order_and_repeats(judge: Judge, planted: Planted) -> None:
    """The order of runs, and a run that stands twice, change nothing."""
    for number in range(3):
        evidence, rng = simulate(planted, _rng(number)), _rng(number)
        rows, planned = ([items[i] for i in rng.permutation(len(items))] for items in (evidence.rows, evidence.planned))
        shuffled = replace(evidence, rows=(*rows, *rows[:3]), planned=(*planned, *planned[:3]),
                           models=dict(reversed([*evidence.models.items()])),
                           drawn=dict(reversed([*evidence.drawn.items()])))
        first, second = judge(evidence), judge(shuffled)
        if first != second:
            raise BrokenPromise(f"should give the same verdict in any order; found {first} and {second}")


def decides_nothing_below_six_seeds(judge: Judge, planted: Planted) -> None:
    """With five seeds or fewer it neither holds nor fails."""
    for seeds in range(1, 6):
        for null in (False, True):
            _refuse(judge(simulate(planted, _rng(seeds), null=null, seeds=seeds)), ("holds", "fails"), f"{seeds} seeds")


def names_what_is_missing(judge: Judge, planted: Planted) -> None:
    """Without runs, or with some of them missing, it gives an outcome; without any it decides nothing."""
    evidence = simulate(planted, _rng(0))
    none_ended = replace(evidence, rows=(), models={k: replace(m, params=None, macs=None)
                                                   for k, m in evidence.models.items()})
    # What an exact claim rests on may have been measured without any run.
    for missing in (NOTHING,) if planted.exact else (NOTHING, none_ended):
        _refuse(judge(missing), ("holds", "fails", "depends"), "no run that ended")
    for gone in _parts(evidence):
        judge(replace(evidence, rows=tuple(row for row in evidence.rows if not gone(row))))


def takes_lost_runs(judge: Judge, planted: Planted) -> None:
    """Runs that diverged or failed give an outcome; where all did, it does not hold."""
    evidence = simulate(planted, _rng(0))
    for lost in _parts(evidence):
        judge(losing(evidence, lost))
    _refuse(judge(losing(evidence, lambda _row: True)), ("holds",), "runs that all diverged")


def decides_without_runs(judge: Judge, _planted: Planted | None) -> None:
    """A claim that plants no effect is exact: it decides on a study without runs."""
    verdict = judge(NOTHING)
    if verdict.outcome not in ("holds", "fails"):
        raise BrokenPromise(f"should hold or fail, or declare a planted effect; found {verdict.outcome!r}: "
                            f"{verdict.sentence}")


PROMISES = (rarely_holds_under_its_null, finds_what_is_planted, ignores_order_and_repeats,
            decides_nothing_below_six_seeds, names_what_is_missing, takes_lost_runs)


EXACT = (rarely_holds_under_its_null, finds_what_is_planted, ignores_order_and_repeats, names_what_is_missing)


def promises(planted: Planted | None) -> tuple[Callable[[Judge, Any], None], ...]:
    """What a claim with this planted effect, or without one, promises."""
    if planted is None:
        return (decides_without_runs,)
    return EXACT if planted.exact else PROMISES


def losing(evidence: Evidence, lost: Callable[[Row], bool]) -> Evidence:
    """The same study with the runs that `lost` names diverged."""
    measured = ("test_accuracy", "clean_train_accuracy", "gap", "time_harm", "fit_state")
    gone: dict[str, Any] = {"outcome": "diverged", "reason": "loss is not finite", **dict.fromkeys(measured)}
    return replace(evidence, rows=tuple(replace(row, **gone) if lost(row) else row for row in evidence.rows))


def _parts(evidence: Evidence) -> tuple[Callable[[Row], bool], ...]:
    """One run, all of one model, of one size, of one seed."""
    first, last = evidence.rows[0], evidence.rows[-1]
    return (lambda row: row == first, lambda row: row == last, lambda row: row.label == first.label,
            lambda row: row.share == last.share, lambda row: row.seed == first.seed)


def _refuse(verdict: Verdict, outcomes: tuple[str, ...], of: str) -> None:
    if verdict.outcome in outcomes:
        raise BrokenPromise(f"should not be {verdict.outcome!r} with {of}; found: {verdict.sentence}")


def _rng(number: int) -> np.random.Generator:
    return np.random.default_rng([27, number])


def _holds(judge: Judge, planted: Planted, *, null: bool = False) -> int:
    return sum(judge(simulate(planted, _rng(number), null=null)).outcome == "holds" for number in range(STUDIES))
