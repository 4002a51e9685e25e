"""Variance parts of a crossed design."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from tests.known_answers import agrees, known
from vitbench.stats.variance import variance_parts


@pytest.mark.parametrize("vector", known("variance_parts"))
def test_the_parts_are_the_known_answer(vector: dict[str, Any]) -> None:
    found = variance_parts(vector["inputs"]["score_subset_by_init_by_order"])
    for key in vector["expected"]:
        assert agrees(getattr(found, key), vector, key), key
    assert found.initialisation < 0  # shown as it is


def test_the_mean_squares_are_those_of_statsmodels() -> None:
    scores = np.random.default_rng(1).normal(0, 1, (5, 4, 2))
    u, v, _ = (index.ravel() for index in np.indices(scores.shape))
    table = anova_lm(ols("score ~ C(u) * C(v)", pd.DataFrame({"score": scores.ravel(), "u": u, "v": v})).fit())
    ms_u, ms_v, ms_uv, ms_w = table["mean_sq"]
    found = variance_parts(scores)
    assert (found.subset, found.initialisation, found.interaction, found.order) == pytest.approx(
        ((ms_u - ms_uv) / 8, (ms_v - ms_uv) / 10, (ms_uv - ms_w) / 2, ms_w))


@given(st.integers(0, 999))
def test_order_and_shift_are_irrelevant_and_scale_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, (3, 4, 2))
    moved = scores[rng.permutation(3)][:, rng.permutation(4)][:, :, ::-1]
    found, other, turned = (variance_parts(x) for x in (scores, 5 - 10 * moved, moved.swapaxes(0, 1)))
    for key in ("subset", "initialisation", "interaction", "order"):
        assert getattr(other, key) == pytest.approx(100 * getattr(found, key))
    assert (turned.subset, turned.initialisation) == pytest.approx((found.initialisation, found.subset))


def test_the_parts_are_those_planted_on_average() -> None:
    rng, planted = np.random.default_rng(5), {"subset": 4.0, "initialisation": 1.0, "interaction": 0.25, "order": 2.25}
    found = []
    for _ in range(3000):
        u, v, uv, w = (rng.normal(0, np.sqrt(part), shape) for part, shape in zip(
            planted.values(), [(5, 1, 1), (1, 5, 1), (5, 5, 1), (5, 5, 2)], strict=True))
        found.append(variance_parts(u + v + uv + w))
    for key, part in planted.items():
        estimates = np.array([getattr(parts, key) for parts in found])
        assert abs(estimates.mean() - part) < 4 * estimates.std() / np.sqrt(len(found)), key


def test_equal_scores_have_no_variance() -> None:
    found = variance_parts(np.full((5, 5, 2), 0.5))
    assert (found.subset, found.initialisation, found.interaction, found.order) == (0, 0, 0, 0)


@pytest.mark.parametrize("shape", [(1, 2, 2), (2, 1, 2), (2, 2, 1), (2, 2), (0, 2, 2)])
def test_fewer_than_two_of_each_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected finite values of layout U >= 2 x V >= 2 x W >= 2; found"):
        variance_parts(np.zeros(shape))


def test_an_unbalanced_design_or_a_missing_run_is_refused() -> None:
    for scores in ([[[0.1, 0.2], [0.1]], [[0.1, 0.2], [0.3, 0.4]]], np.full((2, 2, 2), np.nan)):
        with pytest.raises(ValueError, match="found"):
            variance_parts(scores)
