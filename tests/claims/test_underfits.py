"""attention_underfits_rather_than_overfits: how much of the excess error is there in training."""

from typing import Any

import pytest

from tests.claims.simulated import Law, verdict_on
from vitbench.verdicts import Expected, Verdict

STUDY = {"models": ["attention:l", "convolution:l"], "images_per_class": [20, 50], "seeds": 10}


def law(excess: float, in_training: float) -> Law:
    """Points of excess test error of attention, and of excess clean-train error."""
    return lambda cell: (Expected(0.9 - excess / 100, 1 - in_training / 100) if cell.family == "attention"
                         else Expected(0.9, 1.0))


def verdict(of: Law, **study: Any) -> Verdict:
    return verdict_on("attention_underfits_rather_than_overfits", of, {**STUDY, **study})


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(10, 10), "holds", "Of the excess error 0."),
    (law(10, 0), "fails", "Of the excess error 0 of 0."),
    (law(10, 5), "undecided", "Of the excess error 0.0"),
    (law(0, 10), "blocked", "No excess error is shown: The interval begins at"),
    (law(-10, 0), "blocked", "No excess error is shown: The interval ends below the margin"),
])
def test_it_decides_by_the_share_that_is_there_in_training(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)
    assert found.legs[0].name == "excess error E"


def test_undecided_says_how_many_seeds_it_would_take() -> None:
    found = verdict(law(10, 5))
    assert "more than half is not shown. An interval of +- 0.005 " in found.sentence


def test_it_takes_both_families_at_l() -> None:
    assert verdict(law(10, 10), models=["attention:l", "convolution:s"]).outcome == "blocked"
