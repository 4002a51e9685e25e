"""Seeds x images: the interval of a mean whose seeds and test images are both a sample."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from vitbench.stats.intervals import Interval


@dataclass(frozen=True)
class TwoWay:
    """Mean squares of a seeds S x images N layout, and the variance of its mean with Satterthwaite's df.

    Variance (MS_seed + MS_image - MS_residual)/(S N), never below MS_seed/(S N) (protocol rule 20).
    """

    mean: float
    ms_seed: float
    ms_image: float
    ms_residual: float
    variance: float
    df: float
    image_variance: float  # the part of `variance` that no number of seeds takes away


def two_way(values_SI: npt.NDArray[np.floating]) -> TwoWay:
    """Analysis of variance of one value a seed S and image I.

    Raises ValueError below two of either, or where a value is not finite.
    """
    values = np.asarray(values_SI, dtype=np.float64)
    if values.ndim != 2 or min(values.shape) < 2 or not np.isfinite(values).all():
        raise ValueError(f"seeds x images needs two of each at least, all finite; found shape {values.shape}")
    S, N = values.shape
    mean = float(values.mean())
    centred = values - mean
    seeds = N * float(np.square(centred.mean(axis=1)).sum())
    images = S * float(np.square(centred.mean(axis=0)).sum())
    residual = max(0.0, float(np.square(centred).sum()) - seeds - images)
    squares = (seeds / (S - 1), images / (N - 1), residual / ((S - 1) * (N - 1)))
    ms_seed, ms_image, ms_residual = squares
    of_images = max(0.0, ms_image - ms_residual)
    if not of_images:
        return TwoWay(mean, *squares, ms_seed / (S * N), S - 1, 0.0)
    spread = ms_seed**2 / (S - 1) + ms_image**2 / (N - 1) + ms_residual**2 / ((S - 1) * (N - 1))
    total = ms_seed + of_images
    return TwoWay(mean, *squares, total / (S * N), total**2 / spread, of_images / (S * N))


def two_way_interval(values_SI: npt.NDArray[np.floating], *, level: float = 0.95) -> Interval:
    """Interval of the mean over seeds S and images I, both redrawn: mean +- t((1 + level)/2, df) sqrt(variance).

    `n` and `sd` are those of the seeds' means. Raises ValueError below two seeds or images.
    """
    found = two_way(values_SI)
    half = float(stdtrit(found.df, (1 + level) / 2)) * sqrt(found.variance)
    S, N = values_SI.shape
    return Interval(found.mean, found.mean - half, found.mean + half, sqrt(found.ms_seed / N), S, "seeds x images")
