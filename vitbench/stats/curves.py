"""Curve families for error against training images, and their fit by least squares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy.special import expit

FloatArray = npt.NDArray[np.float64]
Values = Sequence[float] | FloatArray
GRID = 16  # values of each parameter of a shape that are looked at first
STARTS = 3  # the best of which are improved
TOLERANCE, MOST_CALLS = 1e-10, 200  # of each improvement
TINY = 1e-300


@dataclass(frozen=True)
class Family:
    """err(n) = c + scale * shape(n; theta) with c >= 0 and scale >= 0: no fitted curve rises; log2 alone reaches 0.

    `ranges` bounds each of theta, all positive, for given sizes; `named` gives the parameters of the formula.
    """

    formula: str
    shape: Callable[[FloatArray, FloatArray], FloatArray]  # sizes N, theta ... x K -> ... x N
    ranges: Callable[[FloatArray], tuple[tuple[float, float], ...]]
    named: Callable[[float, float, FloatArray], dict[str, float]]  # of c, scale, theta

    def parameters(self, sizes_N: FloatArray) -> int:
        """How many numbers a fit chooses."""
        return 2 + len(self.ranges(sizes_N))


# LCDB's forms (Mohr et al. 2022, 'LCDB 1.0', table 2) with the sign of error. Given theta each is linear in c and
# scale. mmf4's size of half the way, b ** (1/d), stands for b, which is hardly known apart from d.
FAMILIES = MappingProxyType({
    "log2": Family("c - a ln n", lambda n, _: -np.log(n), lambda _: (), lambda c, s, _: {"a": s, "c": c}),
    "pow3": Family("c + a n^-b", lambda n, t: n ** -t[..., :1], lambda _: ((0.01, 5),),
                   lambda c, s, t: {"a": s, "b": t[0], "c": c}),
    "exp3": Family("c + a exp(-b n)", lambda n, t: np.exp(-t[..., :1] * n),
                   lambda n: ((0.01 / n[-1], 5 / n[0]),), lambda c, s, t: {"a": s, "b": t[0], "c": c}),
    "pow4": Family("c + a (n + d)^-b", lambda n, t: (n + t[..., 1:]) ** -t[..., :1],
                   lambda n: ((0.01, 5), (n[0] / 1000, 10 * n[-1])),
                   lambda c, s, t: {"a": s, "b": t[0], "c": c, "d": t[1]}),
    "mmf4": Family("(a b + c n^d)/(b + n^d)", lambda n, t: expit(t[..., 1:] * np.log(t[..., :1] / n)),
                   lambda n: ((n[0] / 100, 100 * n[-1]), (0.05, 10)),
                   lambda c, s, t: {"a": s + c, "b": t[0] ** t[1], "c": c, "d": t[1]}),
})


@dataclass(frozen=True)
class Curve:
    """A fitted curve: err(n) = c + scale * shape(n; theta)."""

    family: str
    c: float
    scale: float
    theta: tuple[float, ...]

    def at(self, sizes_N: Values) -> FloatArray:
        """Error at these numbers of training images."""
        shape_N = FAMILIES[self.family].shape(np.asarray(sizes_N, dtype=np.float64), np.array(self.theta))
        return np.asarray(self.c + self.scale * shape_N)

    @property
    def parameters(self) -> dict[str, float]:
        """By their letters in the family's formula."""
        found = FAMILIES[self.family].named(self.c, self.scale, np.array(self.theta))
        return {name: float(value) for name, value in found.items()}


