"""The sign-flip test: how often random signs move a sum as far from 0 as it lies; and the interval it inverts to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, inf

import numpy as np

from vitbench.stats.arrays import FloatArray, finite

MOST_EXACT = 20  # pairs of which every sign pattern is looked at
SAMPLES = 20_000
TOLERANCE = 1e-9  # of the sum of sizes: .2 + .5 and .7 differ in their last bit


def sign_flip_p(values_S: Sequence[float] | FloatArray, *, rng: np.random.Generator | None = None) -> float:
    """Two-sided p of 'the differences are symmetric about 0': the share of sign patterns with |sum| >= |observed sum|.

    Exact up to 20 seeds; above, (b + 1)/(B + 1) of B = 20,000 patterns drawn from `rng` (protocol rule 21). Raises
    ValueError for no value, one that is not finite, or more than 20 without a generator.
    """
    array_S = finite(values_S, "S")
    least = abs(float(array_S.sum())) - TOLERANCE * float(np.abs(array_S).sum())
    if array_S.size <= MOST_EXACT:
        return float((np.abs(_every_sum(array_S)) >= least).mean())
    found = sum(int((np.abs(signs_PS @ array_S) >= least).sum()) for signs_PS in sign_patterns(array_S.size, rng))
    return (found + 1) / (SAMPLES + 1)


@dataclass(frozen=True)
class SignFlipInterval:
    """The means that a sign-flip test does not reject. Infinite where no pattern of so few seeds is rare enough."""

    low: float
    high: float
    confidence: float  # achieved: at least the one asked for


def sign_flip_interval(values_S: Sequence[float] | FloatArray, *, level: float = 0.95,
                       rng: np.random.Generator | None = None) -> SignFlipInterval:
    """From the k-th smallest to the k-th largest mean of a subset of the seeds, k = floor((1 - level) 2^S / 2).

    Every non-empty subset's mean is equally likely to lie next to the true one (Hartigan 1969, 'Using subsample values
    as typical values'). Exact up to 20 seeds, unbounded below six at 95 %; above 20, of 20,000 subsets drawn from
    `rng`. Raises ValueError as `sign_flip_p` does.
    """
    array_S = np.sort(finite(values_S, "S"))
    means = _every_mean(array_S) if array_S.size <= MOST_EXACT else _drawn_means(array_S, _given(rng))
    gaps = means.size + 1
    k = floor((1 - level) * gaps / 2 + TOLERANCE)
    if k == 0:
        return SignFlipInterval(-inf, inf, 1.0)
    ordered = np.partition(means, (k - 1, means.size - k))
    return SignFlipInterval(float(ordered[k - 1]), float(ordered[-k]), 1 - 2 * k / gaps)


def sign_patterns(n: int, rng: np.random.Generator | None = None, at_once: int = 2**14) -> Iterator[FloatArray]:
    """Signs of `n` seeds, patterns P x seeds S, in blocks: all that leave the last sign as it is (the others are their
    mirror images), or above 20 seeds 20,000 drawn from `rng`, for which it raises ValueError without one."""
    if n <= MOST_EXACT:
        for first in range(0, 2 ** (n - 1), at_once):
            numbers_P = np.arange(first, min(first + at_once, 2 ** (n - 1)))
            yield np.where(numbers_P[:, None] >> np.arange(n) & 1, -1.0, 1.0)
    else:
        yield from (_given(rng).choice((-1.0, 1.0), (500, n)) for _ in range(SAMPLES // 500))


def _given(rng: np.random.Generator | None) -> np.random.Generator:
    if rng is None:
        raise ValueError(f"more than {MOST_EXACT} values are flipped at random: give a generator")
    return rng


def _every_sum(array_S: FloatArray) -> FloatArray:
    """Sums of the patterns that leave the first sign as it is: the others are their mirror images."""
    sums = array_S[:1]
    for value in array_S[1:]:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _every_mean(array_S: FloatArray) -> FloatArray:
    sums, sizes = np.zeros(1), np.zeros(1)
    for value in array_S:
        sums, sizes = np.concatenate([sums, sums + value]), np.concatenate([sizes, sizes + 1])
    return np.asarray(sums[1:] / sizes[1:])


def _drawn_means(array_S: FloatArray, rng: np.random.Generator) -> FloatArray:
    blocks = [rng.random((500, array_S.size)) < 0.5 for _ in range(SAMPLES // 500)]
    return np.concatenate([in_PS @ array_S / in_PS.sum(axis=1) for in_PS in (b[b.any(axis=1)] for b in blocks)])
