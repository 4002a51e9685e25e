"""Aggregates over runs, datasets and pairs of runs."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats import t_interval
from vitbench.stats.aggregates import interquartile_mean, mean_over_datasets, probability_of_improvement

SCORES = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=1, max_size=12)
SEEDS = st.lists(st.integers(-99, 99).map(lambda k: k / 100), min_size=2, max_size=8)
DATASETS = st.lists(SEEDS, min_size=5, max_size=8)


@pytest.mark.parametrize("vector", known("iqm"))
def test_the_interquartile_mean_is_the_known_answer(vector: dict[str, Any]) -> None:
    assert agrees(interquartile_mean(vector["inputs"]["scores_dataset_by_run"]), vector, "iqm")


@given(SCORES, SCORES, st.randoms())
def test_it_is_scipys_trimmed_mean_of_scores_in_any_order(one: list[float], other: list[float], random: Any) -> None:
    pooled = one + other
    assert interquartile_mean([one, other]) == pytest.approx(scipy.stats.trim_mean(pooled, 0.25), abs=1e-12)
    assert interquartile_mean([random.sample(pooled, len(pooled))]) == interquartile_mean([one, other])


@pytest.mark.parametrize("scores", [[], [[]], [[0.1, float("nan")]], [[float("inf")], [0.2]]], ids=str)
def test_no_scores_or_no_numbers_are_refused(scores: Any) -> None:
    with pytest.raises(ValueError, match="expected finite values of layout N >= 1; found"):
        interquartile_mean(scores)


@pytest.mark.parametrize("vector", known("mean_over_datasets"))
def test_the_mean_over_datasets_is_the_known_answer(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    found = mean_over_datasets(given["differences_dataset_by_seed"], level=given["level"], least=2)
    for key in vector["expected"]:
        assert agrees(getattr(found, key), vector, key), key


@given(DATASETS.filter(lambda sets: all(np.ptp(values) > 0 for values in sets)))
def test_two_datasets_have_welchs_degrees_of_freedom(sets: list[list[float]]) -> None:
    found = mean_over_datasets(sets[:2], least=2)
    theirs = scipy.stats.ttest_ind(sets[0], np.negative(sets[1]), equal_var=False)  # the difference is twice the mean
    interval = theirs.confidence_interval()
    expected = (theirs.df, interval.low / 2, interval.high / 2)
    assert (found.df, found.low, found.high) == pytest.approx(expected, abs=1e-9)


@given(DATASETS, st.randoms())
def test_order_of_datasets_and_seeds_is_irrelevant_and_scale_scales(sets: list[list[float]], random: Any) -> None:
    found = mean_over_datasets(sets)
    mixed = [random.sample(values, len(values)) for values in random.sample(sets, len(sets))]
    moved = mean_over_datasets([[-100 * value for value in values] for values in mixed])
    assert (moved.mean, moved.low, moved.high) == pytest.approx(
        (-100 * found.mean, -100 * found.high, -100 * found.low), abs=1e-9)
    assert moved.df == pytest.approx(found.df)


def test_one_dataset_has_the_interval_over_its_seeds() -> None:
    values = [0.01, 0.02, 0.015, 0.03, 0.005, 0.012]
    found, of_seeds = mean_over_datasets([values], least=1), t_interval(values)
    assert (found.low, found.high, found.df) == pytest.approx((of_seeds.low, of_seeds.high, 5))


def test_datasets_without_spread_have_an_interval_of_no_width() -> None:
    found = mean_over_datasets([[0.1] * 6] * 5)
    assert (found.low, found.high, found.df, found.datasets) == (found.mean, found.mean, 25, 5)
    assert found.mean == pytest.approx(0.1)


def test_fewer_than_five_datasets_are_refused() -> None:
    with pytest.raises(ValueError, match="needs 5 at least; found 4"):
        mean_over_datasets([[0.1, 0.2]] * 4)


@pytest.mark.parametrize("values", [[], [0.1], [0.1, float("nan")]], ids=str)
def test_a_dataset_without_two_numbers_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="expected finite values of layout S >= 2; found"):
        mean_over_datasets([[0.1, 0.2]] * 4 + [values])


def test_it_covers_seeds_of_datasets_that_spread_differently() -> None:
    rng, spread = np.random.default_rng(2), np.array([[0.2], [0.5], [1.0], [2.0], [4.0]])
    covered = [found.low <= 0 <= found.high for found in
               (mean_over_datasets(rng.normal(0, spread, (5, 6))) for _ in range(2000))]
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize("vector", known("probability_of_improvement"))
def test_the_probability_of_improvement_is_the_known_answer(vector: dict[str, Any]) -> None:
    for key in ("paired", "unpaired"):
        found = probability_of_improvement(vector["inputs"]["a"], vector["inputs"]["b"], paired=key == "paired")
        assert agrees(found, vector, key), key


@given(SCORES, SCORES)
def test_unpaired_it_is_mann_whitneys_u_in_shares(a: list[float], b: list[float]) -> None:
    u = scipy.stats.mannwhitneyu(a, b, method="asymptotic").statistic if len({*a, *b}) > 1 else len(a) * len(b) / 2
    assert probability_of_improvement(a, b, paired=False) == pytest.approx(u / (len(a) * len(b)))


@given(SCORES, st.randoms(), st.booleans())
def test_both_ways_make_1_in_any_order_and_scale(a: list[float], random: Any, paired: bool) -> None:
    b = random.sample(a, len(a))
    order = random.sample(range(len(a)), len(a))
    found = probability_of_improvement(a, b, paired=paired)
    moved = probability_of_improvement([8 * a[i] for i in order], [8 * b[i] for i in order], paired=paired)
    assert moved == pytest.approx(found)
    assert found + probability_of_improvement(b, a, paired=paired) == pytest.approx(1)


@pytest.mark.parametrize(("a", "b", "paired"), [
    ([], [0.1], False), ([0.1], [float("nan")], False), ([0.1], [0.1, 0.2], True),
])
def test_what_makes_no_pairs_is_refused(a: list[float], b: list[float], paired: bool) -> None:
    with pytest.raises(ValueError, match="found"):
        probability_of_improvement(a, b, paired=paired)
