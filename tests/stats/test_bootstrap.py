"""Bootstrap intervals of a mean."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import known
from vitbench.stats import t_interval
from vitbench.stats.bootstrap import bca_interval, percentile_interval, studentised_interval

ALL = [percentile_interval, bca_interval, studentised_interval]
SCORES = st.lists(st.integers(0, 1000).map(lambda k: k / 1000), min_size=4, max_size=12, unique=True)


def drawn(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("method", "interval"), [("percentile", percentile_interval), ("bca", bca_interval)])
@pytest.mark.parametrize("vector", known("bootstrap_mean"))
def test_the_ends_lie_where_those_of_the_ideal_bootstrap_do(vector: dict[str, Any], method: str, interval: Any) -> None:
    given, expected = vector["inputs"], vector["expected"]
    for seed in range(5):
        found = interval(given["values"], rng=drawn(seed), level=given["level"], resamples=given["n_resamples"])
        for end, key in ((found.low, "low"), (found.high, "high")):
            low, high = expected[f"{method}_{key}_range"]
            assert low - vector["tolerance"] <= end <= high + vector["tolerance"]


@pytest.mark.parametrize(("method", "interval"), [("percentile", percentile_interval), ("BCa", bca_interval)])
@given(SCORES)
def test_percentile_and_bca_are_scipys(method: Any, interval: Any, values: list[float]) -> None:
    found = interval(values, rng=drawn(), resamples=500)
    theirs = scipy.stats.bootstrap((sorted(values),), np.mean, n_resamples=500, method=method, rng=drawn())
    assert (found.low, found.high) == tuple(theirs.confidence_interval)


def test_the_studentised_ends_are_those_of_all_resamples() -> None:
    values = np.array([0.012, 0.031, 0.008, 0.024, -0.003, 0.018])
    resamples = np.array(list(product(values, repeat=6)))
    sd = resamples.std(axis=1, ddof=1)
    spread = np.ptp(resamples, axis=1) > 0  # all but six of 46,656
    t = np.sort((resamples.mean(axis=1) - values.mean())[spread] / sd[spread])
    ideal = values.mean() - np.quantile(t, (0.975, 0.025)) * values.std(ddof=1)
    found = studentised_interval(values, rng=drawn(), resamples=40_000)
    width = ideal[1] - ideal[0]
    assert (found.low, found.high) == pytest.approx(tuple(ideal), abs=0.05 * width)
    assert found.low < t_interval(values).mean < found.high


def test_the_studentised_interval_is_near_t_for_symmetric_values_and_reaches_to_the_longer_tail_else() -> None:
    share = (np.arange(20) + 0.5) / 20
    symmetric, skewed = scipy.stats.norm.ppf(share), scipy.stats.expon.ppf(share)
    for values, longer in ((symmetric, 1.0), (skewed, 1.3)):
        found, t = studentised_interval(values, rng=drawn()), t_interval(values)
        ratio = (found.high - found.mean) / (t.high - t.mean)
        assert ratio == pytest.approx(1, abs=0.05) if longer == 1 else ratio > longer


def test_three_seeds_have_no_studentised_interval() -> None:
    found = studentised_interval([0.1, 0.2, 0.4], rng=drawn())
    assert (found.low, found.high) == (-np.inf, np.inf)


@pytest.mark.parametrize("interval", ALL)
def test_the_generator_alone_decides_what_is_drawn(interval: Any) -> None:
    values = [0.1, 0.25, 0.4, 0.3, 0.62, 0.21, 0.05]
    np.random.seed(0)  # a global state that nobody reads
    first = interval(values, rng=drawn(1), resamples=300)
    np.random.seed(1)
    assert interval(values, rng=drawn(1), resamples=300) == first
    assert interval(values, rng=drawn(2), resamples=300) != first


@pytest.mark.parametrize("interval", ALL)
@given(SCORES, st.randoms())
def test_order_and_scale_are_irrelevant(interval: Any, values: list[float], random: Any) -> None:
    found = interval(values, rng=drawn(), resamples=200)
    assert interval(random.sample(values, len(values)), rng=drawn(), resamples=200) == found
    doubled = interval([2 * value for value in values], rng=drawn(), resamples=200)  # exact in binary
    assert (doubled.low, doubled.high) == pytest.approx((2 * found.low, 2 * found.high))


@pytest.mark.parametrize("interval", ALL)
def test_equal_values_have_no_width_and_one_value_no_interval(interval: Any) -> None:
    found = interval([0.3] * 6, rng=drawn())
    assert (found.mean, found.low, found.high) == (0.3, 0.3, 0.3)
    assert interval([0.3], rng=drawn()) == t_interval([0.3])


@pytest.mark.parametrize("interval", ALL)
@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [1.0, float("inf")], [[1.0, 2.0]]], ids=str)
def test_what_is_no_row_of_numbers_is_refused(interval: Any, values: list[float]) -> None:
    with pytest.raises(ValueError, match="expected finite values of layout S >= 1; found"):
        interval(values, rng=drawn())
