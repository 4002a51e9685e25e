from dataclasses import replace

import numpy as np
import pytest

from vitbench.stats import t_interval, two_way_interval
from vitbench.verdicts import Contrast

RNG = np.random.default_rng(2)
SEEDS_ONLY = np.array([[0.02, 0.03], [0.01, 0.05], [0.03, 0.0], [0.02, 0.02], [0.0, 0.01], [0.02, 0.04]])


def of_images(images_KSI: np.ndarray, **options: float) -> Contrast:
    return Contrast(y_SK=images_KSI.mean(axis=2).T, strata=tuple("AB"[: len(images_KSI)]),
                    images_KSI=tuple(images_KSI), **options)


def test_the_interval_is_of_the_mean_over_strata_inside_each_seed() -> None:
    assert Contrast(y_SK=SEEDS_ONLY, strata=("A", "B")).interval == t_interval(SEEDS_ONLY.mean(axis=1))


def test_the_wider_of_seeds_and_seeds_x_images_counts() -> None:
    noisy_images = RNG.normal(0, 1, (1, 1, 50)) + RNG.normal(0, 0.1, (2, 7, 50))
    found = of_images(noisy_images)
    assert found.interval == two_way_interval(noisy_images.mean(axis=0))
    assert replace(found, alpha=0.1).alone[1].interval == two_way_interval(noisy_images[1], level=0.9)
    noisy_seeds = np.tile(RNG.normal(0, 1, (2, 7, 1)), 50)
    found = of_images(noisy_seeds)
    assert found.interval.over == "seeds"
    assert found.interval == t_interval(found.y_S)


def test_it_is_never_narrower_than_either() -> None:
    for _ in range(50):
        images = RNG.normal(0, RNG.uniform(0, 1), (1, 1, 20)) + RNG.normal(0, 0.3, (1, 6, 1))
        images = images + RNG.normal(0, 1, (1, 6, 20))
        found, pairs = of_images(images), (t_interval(images[0].mean(axis=1)), two_way_interval(images[0]))
        assert found.interval.high - found.interval.low >= max(i.high - i.low for i in pairs) - 1e-9


def test_the_levels_follow_alpha() -> None:
    found = Contrast(y_SK=SEEDS_ONLY, strata=("A", "B"), alpha=0.01)
    assert found.interval == t_interval(SEEDS_ONLY.mean(axis=1), level=0.99)


def test_below_six_seeds_nothing_lies_above_or_below() -> None:
    few, enough = (Contrast(y_SK=np.full((n, 1), 0.5), strata=("A",)) for n in (5, 6))
    assert not few.lies_above(0)
    assert not few.lies_below(1)
    assert enough.lies_above(0)
    assert enough.lies_below(1)
    assert not enough.lies_above(0.5)


def test_one_seed_has_a_mean_and_no_interval() -> None:
    found = of_images(RNG.normal(0, 1, (1, 1, 30)))
    assert found.interval.low is None
    assert not found.lies_above(-9)


def test_sign_patterns_above_twenty_seeds_are_drawn_from_its_own_entropy() -> None:
    y_SK = RNG.normal(0.2, 1, (24, 1))
    p = [Contrast(y_SK=y_SK, strata=("A",), entropy=e).p for e in (1, 1, 2)]
    assert p[0] == p[1] != p[2]


@pytest.mark.parametrize("y_SK", [np.zeros((0, 1)), np.zeros((3, 2)), np.zeros(3), np.array([[np.nan]]),
                                  np.array([[np.inf]])], ids=lambda a: str(a.tolist()))
def test_what_is_no_finite_layout_is_refused(y_SK: np.ndarray) -> None:
    with pytest.raises(ValueError, match="a finite value for each seed and stratum"):
        Contrast(y_SK=y_SK, strata=("A",))
