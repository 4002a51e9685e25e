"""How a contrast changes with the number of training images: one slope a seed."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vitbench.stats.arrays import FloatArray, finite


def log2_error_ratio(wrong_a: npt.ArrayLike, wrong_b: npt.ArrayLike) -> FloatArray:
    """log2((wrong_a + 1/2)/(wrong_b + 1/2)) of numbers of wrong images of the same test set, of any one shape.

    The half (Haldane 1956, Anscombe 1956) keeps it finite where a model has everything right. Raises ValueError for
    unequal shapes or a count that is negative or not finite.
    """
    a, b = np.asarray(wrong_a, dtype=np.float64), np.asarray(wrong_b, dtype=np.float64)
    if a.shape != b.shape or not (np.isfinite([a, b]).all() and (np.minimum(a, b) >= 0).all()):
        raise ValueError(f"wrong images are counted from 0 on, alike for both; found {wrong_a!r} and {wrong_b!r}")
    return np.asarray(np.log2((a + 0.5) / (b + 0.5)))


def slopes_per_doubling(values_SN: Sequence[Sequence[float]] | FloatArray, sizes_N: Sequence[int]) -> FloatArray:
    """Least-squares slope of each seed S on log2 of the sizes N. The seeds' spread then gives the interval.

    Raises ValueError below two different sizes, for one below 1, for unequal lengths or what is not finite.
    """
    array_SN, x_N = finite(values_SN, "SN"), finite(sizes_N, "N", least=2)
    if array_SN.shape[1] != x_N.size or x_N.min() < 1 or np.ptp(x_N) == 0:
        raise ValueError(f"expected a value for each of two sizes or more, above 0 and not all equal; found sizes "
                         f"{sizes_N!r} for {array_SN.shape[1]} values a seed")
    log_N = np.log2(x_N) - np.log2(x_N).mean()
    return np.asarray(array_SN @ log_N / (log_N @ log_N))
