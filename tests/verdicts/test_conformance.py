"""The promises of claims can be broken, each by a claim that breaks it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from vitbench.verdicts import (
    Blocked,
    Cell,
    Evidence,
    Expected,
    Planted,
    Verdict,
    accuracy_difference,
    conformance,
    matched_pairs,
    rule_d,
    rule_g,
)
from vitbench.verdicts.conformance import BrokenPromise, Judge


def two_ahead(cell: Cell) -> Expected:
    return Expected(0.92 if cell.family == "attention" else 0.9)


PLANTED = Planted("2 points ahead", two_ahead, 0.85)


def sound(evidence: Evidence) -> Verdict:
    try:
        return rule_g(accuracy_difference(evidence, matched_pairs(evidence), evidence.full), margin=0.01)
    except Blocked as why:
        return Verdict(outcome="blocked", sentence=str(why))


def always(outcome: str) -> Judge:
    return lambda evidence: Verdict(outcome=outcome, sentence="because")  # type: ignore[arg-type]


def by_order(evidence: Evidence) -> Verdict:
    first = evidence.rows[0].run_id if evidence.rows else "none"
    return replace(sound(evidence), sentence=f"the first run is {first}")


def by_count(evidence: Evidence) -> Verdict:
    return replace(sound(evidence), sentence=f"{len(evidence.rows)} runs")


def blind_to_seeds(evidence: Evidence) -> Verdict:
    verdict = sound(evidence)
    return replace(verdict, outcome="holds") if verdict.effect and verdict.effect.mean > 0 else verdict


def blind_to_lost_runs(evidence: Evidence) -> Verdict:
    return always("holds")(evidence) if evidence.lost else sound(evidence)


@pytest.mark.parametrize("promise", conformance.PROMISES, ids=lambda p: p.__name__)
def test_a_sound_claim_keeps_every_promise(promise: Callable[..., None]) -> None:
    promise(sound, PLANTED)


@pytest.mark.parametrize(("promise", "judge", "message"), [
    (conformance.rarely_holds_under_its_null, always("holds"), "2 of 40 studies of its null at most; found 40"),
    (conformance.rarely_holds_under_its_null, blind_to_seeds, "found"),
    (conformance.finds_what_is_planted, always("undecided"), "hold in 28 of 40 .* power of 0.85 asks; found 0"),
    (conformance.ignores_order_and_repeats, by_order, "the same verdict in any order"),
    (conformance.ignores_order_and_repeats, by_count, "the same verdict in any order"),
    (conformance.decides_nothing_below_six_seeds, blind_to_seeds, "'holds' with 1 seeds"),
    (conformance.decides_nothing_below_six_seeds, always("fails"), "'fails' with 1 seeds"),
    (conformance.names_what_is_missing, always("holds"), "'holds' with no run that ended"),
    (conformance.names_what_is_missing, always("depends"), "'depends' with no run that ended"),
    (conformance.takes_lost_runs, blind_to_lost_runs, "'holds' with runs that all diverged"),
])
def test_a_broken_promise_is_caught(promise: Callable[..., None], judge: Judge, message: str) -> None:
    with pytest.raises(BrokenPromise, match=message):
        promise(judge, PLANTED)


@pytest.mark.parametrize("promise", [conformance.names_what_is_missing, conformance.takes_lost_runs])
def test_an_error_in_the_claim_is_not_hidden(promise: Callable[..., None]) -> None:
    def breaks(evidence: Evidence) -> Verdict:
        if len(evidence.rows) < 40 or evidence.lost:
            raise ZeroDivisionError
        return sound(evidence)

    with pytest.raises(ZeroDivisionError):
        promise(breaks, PLANTED)


def test_a_claim_without_a_planted_effect_must_be_exact() -> None:
    (promise,) = conformance.promises(None)
    promise(lambda _: rule_d({"the slope is 1": True}), None)
    with pytest.raises(BrokenPromise, match="declare a planted effect; found 'blocked': The study has no model"):
        promise(sound, None)
    assert conformance.promises(PLANTED) == conformance.PROMISES


def test_every_promise_says_what_it_is() -> None:
    every = [*conformance.PROMISES, *conformance.promises(None)]
    assert all(promise.__doc__ and promise.__doc__.endswith(".") for promise in every)
