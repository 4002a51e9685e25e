"""relu_can_replace_softmax: rule E, each at its own learning rate out of the same three."""

from dataclasses import replace
from typing import Any

import pytest

from tests.claims.simulated import Law, study_of, verdict_on
from vitbench.claims import judge
from vitbench.verdicts import Cell, CellOf, Expected, Verdict
from vitbench.verdicts.evidence import Condition

NAME = "relu_can_replace_softmax"
RATES = [0.001, 0.003, 0.01]
TUNING = {"trials": 2, "validation": "cv", "space": {"learning_rate": RATES}}
STUDY = {"models": [{"name": "attention", "size": "s", "label": n, "normaliser": n} for n in ("softmax", "relu")],
         "images_per_class": [20, 80], "seeds": 10, "tuning": TUNING}


def law(loss: float, default: float = 0.0) -> Law:
    """Points that relu loses when tuned, and by default."""
    return lambda cell: Expected(0.97 - (cell.options["normaliser"] == "relu") / 100 * (
        default if cell.setting == "default" else loss))


def verdict(of: Law, number: int = 0, **study: Any) -> Verdict:
    return verdict_on(NAME, of, {**STUDY, **study}, number)


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(0), "holds", "The interval ends below the margin of 0.01 in every stratum"),
    (law(-2), "holds", "The interval ends below the margin of 0.01 in every stratum"),
    (law(3), "fails", "The mean is 0.0"),
    (law(0.8), "undecided", "The interval reaches the margin of 0.01 in none, steps:300, tuned: softmax against relu"),
])
def test_it_decides_by_what_relu_loses(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_the_default_learning_rate_decides_nothing() -> None:
    found = verdict(law(0, default=20))
    assert found.outcome == "holds"
    assert [part.name for part in found.parts] == ["none, steps:300, tuned: softmax against relu"]
    assert len(found.run_ids) == 2 * 2 * 10


def test_a_loss_exactly_at_the_margin_seldom_gives_holds() -> None:
    assert sum(verdict(law(1), number).outcome == "holds" for number in range(100)) <= 7


def test_budgets_that_disagree_make_it_depend() -> None:
    def of(cell: Cell) -> Expected:
        return law(4 if cell.budget == "steps:600" else -1)(cell)

    found = verdict(of, budgets=[{"steps": 300}, {"steps": 600}])
    assert found.outcome == "depends"
    assert found.sentence == ("Holds in none, steps:300, tuned: softmax against relu; fails in none, steps:600, tuned: "
                              "softmax against relu")


@pytest.mark.parametrize("space", [
    {"learning_rate": RATES[:2]}, {"learning_rate": [*RATES, 0.03]}, {"learning_rate": [0.001, 0.001, 0.003]},
    {"learning_rate": {"low": 0.001, "high": 0.01, "log": True}}, {"weight_decay": [0, 0.05, 0.2]},
    {"learning_rate": RATES, "weight_decay": [0, 0.05]},
])
def test_another_search_than_of_three_learning_rates_is_blocked(space: dict[str, Any]) -> None:
    found = verdict(law(0), tuning={**TUNING, "space": space})
    assert found.outcome == "blocked"
    assert "write `tuning: {validation: where_needed, space: {learning_rate: [" in found.sentence


@pytest.mark.parametrize(("study", "words"), [
    ({"tuning": None}, "Each of the two needs its own learning rate out of the same 3"),
    ({"models": STUDY["models"][:1]}, "no models that are alike but for normaliser, one each of softmax, relu"),
    ({"tuning": {**TUNING, "only": "model=softmax"}}, "The study tunes no pair of them at all its sizes"),
    ({"tuning": {**TUNING, "only": "images_per_class=20"}}, "The study tunes no pair of them at all its sizes"),
])
def test_what_cannot_be_judged_is_blocked_with_its_reason(study: dict[str, Any], words: str) -> None:
    found = verdict(law(0), **study)
    assert found.outcome == "blocked"
    assert words in found.sentence


def test_a_best_rate_at_the_end_of_the_three_blocks_it() -> None:
    cell = CellOf("relu", "20 a class", Condition("none", "steps:300", "tuned"))
    found = judge(NAME, replace(study_of(law(0), STUDY), edges=frozenset({cell})))
    assert found.outcome == "blocked"
    assert "lies on the edge of what was searched (relu at 20 a class)" in found.sentence


def test_five_seeds_decide_nothing() -> None:
    assert verdict(law(-5), seeds=5).outcome == verdict(law(9), seeds=5).outcome == "undecided"
