"""small_cnn_resists_overfitting: rule E on both its harms."""

from typing import Any

import pytest

from tests.claims.simulated import Law, verdict_on
from vitbench.verdicts import Expected, Verdict

STUDY = {"models": ["convolution:s", "linear"], "images_per_class": [5, 20, 80], "seeds": 10}


def law(time: float = 0.0, behind: float = -10, state: str = "fit") -> Law:
    """Points of time harm, and of error above the linear model's."""
    return lambda cell: (Expected(0.8 - behind / 100, time_harm=time / 100, fit_state=state)
                         if cell.family == "convolution" else Expected(0.8))


def verdict(of: Law, number: int = 0, **study: Any) -> Verdict:
    return verdict_on("small_cnn_resists_overfitting", of, {**STUDY, **study}, number)


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(), "holds", "Neither time nor its capacity does harm"),
    (law(time=3), "fails", "Harm of time: The mean is"),
    (law(behind=6), "fails", "Error above a linear model's: The mean is"),
    (law(time=0.9), "undecided", "Harm of time: The interval reaches the margin"),
    (law(behind=1), "undecided", "Error above a linear model's: The interval reaches the margin"),
    (law(state="underfit"), "blocked", "None, steps:300, default: convolution:s against linear underfits"),
])
def test_both_harms_must_stay_below_the_margin(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_an_error_exactly_at_the_margin_seldom_gives_holds() -> None:
    # The other null than the one that its file plants: level in time, and a point behind the linear model.
    assert sum(verdict(law(behind=1), number).outcome == "holds" for number in range(200)) <= 10


@pytest.mark.parametrize(("study", "words"), [
    ({"models": ["convolution:s", "mlp"]}, "The study has no model 'linear'"),
    ({"models": ["convolution:m", "linear"]}, "no model of the family convolution at the size s"),
])
def test_what_cannot_be_judged_is_blocked_with_its_reason(study: dict[str, Any], words: str) -> None:
    found = verdict(law(), **study)
    assert found.outcome == "blocked"
    assert words in found.sentence


def test_budgets_that_disagree_make_it_depend() -> None:
    found = verdict(lambda cell: law(time=3 if cell.budget == "steps:600" else 0)(cell),
                    budgets=[{"steps": 300}, {"steps": 600}])
    assert found.outcome == "depends"
    assert "fails in none, steps:600" in found.sentence
