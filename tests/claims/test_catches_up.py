"""attention_catches_up_with_data: the slope of the log ratio of errors, not that of the difference of accuracies."""

from math import log2
from typing import Any

import pytest

from tests.claims.simulated import Law, verdict_on
from vitbench.verdicts import Cell, Expected, Verdict

SIZES = [5, 10, 20, 40, 80, 160]
STUDY = {"models": ["attention:s", "convolution:s"], "images_per_class": SIZES, "seeds": 10}


def law(ratio: float = 2.0, per_doubling: float = -0.2, error: float = 0.3) -> Law:
    """Attention makes `ratio` times the CNN's errors at 5 a class, and 2^per_doubling times that with each doubling."""

    def of(cell: Cell) -> Expected:
        doublings = log2(cell.images / 5)
        cnn = error * 2 ** (-0.3 * doublings)
        return Expected(1 - cnn * (ratio * 2 ** (per_doubling * doublings) if cell.family == "attention" else 1))

    return of


def verdict(of: Law, **study: Any) -> Verdict:
    return verdict_on("attention_catches_up_with_data", of, {**STUDY, **study})


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(), "holds", "The mean is"),
    (law(per_doubling=0), "fails", "The interval ends below the margin"),
    (law(per_doubling=0.1), "fails", "The interval ends below the margin"),
    (law(ratio=1, per_doubling=-0.2), "blocked", "Not behind: at 5 a class (50 drawn images) attention is not shown"),
])
def test_it_decides_by_the_slope_where_attention_is_behind_at_first(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_the_difference_of_accuracies_shrinks_even_where_attention_falls_behind() -> None:
    found = verdict(law(per_doubling=0.05))
    ratio, points = found.effect, found.legs[1].effect
    assert ratio is not None
    assert points is not None
    assert ratio.mean < 0 < points.mean
    assert found.legs[1].outcome is None


def test_sizes_below_five_a_class_are_left_out() -> None:
    found = verdict(law(), images_per_class=[2, *SIZES])
    assert len(found.run_ids) == 2 * len(SIZES) * 10


def test_sizes_at_which_a_model_is_at_chance_do_not_count_and_four_are_not_enough() -> None:
    found = verdict(law(error=0.45), images_per_class=SIZES[:5])
    assert found.outcome == "blocked"
    assert found.sentence == ("It takes 5 sizes of 5 images a class or more at which both models are 0.05 off chance; "
                              "the study has 4: 10 a class, 20 a class, 40 a class, 80 a class")
