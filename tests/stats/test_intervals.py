from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats import FEW_SEEDS, t_interval

VALUES = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 6)), min_size=2, max_size=30)


@pytest.mark.parametrize("vector", known("t_interval"))
def test_intervals_are_the_known_ones(vector: dict[str, Any]) -> None:
    found = t_interval(vector["inputs"]["values"], level=vector["inputs"]["level"])
    for key in ("mean", "sd", "low", "high"):
        assert agrees(getattr(found, key), vector, key), key


@given(VALUES.filter(lambda v: np.ptp(v) > 1e-3), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_is_scipys(values: list[float], level: float) -> None:
    found = t_interval(values, level=level)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-9)


@given(st.floats(-1e6, 1e6), st.integers(2, 50))
def test_equal_values_have_an_interval_of_no_width(value: float, n: int) -> None:
    found = t_interval([value] * n)
    assert (found.mean, found.low, found.high, found.sd) == (value, value, value, 0.0)


@given(VALUES, st.randoms())
def test_the_order_of_seeds_is_irrelevant(values: list[float], random: Any) -> None:
    shuffled = random.sample(values, len(values))
    one, other = t_interval(values), t_interval(shuffled)
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9, abs=1e-9)


@given(VALUES)
def test_a_higher_level_is_wider(values: list[float]) -> None:
    narrow, wide = t_interval(values, level=0.9), t_interval(values, level=0.99)
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low <= narrow.low <= narrow.mean


def test_one_seed_has_a_mean_and_no_interval() -> None:
    found = t_interval([0.9])
    assert (found.mean, found.low, found.high, found.sd, found.n) == (0.9, None, None, None, 1)


@pytest.mark.parametrize(("n", "few"), [(1, True), (2, True), (5, True), (6, False), (30, False)])
def test_fewer_than_six_seeds_are_marked(n: int, few: bool) -> None:
    assert FEW_SEEDS == 6
    assert t_interval([0.1 * i for i in range(n)]).few_seeds is few


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, float("inf")]], ids=str)
def test_no_values_or_values_that_are_no_numbers_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value, all finite"):
        t_interval(values)


@pytest.mark.parametrize("n", [3, 6, 10])
def test_the_interval_covers_ninety_five_percent(n: int) -> None:
    # 4,000 draws: the standard error of a coverage of .95 is .0034.
    drawn = np.random.default_rng(n).standard_normal((4000, n))
    covered = np.mean([i.low <= 0 <= i.high for i in map(t_interval, drawn)])
    assert abs(covered - 0.95) < 0.014


def test_the_coverage_test_can_fail() -> None:
    # A normal quantile in place of Student's covers about 81 % at three seeds.
    drawn = np.random.default_rng(3).standard_normal((4000, 3))
    half = 1.96 * drawn.std(axis=1, ddof=1) / np.sqrt(3)
    assert np.mean(np.abs(drawn.mean(axis=1)) <= half) < 0.85
