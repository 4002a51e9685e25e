"""The sign-flip test: how often random signs move a sum as far from 0 as it lies."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MOST_EXACT = 20  # pairs of which every sign pattern is looked at
SAMPLES = 20_000
TOLERANCE = 1e-9  # of the sum of sizes: .2 + .5 and .7 differ in their last bit

FloatArray = npt.NDArray[np.float64]


def sign_flip_p(values_S: Sequence[float] | FloatArray, *, rng: np.random.Generator | None = None) -> float:
    """Two-sided p of 'the differences are symmetric about 0': the share of sign patterns with |sum| >= |observed sum|.

    Exact up to 20 seeds; above, (b + 1)/(B + 1) of B = 20,000 patterns drawn from `rng` (protocol rule 21). Raises
    ValueError for no value, one that is not finite, or more than 20 without a generator.
    """
    array_S = np.asarray(values_S, dtype=np.float64)
    if array_S.ndim != 1 or array_S.size == 0 or not np.isfinite(array_S).all():
        raise ValueError(f"a sign-flip test needs one value a seed, all finite; found {list(values_S)!r}")
    least = abs(float(array_S.sum())) - TOLERANCE * float(np.abs(array_S).sum())
    if array_S.size <= MOST_EXACT:
        return float((np.abs(_every_sum(array_S)) >= least).mean())
    if rng is None:
        raise ValueError(f"more than {MOST_EXACT} values are flipped at random: give a generator")
    found = sum(int((np.abs(sums) >= least).sum()) for sums in _drawn_sums(array_S, rng))
    return (found + 1) / (SAMPLES + 1)


def _every_sum(array_S: FloatArray) -> FloatArray:
    """Sums of the patterns that leave the first sign as it is: the others are their mirror images."""
    sums = array_S[:1]
    for value in array_S[1:]:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _drawn_sums(array_S: FloatArray, rng: np.random.Generator, at_once: int = 500) -> list[FloatArray]:
    return [rng.choice((-1.0, 1.0), (at_once, array_S.size)) @ array_S for _ in range(SAMPLES // at_once)]
