"""Intervals of a mean over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

FEW_SEEDS = 6
"""Below this many seeds an interval is marked 'few seeds' and decides nothing (protocol rule 20)."""
ROUNDING = 1e-13


@dataclass(frozen=True)
class Interval:
    """A mean with its interval; `low` and `high` are None for a single value."""

    mean: float
    low: float | None
    high: float | None
    sd: float | None  # ddof 1
    n: int
    over: Literal["seeds", "seeds x images"] = "seeds"  # what it generalises to (protocol rule 20)

    @property
    def few_seeds(self) -> bool:
        """True where the interval may be shown but nothing may rest on it."""
        return self.n < FEW_SEEDS


def t_interval(values_S: Sequence[float] | npt.NDArray[np.float64], *, level: float = 0.95) -> Interval:
    """Student's t interval of the mean over seeds S: mean +- t((1 + level)/2, S-1) sd / sqrt(S).

    In simulation it covers 95 % from three seeds on where a percentile bootstrap covers 75 % (protocol rule 20).
    Raises ValueError on an empty or non-finite input.
    """
    array_S = np.asarray(values_S, dtype=np.float64)
    if array_S.size == 0 or not np.isfinite(array_S).all():
        raise ValueError(f"an interval needs at least one value, all finite; found {list(values_S)!r}")
    mean, n = float(array_S.mean()), int(array_S.size)
    if n == 1:
        return Interval(mean, None, None, None, 1)
    # Equal values have deviation 0, which rounding of their mean would miss.
    sd = 0.0 if np.ptp(array_S) == 0 else float(array_S.std(ddof=1))
    if sd == 0.0:
        mean = float(array_S[0])
    elif abs(mean) <= ROUNDING * float(np.abs(array_S).max()):  # decimals whose sum is 0 leave a last bit
        mean = 0.0
    half = float(stdtrit(n - 1, (1 + level) / 2)) * sd / sqrt(n)
    return Interval(mean, mean - half, mean + half, sd, n)
