"""The band of a fitted learning curve: what it would be for other seeds (protocol rule 24)."""

from collections import Counter
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from vitbench.stats.curve_choice import best_curve, reach, standard_errors
from vitbench.stats.curves import FloatArray, Values

RESAMPLES = 100
"""Known to 7 %, the deviation of so many fits adds nothing to what six seeds leave open, 32 %."""


@dataclass(frozen=True)
class Band:
    """Fit and band at sizes M, and how often each family was chosen in resamples."""

    fit_M: FloatArray
    low_M: FloatArray
    high_M: FloatArray
    families: dict[str, int]


def band(sizes_N: Values, errors_SN: npt.NDArray[np.floating], at_M: Values, *, rng: np.random.Generator,
         resamples: int = RESAMPLES, margin: float = 0.01) -> Band | None:
    """fit +- t(.975, S-1) x deviation x sqrt(S/(S-1)), the deviation that of fits to resampled seeds.

    Whole seeds are drawn, with replacement, and selection and fit repeated; weights stay those of the data, for a
    resample of few seeds knows nothing of its own. None for one seed or too few sizes. A level of .95 holds at each
    size, not along the whole curve. Raises ValueError as `fit` does.
    """
    errors = np.asarray(errors_SN, dtype=np.float64)
    seeds = len(errors)
    if seeds < 2:
        return None
    spread_N, reach_N = standard_errors(errors), reach(errors, margin)
    curve, _ = best_curve(sizes_N, errors.mean(axis=0), spread_N, reach_N)
    if curve is None:
        return None
    fits = []
    for _ in range(resamples):
        drawn = errors[rng.integers(seeds, size=seeds)].mean(axis=0)
        again, _ = best_curve(sizes_N, drawn, spread_N, reach_N)
        assert again is not None
        fits.append(again)
    deviation_M = np.std([one.at(at_M) for one in fits], axis=0, ddof=1)
    half_M = float(stdtrit(seeds - 1, 0.975)) * sqrt(seeds / (seeds - 1)) * deviation_M
    middle_M = curve.at(at_M)
    chosen = Counter(one.family for one in fits)
    return Band(middle_M, middle_M - half_M, middle_M + half_M, dict(sorted(chosen.items())))
