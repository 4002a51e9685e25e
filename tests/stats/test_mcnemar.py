"""McNemar's test of two trained models."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar

from tests.known_answers import agrees, known
from vitbench.stats.mcnemar import mcnemar_by_seed, mcnemar_p

COUNT = st.integers(0, 300)


@pytest.mark.parametrize("vector", known("mcnemar_exact"))
def test_the_p_is_the_known_answer(vector: dict[str, Any]) -> None:
    assert agrees(mcnemar_p(vector["inputs"]["only_a_right"], vector["inputs"]["only_b_right"]), vector, "p")


@given(COUNT, COUNT)
def test_the_p_is_that_of_statsmodels_and_the_same_from_both_sides(only_a: int, only_b: int) -> None:
    theirs = mcnemar([[7, only_a], [only_b, 5]], exact=True).pvalue if only_a + only_b else 1.0
    assert mcnemar_p(only_a, only_b) == pytest.approx(theirs, rel=1e-9, abs=1e-15)
    assert mcnemar_p(only_b, only_a) == mcnemar_p(only_a, only_b)


def test_every_seed_has_a_test_of_its_own() -> None:
    a, b = np.zeros((2, 20), dtype=bool), np.zeros((2, 20), dtype=bool)
    a[0, :10], b[0, 10:13] = True, True
    a[1], b[1] = True, True
    assert mcnemar_by_seed(a, b) == [mcnemar_p(10, 3), 1.0]


@given(st.randoms())
def test_the_order_of_images_is_irrelevant(random: Any) -> None:
    hits = np.random.default_rng(random.randrange(1000)).random((2, 3, 40)) < 0.6
    order = random.sample(range(40), 40)
    assert mcnemar_by_seed(*hits) == mcnemar_by_seed(*hits[:, :, order])


@pytest.mark.parametrize(("a", "b"), [((2, 5), (2, 6)), ((2, 5), (3, 5)), ((5,), (5,))])
def test_hits_of_other_shapes_are_refused(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="seeds x images, alike; found"):
        mcnemar_by_seed(np.zeros(a, dtype=bool), np.zeros(b, dtype=bool))


@pytest.mark.parametrize(("only_a", "only_b"), [(-1, 3), (3, -1)])
def test_a_negative_count_is_refused(only_a: int, only_b: int) -> None:
    with pytest.raises(ValueError, match=f"found {only_a} and {only_b}"):
        mcnemar_p(only_a, only_b)
