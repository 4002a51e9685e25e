from typing import Any

import numpy as np
import pytest

from tests.known_answers import agrees, known
from vitbench.stats import t_interval, two_way_interval
from vitbench.stats.two_way import two_way


@pytest.mark.parametrize("vector", known("two_way_interval"))
def test_interval_and_mean_squares_are_the_known_ones(vector: dict[str, Any]) -> None:
    values = np.array(vector["inputs"]["correct_a_minus_correct_b_seed_by_image"])
    parts, interval = two_way(values), two_way_interval(values, level=vector["inputs"]["level"])
    for key in vector["expected"]:
        assert agrees(getattr(parts if hasattr(parts, key) else interval, key), vector, key), key
    assert interval.over == "seeds x images"


def test_where_images_add_nothing_it_is_the_interval_over_seeds() -> None:
    seeds_S = np.array([0.02, -0.01, 0.03, 0.005, 0.01, 0.0])
    found, over_seeds = two_way_interval(np.tile(seeds_S[:, None], 7)), t_interval(seeds_S)
    assert (found.mean, found.low, found.high, found.sd, found.n) == pytest.approx(
        (over_seeds.mean, over_seeds.low, over_seeds.high, over_seeds.sd, over_seeds.n))


def test_equal_values_have_no_width() -> None:
    found = two_way_interval(np.zeros((6, 4)))
    assert (found.low, found.high, found.sd) == (0, 0, 0)


def simulated(rng: np.random.Generator, seeds: int = 8, images: int = 40) -> Any:
    """Mean 0; both a seed and an image have an effect of their own."""
    return (rng.normal(0, 0.5, (seeds, 1)) + rng.normal(0, 2, (1, images)) + rng.normal(0, 1, (seeds, images)))


def test_it_covers_redraws_of_seeds_and_images_where_the_interval_over_seeds_does_not() -> None:
    rng, both, alone = np.random.default_rng(5), 0, 0
    for _ in range(2000):
        values = simulated(rng)
        wide, narrow = two_way_interval(values), t_interval(values.mean(axis=1))
        both += wide.low <= 0 <= wide.high
        alone += narrow.low <= 0 <= narrow.high
    assert 0.93 <= both / 2000 <= 0.98  # the standard error is .005
    assert alone / 2000 < 0.85


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (0, 3), (4,)])
def test_fewer_than_two_seeds_or_images_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="two of each at least"):
        two_way_interval(np.zeros(shape))


def test_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="all finite"):
        two_way_interval(np.array([[0, 1], [np.nan, 1]]))
