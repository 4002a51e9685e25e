"""Many comparisons at once: p values adjusted so that any false rejection among them has the level of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from vitbench.stats.arrays import FloatArray, finite
from vitbench.stats.paired import paired_t
from vitbench.stats.sign_flip import MOST_EXACT, SAMPLES, TOLERANCE, sign_patterns


def holm(p_M: Sequence[float] | FloatArray) -> FloatArray:
    """Adjusted p of comparisons M: with p sorted, the largest of (M - j) p_(j+1) so far, at most 1 (Holm 1979).

    Raises ValueError without a p or for one outside 0 to 1.
    """
    array_M = finite(p_M, "M")
    if array_M.min() < 0 or array_M.max() > 1:
        raise ValueError(f"a p value lies in 0 to 1; found {p_M!r}")
    order_M = np.argsort(array_M)
    factor_M = np.arange(array_M.size, 0, -1)
    adjusted_M = np.empty_like(array_M)
    adjusted_M[order_M] = np.minimum(1, np.maximum.accumulate(factor_M * array_M[order_M]))
    return adjusted_M


@dataclass(frozen=True, eq=False)
class MaxT:
    """Comparisons M: adjusted p, and |t| of each (infinite where all its differences are equal, but not 0)."""

    adjusted_M: FloatArray
    abs_t_M: FloatArray


def step_down_max_t(differences_MS: Sequence[Sequence[float]] | FloatArray, *,
                    rng: np.random.Generator | None = None) -> MaxT:
    """Adjusted p of paired differences, comparisons M x seeds S (Westfall and Young 1993).

    Each pattern flips a seed in every comparison at once, and so keeps how they depend on each other. p of the j-th
    largest |t| is the share of patterns whose largest |t| among it and all smaller ones reaches it, never below p of a
    larger |t|. All patterns up to 20 seeds; above, (b + 1)/(B + 1) of 20,000 drawn from `rng` (protocol rule 21).
    Raises ValueError for other layouts, one seed, nan or infinity, or above 20 seeds without a generator.
    """
    array_MS = finite(differences_MS, "MS")
    M, S = array_MS.shape
    if S < 2:
        raise ValueError(f"a t needs two seeds at least; found {differences_MS!r}")
    length_M = np.sqrt(S * np.square(array_MS).sum(axis=1))
    unit_MS = array_MS / np.where(length_M > 0, length_M, 1)[:, None]
    # |cosine| of the differences and (1, ..., 1) rises with |t| and stays finite: t = c sqrt(S - 1)/sqrt(1 - c^2).
    cosine_M = np.abs(unit_MS.sum(axis=1))
    order_M = np.argsort(cosine_M)  # the smallest first: a running maximum is then that of it and all smaller ones
    least_M = cosine_M[order_M] - TOLERANCE
    patterns, reached_M = 0, np.zeros(M)
    for signs_PS in sign_patterns(S, rng):
        largest_PM = np.maximum.accumulate(np.abs(signs_PS @ unit_MS[order_M].T), axis=1)
        reached_M += (largest_PM >= least_M).sum(axis=0)
        patterns += len(signs_PS)
    p_M = reached_M / patterns if S <= MOST_EXACT else (reached_M + 1) / (SAMPLES + 1)
    adjusted_M = np.empty(M)
    adjusted_M[order_M] = np.maximum.accumulate(p_M[::-1])[::-1]
    return MaxT(adjusted_M, np.array([abs(paired_t(differences_S).t) for differences_S in array_MS]))


def seeds_for_holm_sign_flip(comparisons: int, *, alpha: float = 0.05) -> int:
    """Fewest seeds S at which Holm over exact sign-flip p values can reject at all: comparisons 2/2^S <= alpha.

    Raises ValueError without a comparison or for alpha outside 0 to 1.
    """
    if comparisons < 1 or not 0 < alpha < 1:
        raise ValueError(f"expected one comparison at least and 0 < alpha < 1; found {comparisons} and {alpha}")
    return ceil(log2(2 * comparisons / alpha) - TOLERANCE)
