"""budget_changes_the_ranking: flips between budgets, at saturated and unsaturated ones apart."""

from dataclasses import replace
from typing import Any

import pytest

from tests.claims.simulated import Law, study_of, verdict_on
from vitbench.claims import judge
from vitbench.verdicts import Cell, CellOf, Expected, Verdict
from vitbench.verdicts.evidence import Condition

NAME = "budget_changes_the_ranking"
STUDY = {"models": ["attention:s", "convolution:s"], "images_per_class": [5, 20], "seeds": 10,
         "budgets": [{"steps": 300}, {"epochs": 50}]}


def law(first: float, second: float) -> Law:
    """Points by which attention leads after 300 steps, and under any other budget."""
    return lambda cell: Expected(0.88 + (cell.family == "attention") / 100 * (
        first if cell.budget == "steps:300" else second))


def verdict(first: float, second: float, **study: Any) -> Verdict:
    return verdict_on(NAME, law(first, second), {**STUDY, **study})


@pytest.mark.parametrize(("first", "second", "outcome", "words"), [
    (-4, 4, "holds", "2 of 2 comparisons flip: attention:s against convolution:s at 5 a class, none, default: "
                     "epochs:50, then steps:300: +0.0"),
    (-6, -3, "fails", "No comparison of 2 flips, and in each both intervals lie above -0.01 or both below 0.01"),
    (0, 0, "undecided", "No comparison of 2 flips, and these are not shown to stay"),
])
def test_it_decides_by_flips(first: float, second: float, outcome: str, words: str) -> None:
    found = verdict(first, second)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)
    assert [leg.name for leg in found.legs if leg.outcome] == ["saturation was not checked"]


def test_each_two_budgets_count() -> None:
    found = verdict(-4, 4, budgets=[{"steps": 300}, {"steps": 600}, {"epochs": 50}])
    assert found.outcome == "holds"
    assert found.sentence.startswith("4 of 6 comparisons flip")
    assert found.level == pytest.approx(1 - 0.05 / 6)


def test_conditions_that_differ_in_more_than_the_budget_are_not_compared() -> None:
    found = verdict(-4, 4, regimes=["none", "light"])
    assert found.sentence.startswith("4 of 4 comparisons flip")


def flips_at(*sizes: int) -> Law:
    """A flip at these sizes; elsewhere attention stays behind."""

    def of(cell: Cell) -> Expected:
        return law(-5, 5 if cell.images in sizes else -5)(cell)

    return of


def limited(cells: dict[tuple[str, str, str], bool], sizes: tuple[int, ...] = (5,)) -> Verdict:
    """The verdict on flips at `sizes` where the saturation check found `cells`, (label, share, budget), limited."""
    found = {CellOf(label, share, Condition("none", budget, "default")): is_limited
             for (label, share, budget), is_limited in cells.items()}
    return judge(NAME, replace(study_of(flips_at(*sizes), STUDY), limited=found))


CHECKED = {(label, f"{n} a class", "steps:300"): False for label in STUDY["models"] for n in (5, 20)}


def outcomes(of: Verdict) -> dict[str, str]:
    return {leg.name: leg.outcome for leg in of.legs if leg.outcome}


def test_saturated_and_unsaturated_budgets_that_decide_differently_make_it_depend() -> None:
    found = limited(CHECKED | {("attention:s", "5 a class", "steps:300"): True})
    assert outcomes(found) == {"a budget is unsaturated": "holds", "both budgets are saturated": "fails"}
    assert (found.outcome, found.sentence) == (
        "depends", "Holds where a budget is unsaturated; fails where both budgets are saturated")
    other = limited(CHECKED | {("attention:s", "20 a class", "steps:300"): True})
    assert other.sentence == "Holds where both budgets are saturated; fails where a budget is unsaturated"


def test_both_kinds_of_budget_that_flip_hold() -> None:
    found = limited(CHECKED | {("attention:s", "5 a class", "steps:300"): True}, (5, 20))
    assert outcomes(found) == {"a budget is unsaturated": "holds", "both budgets are saturated": "holds"}
    assert found.outcome == "holds"


def test_where_one_model_was_not_checked_saturation_was_not() -> None:
    checked = {place: found for place, found in CHECKED.items() if place[:2] != ("convolution:s", "5 a class")}
    assert outcomes(limited(checked)) == {"both budgets are saturated": "fails", "saturation was not checked": "holds"}


def test_five_seeds_decide_nothing() -> None:
    found = verdict(-6, 6, seeds=5)
    assert found.outcome == "undecided"
    assert found.sentence.startswith("5 seeds: a verdict needs 6")


@pytest.mark.parametrize(("study", "words"), [
    ({"budgets": [{"steps": 300}]}, "The study has no pair of models under two budgets"),
    ({"models": ["convolution:s"]}, "The study has no model of the family attention"),
])
def test_what_cannot_be_judged_is_blocked_with_its_reason(study: dict[str, Any], words: str) -> None:
    found = verdict(-4, 4, **study)
    assert found.outcome == "blocked"
    assert words in found.sentence
