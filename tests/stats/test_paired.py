"""Paired t, equivalence, effect sizes."""

from math import inf
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.weightstats import ttost_paired

from tests.known_answers import agrees, known
from vitbench.stats import t_interval
from vitbench.stats.paired import effect_size, paired_t, tost_p

VALUES = st.lists(st.integers(-1000, 1000).map(lambda k: k / 1000), min_size=3, max_size=20).filter(
    lambda values: np.ptp(values) > 0)


@given(VALUES)
def test_the_paired_t_test_is_scipys(values: list[float]) -> None:
    found, theirs = paired_t(values), scipy.stats.ttest_1samp(values, 0)
    expected = (theirs.statistic, theirs.pvalue, theirs.df)
    assert (found.t, found.p, found.df) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.outcome == "tested"


@given(VALUES)
def test_p_is_below_alpha_where_the_interval_excludes_0(values: list[float]) -> None:
    interval = t_interval(values)
    if min(abs(interval.low), abs(interval.high)) > 1e-9:
        assert (paired_t(values).p < 0.05) == (interval.low > 0 or interval.high < 0)


@given(VALUES, st.randoms())
def test_order_sign_and_scale_are_irrelevant(values: list[float], random: Any) -> None:
    p = paired_t(values).p
    for other in (random.sample(values, len(values)), [-value for value in values], [value / 7e6 for value in values]):
        assert paired_t(other).p == pytest.approx(p, rel=1e-9)


def test_differences_without_spread_have_a_named_outcome() -> None:
    zero, equal, negative = paired_t([0.0] * 6), paired_t([0.1] * 6), paired_t([-0.1] * 6)
    assert (zero.t, zero.p, zero.outcome) == (0, 1, "all zero")
    assert (equal.t, equal.p, equal.outcome) == (inf, 0, "all equal")
    assert negative.t == -inf


@pytest.mark.parametrize("vector", known("tost_p"))
def test_the_p_of_equivalence_is_the_known_answer(vector: dict[str, Any]) -> None:
    assert agrees(tost_p(vector["inputs"]["differences"], vector["inputs"]["margin"]), vector, "p")


@given(VALUES, st.sampled_from([0.01, 0.1, 0.5]))
def test_the_p_of_equivalence_is_that_of_statsmodels(values: list[float], margin: float) -> None:
    theirs, *_ = ttost_paired(np.array(values), np.zeros(len(values)), -margin, margin)
    assert tost_p(values, margin) == pytest.approx(theirs, rel=1e-7, abs=1e-12)


@given(VALUES)
def test_values_are_equivalent_where_their_90_percent_interval_lies_inside_the_margin(values: list[float]) -> None:
    interval = t_interval(values, level=0.9)
    reach = max(-interval.low, interval.high)
    assert tost_p(values, reach * 1.0001) < 0.05 < tost_p(values, reach * 0.9999)


@pytest.mark.parametrize(("value", "p"), [(0.0, 0.0), (0.009, 0.0), (0.01, 1.0), (-0.02, 1.0)])
def test_equal_values_are_equivalent_inside_the_margin_alone(value: float, p: float) -> None:
    assert tost_p([value] * 6, 0.01) == p


@pytest.mark.parametrize("margin", [0.0, -0.01, inf, float("nan")])
def test_no_margin_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match=f"found {margin}"):
        tost_p([0.1, 0.2], margin)


@pytest.mark.parametrize("vector", known("effect_size"))
def test_effect_sizes_are_the_known_answer(vector: dict[str, Any]) -> None:
    found = effect_size(vector["inputs"]["differences"])
    for key in vector["expected"]:
        assert agrees(getattr(found, key.lower()), vector, key), key


@given(VALUES)
def test_effect_sizes_are_in_units_of_the_deviation(values: list[float]) -> None:
    found, df = effect_size(values), len(values) - 1
    assert found.cohen_dz == pytest.approx(paired_t(values).t / np.sqrt(len(values)), abs=1e-12)
    j = scipy.special.gamma(df / 2) / (np.sqrt(df / 2) * scipy.special.gamma((df - 1) / 2))
    assert (found.hedges_j, found.hedges_gz) == pytest.approx((j, j * found.cohen_dz), rel=1e-9)
    assert effect_size([100 * value for value in values]).hedges_gz == pytest.approx(found.hedges_gz, abs=1e-9)


def test_hedges_factor_takes_the_bias_away() -> None:
    drawn = np.random.default_rng(4).normal(0.8, 1, (8000, 6))
    found = [effect_size(values) for values in drawn]
    dz, gz = np.array([f.cohen_dz for f in found]), np.array([f.hedges_gz for f in found])
    assert abs(gz.mean() - 0.8) < 4 * gz.std() / np.sqrt(8000)
    assert dz.mean() - 0.8 > 4 * dz.std() / np.sqrt(8000)


def test_without_spread_there_is_no_effect_size() -> None:
    found = effect_size([0.1] * 6)
    assert (found.cohen_dz, found.hedges_gz) == (None, None)


@pytest.mark.parametrize("function", [paired_t, effect_size, lambda values: tost_p(values, 0.1)])
@pytest.mark.parametrize("values", [[], [0.1], [0.1, 0.2, float("nan")], [0.1, 0.2, inf], [[0.1, 0.2, 0.3]]], ids=str)
def test_what_is_no_row_of_differences_is_refused(function: Any, values: Any) -> None:
    with pytest.raises(ValueError, match=r"expected finite values of layout S >= \d; found"):
        function(values)


def test_models_that_differ_by_the_margin_are_called_equivalent_as_often_as_alpha() -> None:
    drawn = np.random.default_rng(9).normal(0.01, 0.02, (3000, 10))  # .01 is half a deviation
    equivalent = np.mean([tost_p(values, 0.01) <= 0.05 for values in drawn])
    assert equivalent < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 3000)
    narrow = np.random.default_rng(9).normal(0.01, 0.002, (3000, 10))
    assert abs(np.mean([tost_p(values, 0.01) <= 0.05 for values in narrow]) - 0.05) < 0.016


def test_the_paired_t_test_rejects_a_true_null_as_often_as_alpha() -> None:
    drawn = np.random.default_rng(10).normal(0, 1, (4000, 6))
    assert abs(np.mean([paired_t(values).p <= 0.05 for values in drawn]) - 0.05) < 0.014
