"""Slopes over training images."""

from math import log2
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats import t_interval
from vitbench.stats.slopes import log2_error_ratio, slopes_per_doubling

SIZES = [30, 120, 480, 1920]
ROWS = st.lists(st.lists(st.integers(-99, 99).map(lambda k: k / 50), min_size=4, max_size=4), min_size=1, max_size=6)


@pytest.mark.parametrize("vector", known("log2_error_ratio"))
def test_the_error_ratio_is_the_known_answer(vector: dict[str, Any]) -> None:
    assert agrees(float(log2_error_ratio(vector["inputs"]["wrong_a"], vector["inputs"]["wrong_b"])), vector, "value")


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_the_error_ratio_turns_round_with_the_models(a: int, b: int) -> None:
    ratio = log2((2 * a + 1) / (2 * b + 1))
    assert log2_error_ratio([a, b], [b, a]) == pytest.approx([ratio, -ratio])


@pytest.mark.parametrize(("a", "b"), [(-1, 2), (float("nan"), 2), ([1, 2], [1, 2, 3]), (1, float("inf"))])
def test_what_is_no_count_is_refused(a: Any, b: Any) -> None:
    with pytest.raises(ValueError, match="counted from 0 on, alike for both; found"):
        log2_error_ratio(a, b)


@pytest.mark.parametrize("vector", known("per_seed_slope"))
def test_slopes_and_their_interval_are_the_known_answer(vector: dict[str, Any]) -> None:
    slopes_S = slopes_per_doubling(vector["inputs"]["log2_error_ratio_seed_by_size"], vector["inputs"]["sizes"])
    assert agrees(slopes_S, vector, "slopes")
    interval = t_interval(slopes_S)
    for key in ("mean", "low", "high"):
        assert agrees(getattr(interval, key), vector, key), key


@given(ROWS)
def test_a_slope_is_scipys_least_squares(rows: list[list[float]]) -> None:
    theirs = [scipy.stats.linregress(np.log2(SIZES), row).slope for row in rows]
    assert slopes_per_doubling(rows, SIZES) == pytest.approx(theirs, abs=1e-12)


@given(ROWS, st.randoms())
def test_order_of_sizes_and_their_unit_are_irrelevant(rows: list[list[float]], random: Any) -> None:
    order = random.sample(range(4), 4)
    moved = slopes_per_doubling([[5 * row[i] + 1 for i in order] for row in rows], [10 * SIZES[i] for i in order])
    assert moved == pytest.approx(5 * slopes_per_doubling(rows, SIZES), abs=1e-9)


@pytest.mark.parametrize(("rows", "sizes"), [
    ([], SIZES), ([[0.1, 0.2]], [10]), ([[0.1, 0.2]], [10, 10]), ([[0.1, 0.2]], [0, 10]),
    ([[0.1, float("nan")]], [1, 2]), ([[0.1]], [10]), ([[0.1, 0.2], [0.1]], [1, 2]),
])
def test_what_has_no_slope_is_refused(rows: Any, sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="found"):
        slopes_per_doubling(rows, sizes)
