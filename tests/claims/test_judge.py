"""Judging: two analyses of lost runs, exploratory studies, controls, and claims whose own code is wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitbench.claims import CLAIMS, ClaimError, ClaimMeta, judge
from vitbench.registry import Entry, PluginError, UnknownName
from vitbench.row import Row
from vitbench.verdicts import (
    Blocked,
    Evidence,
    Expected,
    Planted,
    Verdict,
    accuracy_difference,
    matched_pairs,
    rule_g,
)
from vitbench.verdicts.conformance import losing
from vitbench.verdicts.simulated import simulate

Claim = Callable[[Evidence], Any]
STUDY = {"models": ["attention:s", "convolution:s", "control:s"], "images_per_class": [5, 20], "seeds": 8}


def ahead(points: float) -> Planted:
    return Planted("", lambda cell: Expected(0.8 + points / 100 * (cell.family == "attention")), 0.9, STUDY)


META: dict[str, Any] = {"sentence": "s", "source": "s", "null": "n", "planted": ahead(10)}


def evidence(points: float = 10) -> Evidence:
    return simulate(ahead(points), np.random.default_rng(0))


def at_full(found: Evidence) -> Verdict:
    return rule_g(accuracy_difference(found, matched_pairs(found), found.full), margin=0.01)


@pytest.fixture
def register() -> Iterator[Callable[..., str]]:
    """Puts a claim into the registry for the length of a test."""
    names = []

    def add(claim: Claim, **meta: Any) -> str:
        name = f"trial_{len(names)}"
        names.append(name)
        CLAIMS._entries[name] = Entry(name, claim, ClaimMeta(**{**META, **meta}))
        return name

    yield add
    for name in names:
        del CLAIMS._entries[name]


def lost(label: str, *seeds: int) -> Callable[[Row], bool]:
    return lambda row: row.label == label and row.seed in seeds


def test_where_no_run_was_lost_it_is_the_claims_own_verdict(register: Callable[..., str]) -> None:
    assert judge(register(at_full), evidence()) == at_full(evidence())


def test_both_analyses_of_lost_runs_must_agree(register: Callable[..., str]) -> None:
    name = register(at_full)
    agreed = judge(name, losing(evidence(-10), lost("attention:s", 0)))
    assert agreed.outcome == "fails"
    assert agreed.sentence.endswith("1 of its runs diverged or failed; as chance and without their seeds the outcome "
                                    "is the same")
    # Here only the lost runs put attention ahead.
    split = judge(name, losing(evidence(0), lost("convolution:s", *range(8))))
    assert split.outcome == "undecided"
    assert "As chance" not in split.sentence
    assert "With them as chance: holds." in split.sentence
    assert "Without their seeds (n = 0): blocked. Every seed has a run that diverged or failed" in split.sentence


def test_too_few_seeds_without_the_lost_ones_leave_it_undecided(register: Callable[..., str]) -> None:
    found = judge(register(at_full), losing(evidence(-10), lost("attention:s", 0, 1, 2)))
    assert found.outcome == "undecided"
    assert "With them as chance: fails." in found.sentence
    assert "Without their seeds (n = 5): undecided. 5 seeds: a verdict needs 6 or more" in found.sentence


def test_a_lost_run_that_the_claim_does_not_rest_on_changes_nothing(register: Callable[..., str]) -> None:
    name = register(at_full)
    assert judge(name, losing(evidence(), lost("control:s", *range(8)))) == judge(name, evidence())


def test_a_claim_that_forgets_its_run_ids_is_still_judged_twice(register: Callable[..., str]) -> None:
    name = register(lambda found: replace(at_full(found), run_ids=()))
    assert judge(name, losing(evidence(0), lost("convolution:s", *range(8)))).outcome == "undecided"


def test_an_exploratory_study_gives_no_other_outcome(register: Callable[..., str]) -> None:
    name = register(at_full)
    for points, otherwise in ((10, "holds"), (-10, "fails")):
        found = judge(name, replace(evidence(points), exploratory="The seeds were changed."))
        assert found.outcome == "exploratory"
        assert found.sentence.startswith(f"The seeds were changed. Without that: {otherwise}. The ")
        assert found.effect == at_full(evidence(points)).effect


def test_controls_are_told_as_run_or_missing(register: Callable[..., str]) -> None:
    found = judge(register(at_full, controls=("two models a family", "matched MACs")), evidence())
    assert (found.controls_run, found.controls_missing) == (("matched MACs",), ("two models a family",))


@pytest.mark.parametrize(("anchors", "outcome", "marks"), [
    ({}, "holds", ("unanchored",)), ({"attention": "within"}, "holds", ("unanchored",)),
    ({"attention": "within", "convolution": "missing"}, "holds", ("unanchored",)),
    ({"attention": "within", "convolution": "above"}, "holds", ()),
    ({"attention": "within", "convolution": "below"}, "blocked", ()),
    ({"control": "below"}, "holds", ("unanchored",)),  # the claim does not rest on it
])
def test_baselines_below_their_band_block_and_those_that_reach_it_are_unmarked(
        register: Callable[..., str], anchors: dict[str, str], outcome: str, marks: tuple[str, ...]) -> None:
    found = judge(register(at_full), replace(evidence(), anchors=anchors))
    assert (found.outcome, found.marks) == (outcome, marks)
    if outcome == "blocked":
        assert found.sentence.startswith("The anchor of convolution lies below its reference band. Without that: holds")


def test_without_an_anchor_every_verdict_is_marked(register: Callable[..., str]) -> None:
    def blocks(_: Evidence) -> Verdict:
        raise Blocked("No probe")

    for claim in (at_full, blocks):
        assert judge(register(claim), evidence()).marks == ("unanchored",)
    assert judge(register(blocks), evidence()) == Verdict(outcome="blocked", sentence="No probe")


@pytest.mark.parametrize(("claim", "message"), [
    (lambda _: 1 / 0, "claim 'trial_0' fails: ZeroDivisionError: division by zero"),
    (lambda _: "holds", "should give a Verdict .* found 'holds'"),
    (lambda _: None, "found None"),
    (lambda _: Verdict(outcome="true", sentence="x"), "one of holds, fails, depends"),  # type: ignore[arg-type]
    (lambda _: Verdict(outcome="holds", sentence=""), "with a sentence"),
])
def test_a_claim_whose_code_is_wrong_is_named(register: Callable[..., str], claim: Claim, message: str) -> None:
    with pytest.raises(ClaimError, match=message):
        judge(register(claim), evidence())


def test_an_unknown_claim_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'attention_overtakes_with_enough_data'"):
        judge("attention_overtakes", evidence())


@pytest.mark.parametrize(("meta", "message"), [
    ({"margin": 0.0}, "margin: should be a number above 0; found 0.0"), ({"margin": float("nan")}, "margin"),
    ({"sentence": " "}, "found an empty one"), ({"source": ""}, "found an empty one"),
    ({"controls": ("matched MAC",)}, "controls: should be of .* Did you mean 'matched MACs'"),
])
def test_a_claim_says_what_it_must(meta: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        ClaimMeta(**{**META, **meta})


def test_a_claim_on_a_probe_that_was_not_done_is_undecided_and_says_what_to_run(register: Callable[..., str]) -> None:
    name = register(lambda found: found.probe("position_shift")[0])
    verdict = judge(name, evidence())
    assert verdict.outcome == "undecided"
    assert "run `vitbench probe position_shift simulated`" in verdict.sentence
