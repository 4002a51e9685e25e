"""Which family a learning curve gets, and whether any serves (protocol rule 24)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from vitbench.stats.curves import FAMILIES, Curve, FloatArray, Values, fit
from vitbench.stats.intervals import t_interval

ALIKE = 1.05  # times the squared error on the sizes held out: no difference
EXACT = 1e-12  # squared error that no data have
ALPHA = 0.05
LEAST_SHARE = 0.1  # of the largest standard error: what any size's counts as at least


@dataclass(frozen=True)
class LearningCurve:
    """A curve over measured sizes, or the reason for there being none."""

    outcome: Literal["fitted", "ill-behaved", "too few sizes"]
    curve: Curve | None
    reason: str | None  # of ill-behaved


def standard_errors(errors_SN: npt.NDArray[np.floating]) -> FloatArray | None:
    """Standard error of the mean over seeds S at each size N, none below a tenth of the largest: where a few seeds
    happen to agree, one size would decide the fit alone. None for one seed, or where all agree everywhere."""
    if len(errors_SN) < 2:
        return None
    spread_N = np.std(errors_SN, axis=0, ddof=1, dtype=np.float64) / np.sqrt(len(errors_SN))
    spread_N = np.where(np.ptp(errors_SN, axis=0) == 0, 0, spread_N)
    return np.maximum(spread_N, LEAST_SHARE * spread_N.max()) if spread_N.max() > 0 else None


def ranked(sizes_N: Values, errors_N: Values, standard_errors_N: Values | None = None, *,
           families: Iterable[str] = FAMILIES) -> tuple[str, ...]:
    """The families by their squared error on the largest two sizes (one of fewer than seven), fitted without them.

    A family with p parameters needs p + 2 other sizes, else it is left out. First comes the one with the fewest
    parameters of those within 5 % of the best. Raises ValueError as `fit` does.
    """
    sizes, errors = (np.asarray(values, dtype=np.float64) for values in (sizes_N, errors_N))
    spread = None if standard_errors_N is None else np.asarray(standard_errors_N)
    kept = len(sizes) - (2 if len(sizes) >= 7 else 1)
    lost = {}
    for family in families:
        if kept >= FAMILIES[family].parameters(sizes) + 2:
            curve = fit(family, sizes[:kept], errors[:kept], None if spread is None else spread[:kept])
            lost[family] = float(np.square(curve.at(sizes[kept:]) - errors[kept:]).mean()) + EXACT
    best = min(lost.values(), default=0.0)
    alike = [family for family in lost if lost[family] <= ALIKE * best]
    first = sorted(alike, key=lambda family: (FAMILIES[family].parameters(sizes), lost[family]))[:1]
    return (*first, *sorted(lost.keys() - first, key=lambda family: (lost[family], family)))


def best_curve(sizes_N: Values, errors_N: Values, standard_errors_N: Values | None = None,
               reach_N: Values | None = None) -> tuple[Curve | None, bool]:
    """The first of the ranked families, fitted to all sizes, that lies within `reach_N` of every error; and whether
    there is one. Else the first of them, or None of none."""
    fits = (fit(family, sizes_N, errors_N, standard_errors_N)
            for family in ranked(sizes_N, errors_N, standard_errors_N))
    first: Curve | None = None
    for curve in fits:
        first = first or curve
        if reach_N is None or (np.abs(curve.at(sizes_N) - errors_N) <= reach_N).all():
            return curve, True
    return first, False


def reach(errors_SN: npt.NDArray[np.floating], margin: float) -> FloatArray | None:
    """How far from a mean error a curve may lie: half the t interval at level 1 - .05/N, or the margin if larger.

    None for one seed, which cannot tell.
    """
    if len(errors_SN) < 2:
        return None
    level = 1 - ALPHA / errors_SN.shape[1]
    intervals = [t_interval(errors_S, level=level) for errors_S in errors_SN.T]
    return np.array([max(margin, i.high - i.mean) for i in intervals if i.high is not None])


def learning_curve(sizes_N: Values, errors_SN: npt.NDArray[np.floating], *, margin: float = 0.01) -> LearningCurve:
    """The curve of mean error over seeds S, or why it is ill-behaved.

    `ill-behaved` where mean error rises from one size to the next: the t interval of the difference paired by seed, at
    level 1 - .05/(N - 1), lies above 0, which no family can follow; or where each family misses a mean: by more than
    `margin`, and outside its t interval at level 1 - .05/N. Such a curve is not even a picture of the data, and
    nothing may be read from it between sizes; a miss below the margin is one that nobody would act on. One seed shows
    neither. Raises ValueError as `fit` does.
    """
    errors = np.asarray(errors_SN, dtype=np.float64)
    if errors.ndim != 2 or not errors.size:
        raise ValueError(f"a learning curve has an error for each seed and size, one at least; found {errors.shape}")
    sizes, mean_N = np.asarray(sizes_N, dtype=np.float64), errors.mean(axis=0)
    curve, serves = best_curve(sizes, mean_N, standard_errors(errors), reach(errors, margin))
    rises = _rises(sizes, errors)
    if rises:
        return LearningCurve("ill-behaved", None, rises)
    if curve is None:
        return LearningCurve("too few sizes", None, None)
    if not serves:
        return LearningCurve("ill-behaved", None, _misses(sizes, mean_N, curve))
    return LearningCurve("fitted", curve, None)


def _rises(sizes_N: FloatArray, errors_SN: FloatArray) -> str | None:
    if len(errors_SN) < 2 or len(sizes_N) < 2:
        return None
    level = 1 - ALPHA / (len(sizes_N) - 1)
    steps = [t_interval(errors_S, level=level) for errors_S in np.diff(errors_SN, axis=1).T]
    rising = [f"from {low:,.0f} to {high:,.0f} images by {100 * step.mean:.1f} points"
              for low, high, step in zip(sizes_N[:-1], sizes_N[1:], steps, strict=True)
              if step.low is not None and step.low > 0]
    return f"the error rises {', '.join(rising)}" if rising else None


def _misses(sizes_N: FloatArray, mean_N: FloatArray, curve: Curve) -> str:
    apart_N = np.abs(curve.at(sizes_N) - mean_N)
    worst = int(apart_N.argmax())
    return (f"no family fits: {curve.family}, which foretells the largest sizes best, misses {sizes_N[worst]:,.0f} "
            f"images by {100 * apart_N[worst]:.1f} points")