def fit(family: str, sizes_N: Values, errors_N: Values, standard_errors_N: Values | None = None) -> Curve:
    """Weighted least squares, weights 1/se^2, equal without standard errors; bounded, from several starts.

    c and scale follow from theta in closed form (variable projection, Golub and Pereyra 1973); theta is looked for on a
    grid of its range and improved from the best places by Levenberg-Marquardt. No draw: same data, same curve. Raises
    ValueError for an unknown family, sizes that do not rise from 1 on, fewer sizes than parameters, or odd numbers.
    """
    sizes, errors, weights = _checked(family, sizes_N, errors_N, standard_errors_N)
    one = FAMILIES[family]
    ranges = np.log(one.ranges(sizes)).reshape(-1, 2)

    def residuals(logs: FloatArray) -> FloatArray:
        shape = one.shape(sizes, np.exp(logs))
        c, scale = _projected(shape, errors, weights)
        return np.asarray(np.sqrt(weights) * (c[..., None] + scale[..., None] * shape - errors))

    theta = np.exp(_smallest(residuals, ranges)) if ranges.size else np.empty(0)
    c, scale = _projected(one.shape(sizes, theta), errors, weights)
    return Curve(family, float(c), float(scale), tuple(map(float, theta)))


def _checked(family: str, sizes_N: Values, errors_N: Values,
             standard_errors_N: Values | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    if family not in FAMILIES:
        raise ValueError(f"unknown curve family {family!r}; it can be {', '.join(FAMILIES)}")
    sizes, errors = (np.asarray(values, dtype=np.float64) for values in (sizes_N, errors_N))
    spread = np.ones_like(sizes) if standard_errors_N is None else np.asarray(standard_errors_N, dtype=np.float64)
    least = FAMILIES[family].parameters(sizes) if sizes.size else 2
    if not sizes.shape == errors.shape == spread.shape == (sizes.size,) or sizes.size < least:
        raise ValueError(f"{family} needs {least} sizes at least, an error and a standard error for each; found "
                         f"{sizes.shape}, {errors.shape} and {spread.shape}")
    if not (sizes[0] >= 1 and (np.diff(sizes) > 0).all() and np.isfinite(sizes).all()):
        raise ValueError(f"sizes should rise, from 1 on, and be finite; found {sizes.tolist()}")
    if not (np.isfinite(errors).all() and (errors >= 0).all() and np.isfinite(spread).all() and (spread > 0).all()):
        raise ValueError(f"errors should be 0 or more, standard errors above 0, all finite; found {errors.tolist()} "
                         f"and {spread.tolist()}")
    weights = (spread.min() / spread) ** 2
    return sizes, errors, weights / weights.sum()


def _projected(shape: FloatArray, errors_N: FloatArray, weights_N: FloatArray) -> tuple[FloatArray, FloatArray]:
    """c and scale, neither below 0, of the least squared error for each shape: ... x N -> ..., ..."""
    mean, middle = shape @ weights_N, errors_N @ weights_N
    centred = shape - mean[..., None]
    free = _ratio((centred * (errors_N - middle)) @ weights_N, centred**2 @ weights_N)
    scale = np.maximum(free, 0)
    c = middle - scale * mean
    through_zero = _ratio((shape * errors_N) @ weights_N, shape**2 @ weights_N)
    return np.maximum(c, 0), np.where(c < 0, through_zero, scale)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(above / np.maximum(below, TINY))  # below is 0 where the shape is flat, and so is above


def _smallest(residuals: Callable[[FloatArray], FloatArray], ranges_K2: FloatArray) -> FloatArray:
    """Logs of theta with the least sum of squares."""
    from scipy.optimize import leastsq  # least_squares takes four times as long

    middle, half = ranges_K2.mean(axis=1), np.ptp(ranges_K2, axis=1) / 2
    # Between its bounds each is a sine, so that a method without bounds, three times as fast, serves.
    angles = np.arcsin(np.linspace(-1, 1, GRID + 2)[1:-1])
    grid = np.stack(np.meshgrid(*[angles] * len(half)), axis=-1).reshape(-1, len(half))

    def of(angles_K: FloatArray) -> FloatArray:
        return residuals(middle + half * np.sin(angles_K))

    starts = grid[np.argsort(np.square(of(grid)).sum(axis=1), kind="stable")[:STARTS]]
    # The full output tells, instead of warning, where a valley is so flat that the calls run out.
    ends = [leastsq(of, start, xtol=TOLERANCE, ftol=TOLERANCE, maxfev=MOST_CALLS, full_output=True)[0]
            for start in starts]
    best = min(ends, key=lambda end: float(np.square(of(end)).sum()))
    return np.asarray(middle + half * np.sin(best))
