"""The data-efficiency factor: how many times more images one model needs to reach the error of another."""

from dataclasses import dataclass
from math import exp, log
from typing import Literal

import numpy as np
import numpy.typing as npt

from vitbench.stats.crossover import TIE, FloatArray, Values, crossover_set
from vitbench.stats.monotone import falling_blocks, pooled

Sign = Literal["=", ">", "<="]


@dataclass(frozen=True)
class Factor:
    """At `images` of the reference: the other model needs `value` times as many, or more than that where its curve does
    not come so low in the measured range (>), or as many at most where it is as low at its smallest size (<=).

    `low` and `high` are the 95 % interval over seeds, None where it is open: it goes on beyond the range. `seeds` below
    two: there is none.
    """

    images: float
    sign: Sign
    value: float
    low: float | None
    high: float | None
    seeds: int


def data_efficiency(sizes_N: Values, reference_SN: npt.NDArray[np.floating], other_SN: npt.NDArray[np.floating], *,
                    level: float = 0.95) -> tuple[Factor, ...]:
    """The factor at each size N, from errors of the reference and of the other model, the same seeds S in both.

    Both mean curves are made non-increasing; the other's is read as straight lines in ln n. The interval inverts a
    test, as the crossover's does: {m/n: 0 lies in the t interval of other(m) - reference(n)}, seeds pooled over the
    sizes that their mean is pooled over, from the first to the last such m. So it holds the factor itself, has an open
    end where the range leaves it one, and needs no resampling, for which six seeds are too few. Raises ValueError for
    unequal shapes, sizes that do not rise or an error that is not finite.
    """
    pair = [np.asarray(errors_SN, dtype=np.float64) for errors_SN in (reference_SN, other_SN)]
    sizes = np.asarray(sizes_N, dtype=np.float64)
    if pair[0].ndim != 2 or pair[0].shape != pair[1].shape or pair[0].shape[1:] != sizes.shape or not pair[0].size:
        raise ValueError("a factor needs an error of both models for each seed and size, one at least; found "
                         f"{pair[0].shape} and {pair[1].shape} at {sizes.shape} sizes")
    reference, other = (pooled(errors, falling_blocks(errors.mean(axis=0))) for errors in pair)
    return tuple(_factor(sizes, other - reference[:, [i]], float(sizes[i]), level) for i in range(len(sizes)))


def _factor(sizes_N: FloatArray, behind_SN: FloatArray, images: float, level: float) -> Factor:
    """From how far the other model's errors lie above the reference's at `images`."""
    sign, needed = reached(sizes_N, behind_SN.mean(axis=0))
    seeds = len(behind_SN)
    if seeds < 2:
        return Factor(images, sign, needed / images, None, None, seeds)
    found = crossover_set(sizes_N, behind_SN, level=level)
    low = found.pieces[0][0] if found.pieces else needed
    high = found.pieces[-1][1] if found.pieces else needed
    return Factor(images, sign, needed / images, None if found.open_left or sign == "<=" else low / images,
                  None if found.open_right or sign == ">" else high / images, seeds)


def reached(sizes_N: FloatArray, behind_N: FloatArray) -> tuple[Sign, float]:
    """The size at which a falling line in ln n comes down to 0, or the end of the range that it lies beyond."""
    reached = np.flatnonzero(behind_N <= TIE)
    if not reached.size:
        return ">", float(sizes_N[-1])
    j = int(reached[0])
    if j == 0:
        return "<=" if behind_N[0] < -TIE else "=", float(sizes_N[0])
    share = behind_N[j - 1] / (behind_N[j - 1] - behind_N[j])
    return "=", exp(log(sizes_N[j - 1]) + share * (log(sizes_N[j]) - log(sizes_N[j - 1])))
