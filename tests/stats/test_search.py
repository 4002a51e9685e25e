"""What a search of a given length finds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitbench.stats.search import expected_best, quartiles

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=5)


@given(VALUES, st.integers(1, 3))
def test_the_expected_best_is_the_mean_over_all_draws(values: list[float], k: int) -> None:
    draws = list(product(values, repeat=k))
    assert expected_best(values, k) == pytest.approx(sum(map(max, draws)) / len(draws), abs=1e-12)


def test_the_expected_best_of_one_is_the_mean_and_of_many_the_largest() -> None:
    values = [0.2, 0.9, 0.4]
    assert expected_best(values, 1) == pytest.approx(np.mean(values))
    assert expected_best(values, 10_000) == pytest.approx(0.9)


@pytest.mark.parametrize(("values", "k"), [([], 1), ([0.5], 0)])
def test_nothing_drawn_is_an_error(values: list[float], k: int) -> None:
    with pytest.raises(ValueError, match="one value and one draw"):
        expected_best(values, k)


def test_quartiles_are_numpys() -> None:
    assert quartiles([0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx((0.2, 0.3, 0.4))
