"""Many comparisons."""

from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from tests.known_answers import agrees, known
from vitbench.stats import sign_flip_p
from vitbench.stats.multiplicity import holm, seeds_for_holm_sign_flip, step_down_max_t
from vitbench.stats.sign_flip import SAMPLES

P = st.lists(st.integers(0, 1000).map(lambda k: k / 1000), min_size=1, max_size=12)
ROWS = st.integers(2, 6).flatmap(lambda n: st.lists(
    st.lists(st.integers(-9, 9).map(lambda k: k / 10), min_size=n, max_size=n), min_size=1, max_size=4))


@pytest.mark.parametrize("vector", known("holm"))
def test_holms_p_is_the_known_answer(vector: dict[str, Any]) -> None:
    assert agrees(holm(vector["inputs"]["p"]), vector, "adjusted")


@given(P)
def test_holms_p_is_that_of_statsmodels(p: list[float]) -> None:
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-15)


@given(P, st.randoms())
def test_the_order_of_comparisons_is_irrelevant_to_holm(p: list[float], random: Any) -> None:
    order = random.sample(range(len(p)), len(p))
    assert list(holm([p[i] for i in order])) == [holm(p)[i] for i in order]


@pytest.mark.parametrize("p", [[], [0.5, float("nan")], [-0.1], [0.2, 1.1]], ids=str)
def test_what_is_no_p_is_refused(p: list[float]) -> None:
    with pytest.raises(ValueError, match="found"):
        holm(p)


@pytest.mark.parametrize("vector", known("stepdown_maxT"))
def test_max_t_is_the_known_answer(vector: dict[str, Any]) -> None:
    found = step_down_max_t(vector["inputs"]["differences_by_comparison"])
    assert agrees(found.adjusted_M, vector, "adjusted")
    assert np.allclose(found.abs_t_M, vector["expected"]["abs_t"], rtol=1e-11)


def by_definition(rows: list[list[float]]) -> list[float]:
    """Step-down max-T in tenths: whole numbers, so that no tie is missed. t^2 rises with sum^2 / sum of squares."""
    tenths = np.round(10 * np.array(rows)).astype(int)
    size = np.maximum((tenths**2).sum(axis=1), 1)
    scale = int(np.lcm.reduce(size))
    squared = [int(s) ** 2 * (scale // int(n)) for s, n in zip(tenths.sum(axis=1), size, strict=True)]
    order, adjusted, largest = sorted(range(len(rows)), key=lambda m: -squared[m]), [0.0] * len(rows), 0.0
    for place, m in enumerate(order):
        hits = 0
        for signs in product((-1, 1), repeat=tenths.shape[1]):
            sums = tenths @ np.array(signs)
            hits += max(int(sums[o]) ** 2 * (scale // int(size[o])) for o in order[place:]) >= squared[m]
        largest = adjusted[m] = max(largest, hits / 2 ** tenths.shape[1])
    return adjusted


@given(ROWS)
def test_max_t_counts_every_pattern(rows: list[list[float]]) -> None:
    assert list(step_down_max_t(rows).adjusted_M) == by_definition(rows)


@given(ROWS, st.randoms())
def test_order_sign_and_scale_are_irrelevant_to_max_t(rows: list[list[float]], random: Any) -> None:
    found = list(step_down_max_t(rows).adjusted_M)
    order, seeds = random.sample(range(len(rows)), len(rows)), random.sample(range(len(rows[0])), len(rows[0]))
    moved = [[-3e-5 * rows[m][s] for s in seeds] for m in order]
    assert list(step_down_max_t(moved).adjusted_M) == [found[m] for m in order]


@given(ROWS)
def test_max_t_is_the_sign_flip_p_of_one_comparison_and_never_below_it_for_more(rows: list[list[float]]) -> None:
    assert step_down_max_t(rows[:1]).adjusted_M[0] == sign_flip_p(rows[0])
    assert all(step_down_max_t(rows).adjusted_M >= [sign_flip_p(row) for row in rows])


def test_comparisons_that_depend_on_each_other_cost_less_than_under_holm() -> None:
    values = np.array([0.03, 0.01, 0.02, 0.025, 0.04, 0.015, 0.022])
    copies = step_down_max_t([values, values, values]).adjusted_M
    assert list(copies) == [2 / 128] * 3
    assert all(holm([sign_flip_p(values)] * 3) == 6 / 128)


def test_equal_differences_have_an_infinite_t_and_zeros_have_none() -> None:
    found = step_down_max_t([[0.1] * 6, [0.0] * 6])
    assert list(found.abs_t_M) == [inf, 0]
    assert list(found.adjusted_M) == [2 / 64, 1]


def test_a_sampled_max_t_follows_its_generator_and_is_never_0() -> None:
    rows = np.random.default_rng(1).normal([[0.0], [0.35], [3.0]], 1, (3, 25))
    found = [step_down_max_t(rows, rng=np.random.default_rng(seed)).adjusted_M for seed in (1, 1, 2)]
    assert list(found[0]) == list(found[1]) != list(found[2])
    assert found[0][2] == 1 / (SAMPLES + 1)
    assert np.abs(found[0] - found[2]).max() < 4 * np.sqrt(2 * 0.25 / SAMPLES)


@pytest.mark.parametrize(("rows", "message"), [
    ([], "layout M"), ([[0.1], [0.2]], "two seeds"), ([[0.1, 0.2], [0.1]], "layout M"), ([[0.1, float("nan")]], "nan"),
    ([0.1, 0.2], "layout M"), (np.ones((2, 21)), "give a generator"),
])
def test_what_cannot_be_compared_is_refused(rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        step_down_max_t(rows)


def test_max_t_rejects_a_true_null_at_most_as_often_as_it_says() -> None:
    rng, studies = np.random.default_rng(8), 1500
    wrong = 0
    for _ in range(studies):
        scores = rng.normal(0, 1, (4, 6))
        wrong += step_down_max_t(scores[1:] - scores[:1]).adjusted_M.min() <= 0.05
    assert wrong / studies < 0.05 + 4 * np.sqrt(0.05 * 0.95 / studies)


@pytest.mark.parametrize("vector", known("seeds_for_holm_signflip"))
def test_seeds_for_holm_are_the_known_answer(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    assert agrees(seeds_for_holm_sign_flip(given["comparisons"], alpha=given["alpha"]), vector, "seeds")


@pytest.mark.parametrize("comparisons", [1, 2, 3, 6, 10, 28])
def test_one_seed_fewer_rejects_nothing_however_large_the_differences(comparisons: int) -> None:
    needed = seeds_for_holm_sign_flip(comparisons)
    for seeds, rejects in ((needed, True), (needed - 1, False)):
        assert bool((holm([sign_flip_p([1.0] * seeds)] * comparisons) <= 0.05).any()) is rejects


@given(st.integers(1, 16))
def test_a_level_that_is_met_exactly_is_enough(seeds: int) -> None:
    assert seeds_for_holm_sign_flip(1, alpha=2 / 2**seeds) == seeds if seeds > 1 else True


@pytest.mark.parametrize(("comparisons", "alpha"), [(0, 0.05), (1, 0.0), (1, 1.0), (1, float("nan"))])
def test_no_comparison_or_no_level_is_refused(comparisons: int, alpha: float) -> None:
    with pytest.raises(ValueError, match=f"found {comparisons} and {alpha}"):
        seeds_for_holm_sign_flip(comparisons, alpha=alpha)
