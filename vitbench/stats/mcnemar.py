"""McNemar's exact test of two trained models on the same images: one test a seed, never of architectures."""

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Two-sided p of 'neither model is right more often', from the images that one of the two alone has right.

    min(1, 2 P(X <= min(a, b))), X binomial (a + b, 1/2) (McNemar 1947, exact; `scipy.stats.binomtest`). Says nothing
    about other seeds of the same architectures (docs/statistics.md). Raises ValueError for a negative count.
    """
    if only_a < 0 or only_b < 0:
        raise ValueError(f"images are counted from 0 on; found {only_a} and {only_b}")
    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def mcnemar_by_seed(correct_a_SI: npt.NDArray[np.bool_], correct_b_SI: npt.NDArray[np.bool_]) -> list[float]:
    """p of each seed S from the hits of two models on images I: shown as 'of S', never pooled (protocol rule 20).

    Raises ValueError for unequal shapes or another layout.
    """
    a_SI, b_SI = np.asarray(correct_a_SI, dtype=bool), np.asarray(correct_b_SI, dtype=bool)
    if a_SI.ndim != 2 or a_SI.shape != b_SI.shape:
        raise ValueError(f"hits of both models are seeds x images, alike; found {a_SI.shape} and {b_SI.shape}")
    counts = zip((a_SI & ~b_SI).sum(axis=1), (b_SI & ~a_SI).sum(axis=1), strict=True)
    return [mcnemar_p(int(only_a), int(only_b)) for only_a, only_b in counts]
