"""large_attention_overfits_little_data: each outcome from the errors and harms that should give it."""

from typing import Any

import pytest

from tests.claims.simulated import Law, verdict_on
from vitbench.verdicts import Cell, Expected, Verdict

STUDY = {"models": ["attention:s", "attention:l", "convolution:s"], "images_per_class": [5, 20, 80], "seeds": 10}


def law(gap: float = 12, size: float = 3, time: float = 3, state: str = "fit") -> Law:
    """Points of gap above the small CNN's, of size harm and of time harm of the large attention model."""

    def of(cell: Cell) -> Expected:
        if cell.family == "convolution":
            return Expected(0.9)
        large = 0.9 - gap / 100
        if cell.size == "s":
            return Expected(large + size / 100)
        return Expected(large, time_harm=time / 100, fit_state=state)

    return of


def verdict(of: Law, **study: Any) -> Verdict:
    return verdict_on("large_attention_overfits_little_data", of, {**STUDY, **study})


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(), "holds", "Larger gap, and harm."),
    (law(size=-5, time=0), "depends", "Larger gap, but neither size nor time does harm."),
    (law(gap=-3), "fails", "The gap: The interval ends below the margin"),
    (law(gap=0.7), "undecided", "The gap: "),
    (law(size=0, time=1), "undecided", "Larger gap; whether it does harm: "),
    (law(state="underfit"), "blocked", "None, steps:300, default: attention:l against attention:s against "),
])
def test_it_decides_by_the_gap_and_then_by_the_harm(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_one_of_two_harms_is_enough_where_it_is_large() -> None:
    assert verdict(law(size=6, time=0)).outcome == verdict(law(size=0, time=6)).outcome == "holds"


def test_it_shows_both_contrasts_and_rests_on_little_data_alone() -> None:
    found = verdict(law())
    assert [leg.outcome for leg in found.legs] == ["holds", "holds"]
    means = [leg.effect.mean for leg in found.legs if leg.effect]
    assert means == pytest.approx([0.12, 0.03], abs=0.01)
    assert len(found.run_ids) == 3 * 2 * 10  # models, sizes of 5 to 50 a class, seeds


def test_a_stratum_that_underfits_is_said_first_and_left_out() -> None:
    def of(cell: Cell) -> Expected:
        return law(state="underfit" if cell.regime == "strong" else "fit")(cell)

    found = verdict(of, regimes=["none", "strong"])
    assert found.outcome == "holds"
    assert found.sentence.startswith("Blocked, and left out: strong, steps:300, default: attention:l against "
                                     "attention:s against convolution:s underfits: attention:l in 20 of 20 runs. ")
    assert len(found.parts) == 1


@pytest.mark.parametrize(("study", "words"), [
    ({"images_per_class": [60, 80]}, "The study has no size of 5 to 50 drawn images of every class; it has 60 a class"),
    ({"models": ["attention:s", "convolution:s"]}, "no model of the family attention at the size s and l"),
    ({"models": ["attention:l", "attention:s"]}, "no model of the family convolution at the size s"),
    ({"refit": True}, "Time harm is missing: attention:l at 5 a class, seed 0, held out no validation images"),
    ({"models": [*STUDY["models"], {"name": "attention", "size": "l", "label": "again"}]},
     "again and attention:l are one model of one size with the same options"),
])
def test_what_cannot_be_judged_is_blocked_with_its_reason(study: dict[str, Any], words: str) -> None:
    found = verdict(law(), **study)
    assert found.outcome == "blocked"
    assert words in found.sentence


def test_regimes_that_disagree_make_it_depend() -> None:
    found = verdict(lambda cell: law(gap=-3 if cell.regime == "strong" else 12)(cell), regimes=["none", "strong"])
    assert found.outcome == "depends"
    assert "fails in strong, steps:300" in found.sentence
