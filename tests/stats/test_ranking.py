"""Whether a ranking flips."""

from typing import Any

import numpy as np
import pytest

from tests.known_answers import known
from vitbench.stats import t_interval
from vitbench.stats.ranking import Change, change, outcome


def changed(before: list[float], after: list[float], *, margin: float = 0.01, comparisons: int = 1) -> Change:
    """By the t interval over seeds."""
    strict, usual = ((t_interval(before, level=level), t_interval(after, level=level))
                     for level in (1 - 0.05 / comparisons, 0.95))
    return change(strict, usual, margin=margin)


@pytest.mark.parametrize("vector", known("ranking_flip"))
def test_flips_are_the_known_answer(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    pairs = list(zip(given["before_pair_by_seed"], given["after_pair_by_seed"], strict=True))
    found = [changed(before, after, margin=given["margin"], comparisons=len(pairs)) for before, after in pairs]
    assert [one.flips for one in found] == vector["expected"]["flips"]
    assert [one.stays for one in found] == vector["expected"]["no_flip"]
    assert outcome(found) == vector["expected"]["verdict"]


def test_without_a_pair_nothing_is_decided() -> None:
    with pytest.raises(ValueError, match="found none"):
        outcome([])


def test_nothing_is_decided_below_six_seeds() -> None:
    before, after = [-0.05, -0.051, -0.049, -0.05, -0.052], [0.05, 0.051, 0.049, 0.05, 0.052]
    found = changed(before, after)
    assert not found.flips
    assert not found.stays
    assert changed([*before, -0.05], [*after, 0.05]).flips


def test_a_difference_below_the_margin_is_no_flip_however_sure() -> None:
    tiny = [0.004, 0.0041, 0.0039, 0.004, 0.0042, 0.004]
    assert not changed([-v for v in tiny], tiny).flips
    assert changed([-v for v in tiny], tiny, margin=0.003).flips


def test_a_mean_of_decimals_meets_the_margin_and_the_number_of_comparisons_widens_the_interval() -> None:
    before, after = [0.29 - 0.3, 0.28 - 0.3, 0.3 - 0.3] * 2, [0.05] * 6
    assert sum(before) / 6 > -0.01  # by rounding alone
    assert changed(before, after, margin=0.01).flips
    assert not changed(before, after, margin=0.01, comparisons=10).flips


def test_identical_models_flip_in_at_most_one_of_four_hundred_studies() -> None:
    rng = np.random.default_rng(3)
    flips = sum(changed(list(rng.normal(0, 0.02, 6)), list(rng.normal(0, 0.02, 6))).flips for _ in range(400))
    assert flips <= 1
