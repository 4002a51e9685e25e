"""Ranks of models."""

from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
import scikit_posthocs
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats.ranks import critical_difference, friedman, kendall_tau_b, rank_groups

SCORE = st.integers(0, 6).map(lambda k: k / 6)
PAIR = st.lists(st.tuples(SCORE, SCORE), min_size=2, max_size=10)
BLOCKS = st.integers(3, 6).flatmap(lambda models: st.lists(
    st.lists(SCORE, min_size=models, max_size=models), min_size=3, max_size=9))


@pytest.mark.parametrize("vector", known("kendall_tau_b"))
def test_kendalls_tau_is_the_known_answer(vector: dict[str, Any]) -> None:
    found = kendall_tau_b(vector["inputs"]["a"], vector["inputs"]["b"])
    for key in vector["expected"]:
        assert agrees(getattr(found, key), vector, key), key


@given(PAIR)
def test_kendalls_tau_is_scipys(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs, strict=True)
    theirs = scipy.stats.kendalltau(a, b).statistic
    found = kendall_tau_b(a, b).tau_b
    assert np.isnan(theirs) if found is None else found == pytest.approx(theirs, abs=1e-12)


@given(PAIR, st.randoms())
def test_order_and_any_rising_scale_are_irrelevant_to_kendalls_tau(pairs: Any, random: Any) -> None:
    a, b = zip(*pairs, strict=True)
    moved_a, moved_b = zip(*random.sample(pairs, len(pairs)), strict=True)
    found = kendall_tau_b(a, b)
    assert kendall_tau_b(np.exp(moved_a), 3 * np.array(moved_b) - 1) == found
    assert kendall_tau_b(np.negative(a), b).discordant == found.concordant


def test_a_score_that_ties_all_models_has_no_tau() -> None:
    assert kendall_tau_b([0.5, 0.5, 0.5], [0.1, 0.2, 0.3]).tau_b is None


@pytest.mark.parametrize(("a", "b"), [
    ([], []), ([0.1], [0.1]), ([0.1, 0.2], [0.1, 0.2, 0.3]), ([0.1, inf], [0.1, 0.2]),
])
def test_what_is_no_pair_of_rankings_is_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="found"):
        kendall_tau_b(a, b)


@pytest.mark.parametrize("vector", known("friedman_nemenyi"))
def test_friedman_and_nemenyi_are_the_known_answer(vector: dict[str, Any]) -> None:
    scores = vector["inputs"]["scores_block_by_model"]
    found, expected = friedman(scores), vector["expected"]
    difference = critical_difference(len(scores[0]), len(scores), alpha=vector["inputs"]["alpha"])
    assert agrees(found.mean_rank_M, vector, "mean_rank")
    for value, key in ((found.chi2, "chi2"), (found.kendall_w, "kendall_W"), (difference.q, "q"),
                       (found.iman_davenport_f, "iman_davenport_F"), (difference.value, "critical_difference")):
        assert agrees(value, vector, key), key
    assert rank_groups(found.mean_rank_M, difference) == expected["groups"]


@pytest.mark.parametrize("vector", known("critical_difference"))
def test_critical_differences_are_the_known_answer(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    found = critical_difference(given["models"], given["blocks"], alpha=given["alpha"])
    assert agrees(found.value, vector, "critical_difference")
    assert agrees(found.can_separate, vector, "can_separate")


@pytest.mark.parametrize("models", [2, 3, 5, 10, 30])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_q_is_scipys_studentised_range(models: int, alpha: float) -> None:
    theirs = scipy.stats.studentized_range.ppf(1 - alpha, models, np.inf) / sqrt(2)
    assert critical_difference(models, 10, alpha=alpha).q == pytest.approx(theirs, rel=1e-7)


@given(BLOCKS)
def test_friedmans_chi2_is_scipys(scores: list[list[float]]) -> None:
    found = friedman(scores)
    if all(np.ptp(block) == 0 for block in scores):  # scipy's is nan
        assert (found.chi2, found.p, found.f_p) == (0, 1, 1)
        return
    theirs = scipy.stats.friedmanchisquare(*np.transpose(scores))
    assert (found.chi2, found.p) == pytest.approx((theirs.statistic, theirs.pvalue), abs=1e-9)


@given(BLOCKS, st.randoms())
def test_order_of_blocks_and_scale_within_a_block_are_irrelevant(scores: list[list[float]], random: Any) -> None:
    found = friedman(scores)
    moved = friedman([np.multiply(random.choice((0.5, 4.0)), block) for block in random.sample(scores, len(scores))])
    assert moved.mean_rank_M == pytest.approx(found.mean_rank_M)
    assert moved.chi2 == pytest.approx(found.chi2)


def test_blocks_that_all_agree_have_an_infinite_f() -> None:
    found = friedman([[0.9, 0.8, 0.7]] * 5)
    assert (found.kendall_w, found.iman_davenport_f, found.f_p) == (1, inf, 0)


def test_groups_are_those_of_nemenyis_test() -> None:
    rng = np.random.default_rng(6)
    for _ in range(10):
        scores = rng.normal([0, 0.3, 1, 1.4, 2], 0.6, (12, 5))
        groups = rank_groups(friedman(scores).mean_rank_M, critical_difference(5, 12))
        together = {(a, b) for group in groups for a in group for b in group}
        p = scikit_posthocs.posthoc_nemenyi_friedman(scores).to_numpy()
        assert together == {(a, b) for a in range(5) for b in range(5) if p[a, b] > 0.05}


def test_a_model_on_its_own_is_a_group() -> None:
    assert rank_groups([1.0, 3.9, 2.9, 2.2], critical_difference(4, 20)) == [[0], [3, 2], [2, 1]]


def test_groups_are_refused_where_the_critical_difference_cannot_be_reached() -> None:
    with pytest.raises(ValueError, match=r"7 models over 2 blocks have a critical difference of 6\.37, which no mean"):
        rank_groups([1, 2, 3, 4, 5, 6, 7], critical_difference(7, 2))
    with pytest.raises(ValueError, match="critical difference of 4 models; found"):
        rank_groups([1, 2, 3], critical_difference(4, 20))


@pytest.mark.parametrize("scores", [
    [], [[0.1, 0.2]], [[0.1], [0.2]], [[0.1, 0.2], [0.1]], [[0.1, 0.2], [0.1, inf]]], ids=str)
def test_too_few_blocks_or_models_are_refused(scores: Any) -> None:
    with pytest.raises(ValueError, match="expected finite values of layout B >= 2 x M >= 2; found"):
        friedman(scores)


@pytest.mark.parametrize(("models", "blocks", "alpha"), [(1, 5, 0.05), (3, 0, 0.05), (3, 5, 0.0), (3, 5, float("nan"))])
def test_no_difference_of_one_model_or_of_no_blocks(models: int, blocks: int, alpha: float) -> None:
    with pytest.raises(ValueError, match=f"found {models}, {blocks} and {alpha}"):
        critical_difference(models, blocks, alpha=alpha)


def test_models_that_are_alike_are_told_apart_as_often_as_alpha() -> None:
    rng, studies, difference = np.random.default_rng(3), 1500, critical_difference(4, 20)
    f_p, apart = np.zeros(studies), np.zeros(studies)
    for study in range(studies):
        found = friedman(rng.normal(0, 1, (20, 4)))
        f_p[study] = found.f_p
        apart[study] = len(rank_groups(found.mean_rank_M, difference)) > 1
    error = 4 * np.sqrt(0.05 * 0.95 / studies)
    assert abs(np.mean(f_p <= 0.05) - 0.05) < error
    assert np.mean(apart) < 0.05 + error
