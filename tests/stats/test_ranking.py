"""Whether a ranking flips."""

from typing import Any

import numpy as np
import pytest

from tests.known_answers import known
from vitbench.stats.ranking import change


@pytest.mark.parametrize("vector", known("ranking_flip"))
def test_flips_are_the_known_answer(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    pairs = list(zip(given["before_pair_by_seed"], given["after_pair_by_seed"], strict=True))
    found = [change(before, after, margin=given["margin"], comparisons=len(pairs)) for before, after in pairs]
    assert [one.flips for one in found] == vector["expected"]["flips"]
    assert [one.stays for one in found] == vector["expected"]["no_flip"]


def test_nothing_is_decided_below_six_seeds() -> None:
    before, after = [-0.05, -0.051, -0.049, -0.05, -0.052], [0.05, 0.051, 0.049, 0.05, 0.052]
    found = change(before, after, margin=0.01, comparisons=1)
    assert not found.flips
    assert not found.stays
    assert change([*before, -0.05], [*after, 0.05], margin=0.01, comparisons=1).flips


def test_a_difference_below_the_margin_is_no_flip_however_sure() -> None:
    tiny = [0.004, 0.0041, 0.0039, 0.004, 0.0042, 0.004]
    assert not change([-v for v in tiny], tiny, margin=0.01, comparisons=1).flips
    assert change([-v for v in tiny], tiny, margin=0.003, comparisons=1).flips


def test_identical_models_flip_in_at_most_one_of_four_hundred_studies() -> None:
    rng = np.random.default_rng(3)
    flips = sum(change(list(rng.normal(0, 0.02, 6)), list(rng.normal(0, 0.02, 6)), margin=0.01, comparisons=1).flips
                for _ in range(400))
    assert flips <= 1
