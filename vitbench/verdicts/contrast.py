"""Contrast: one number a seed and stratum, with its intervals and its sign-flip p."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr

from vitbench.stats import FEW_SEEDS, Interval, sign_flip_p, t_interval, two_way_interval
from vitbench.stats.paired import paired_t
from vitbench.stats.two_way import two_way
from vitbench.verdicts.evidence import ALPHA

FloatArray = npt.NDArray[np.float64]
TOLERANCE = 1e-9  # a mean of decimals such as .3 - .29 meets a margin of .01


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """y with layout seeds S x strata K, all finite.

    `images_KSI` holds for each stratum the same contrast image by image, where it is linear in accuracy; an interval is
    then the wider of `seeds` and `seeds x images`.
    """

    y_SK: FloatArray
    strata: tuple[str, ...]
    images_KSI: tuple[npt.NDArray[np.floating], ...] = ()
    run_ids: tuple[str, ...] = ()
    alpha: float = ALPHA
    entropy: int = 0  # of the sign patterns, where there are too many seeds to look at all

    def __post_init__(self) -> None:
        shape = self.y_SK.shape
        if len(set(self.strata)) < len(self.strata):
            raise ValueError(f"a stratum counts once; found {', '.join(self.strata)}")
        if len(shape) != 2 or 0 in shape or shape[1] != len(self.strata) or not np.isfinite(self.y_SK).all():
            raise ValueError(f"a contrast has a finite value for each seed and stratum, one at least; found shape "
                             f"{shape} with {len(self.strata)} strata: {self.y_SK.tolist()}")

    @property
    def n(self) -> int:
        """Seeds."""
        return len(self.y_SK)

    @property
    def few_seeds(self) -> bool:
        """True where nothing may rest on it (protocol rule 20)."""
        return self.n < FEW_SEEDS

    @cached_property
    def y_S(self) -> FloatArray:
        """Mean over strata of each seed."""
        return np.asarray(self.y_SK.mean(axis=1))

    @cached_property
    def images_SI(self) -> npt.NDArray[np.floating] | None:
        """Mean over strata of each seed and test image."""
        # Added one by one: one more array of all strata would be the largest thing in memory.
        return np.asarray(sum(self.images_KSI[1:], self.images_KSI[0]) / len(self.strata)) if self.images_KSI else None

    @cached_property
    def interval(self) -> Interval:
        """Of the mean over seeds and strata, at level 1 - alpha."""
        return _wider(self.y_S, self.images_SI, 1 - self.alpha)

    @cached_property
    def alone(self) -> tuple["Contrast", ...]:
        """Each stratum by itself."""
        return tuple(replace(self, y_SK=self.y_SK[:, [k]], strata=(name,), images_KSI=self.images_KSI[k:k + 1])
                     for k, name in enumerate(self.strata))

    @cached_property
    def of_strata(self) -> tuple[Interval, ...]:
        """Of the mean over seeds in each stratum, at level 1 - alpha/K."""
        return tuple(replace(one, alpha=self.alpha / len(self.strata)).interval for one in self.alone)

    @cached_property
    def p(self) -> float:
        """Sign-flip p of the means over strata, exact up to 20 seeds."""
        return sign_flip_p(self.y_S, rng=np.random.default_rng(self.entropy))

    def t_p(self, null: float = 0.0) -> float:
        """Two-sided p of 'the mean is `null`' by the t distribution that `interval` rests on; 1 of a single seed."""
        if self.n == 1:
            return 1.0
        if self.interval.over == "seeds":
            return paired_t(self.y_S - null).p
        assert self.images_SI is not None
        both = two_way(self.images_SI)
        return 2 * float(stdtr(both.df, -abs(both.mean - null) / sqrt(both.variance)))

    def lies_above(self, value: float) -> bool:
        """True where the interval does; never below six seeds."""
        low = self.interval.low
        return not self.few_seeds and low is not None and low > value

    def lies_below(self, value: float) -> bool:
        """True where the interval does; never below six seeds."""
        high = self.interval.high
        return not self.few_seeds and high is not None and high < value

    @property
    def half_width_of_images(self) -> float:
        """What would remain of the interval's half width with seeds without number: the test images' share."""
        if self.images_SI is None or min(self.images_SI.shape) < 2:
            return 0.0
        return float(ndtri(1 - self.alpha / 2)) * sqrt(two_way(self.images_SI).image_variance)


def _wider(y_S: FloatArray, images_SI: npt.NDArray[np.floating] | None, level: float) -> Interval:
    over_seeds = t_interval(y_S, level=level)
    if images_SI is None or min(images_SI.shape) < 2:
        return over_seeds
    over_both = two_way_interval(images_SI, level=level)
    return over_both if _width(over_both) > _width(over_seeds) + TOLERANCE else over_seeds


def _width(interval: Interval) -> float:
    assert interval.low is not None
    assert interval.high is not None
    return interval.high - interval.low
