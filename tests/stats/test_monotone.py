from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from tests.known_answers import known
from vitbench.stats.monotone import falling, falling_blocks, pooled

errors_and_weights = st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 100)), min_size=1, max_size=12)


@pytest.mark.parametrize("vector", known("monotone_error"))
def test_the_estimate_is_the_known_one(vector: dict[str, Any]) -> None:
    found = falling(vector["inputs"]["errors"], vector["inputs"]["weights"])
    assert found == pytest.approx(vector["expected"]["fitted"], abs=vector["tolerance"])


@given(errors_and_weights)
def test_it_is_that_of_scikit_learn(pairs: list[tuple[float, float]]) -> None:
    errors, weights = map(np.array, zip(*pairs, strict=True))
    theirs = IsotonicRegression(increasing=False).fit_transform(np.arange(len(errors)), errors, sample_weight=weights)
    assert falling(errors, weights) == pytest.approx(theirs, abs=1e-9)


@given(errors_and_weights)
def test_it_never_rises_keeps_the_weighted_mean_and_is_its_own_estimate(pairs: list[tuple[float, float]]) -> None:
    errors, weights = map(np.array, zip(*pairs, strict=True))
    found = falling(errors, weights)
    assert (np.diff(found) <= 1e-12).all()
    assert found @ weights == pytest.approx(errors @ weights)
    assert falling(found, weights) == pytest.approx(found, abs=1e-12)


@given(errors_and_weights)
def test_blocks_cover_the_sizes_in_order(pairs: list[tuple[float, float]]) -> None:
    errors, weights = map(list, zip(*pairs, strict=True))
    places = [i for block in falling_blocks(errors, weights) for i in range(len(errors))[block]]
    assert places == list(range(len(errors)))


def test_a_falling_curve_stays_as_it_is() -> None:
    assert falling([0.5, 0.3, 0.3, 0.1]).tolist() == [0.5, 0.3, 0.3, 0.1]
    assert len(falling_blocks([0.5, 0.3, 0.3, 0.1])) == 4


def test_seeds_are_pooled_over_the_sizes_of_their_mean() -> None:
    seeds = np.array([[0.4, 0.2, 0.4], [0.6, 0.2, 0.2]])
    found = pooled(seeds, falling_blocks(seeds.mean(axis=0)))
    assert found == pytest.approx(np.array([[0.4, 0.3, 0.3], [0.6, 0.2, 0.2]]))
    assert found.mean(axis=0) == pytest.approx(falling(seeds.mean(axis=0)))


@pytest.mark.parametrize(("errors", "weights"), [([], []), ([0.1, np.nan], [1, 1]), ([0.1, 0.2], [1, 0]),
                                                 ([0.1, 0.2], [1]), ([0.1, 0.2], [1, np.inf])])
def test_what_has_no_estimate_is_refused(errors: list[float], weights: list[float]) -> None:
    with pytest.raises(ValueError, match="finite errors with a weight above 0"):
        falling(errors, weights)
