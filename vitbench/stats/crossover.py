"""Where one learning curve crosses another: its name, the size, and the set of sizes that seeds leave open."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

FloatArray = npt.NDArray[np.float64]
Values = Sequence[float] | FloatArray
Outcome = Literal["overtakes", "is_overtaken", "ahead_everywhere", "no_crossover_up_to_N", "several_crossings",
                  "tied_everywhere"]
TOLERANCE = 1e-12  # of a root's own scale: where a parabola touches 0, rounding lifts it
TIE = 1e-12  # the most that rounding makes of a mean of equal accuracies


@dataclass(frozen=True)
class Crossing:
    """What the means show: the outcome for the first curve, and the sizes at which its lead changes."""

    outcome: Outcome
    sizes: tuple[float, ...]


@dataclass(frozen=True)
class SizeSet:
    """Sizes at which 0 lies in the t interval of the difference: closed pieces, in order.

    An open end is one at the end of the measured range: the set may go on beyond.
    """

    pieces: tuple[tuple[float, float], ...]
    open_left: bool
    open_right: bool


def crossing(sizes_N: Values, mean_difference_N: Values) -> Crossing:
    """Name of the sign sequence of mean differences, first minus second, in accuracy, and where it changes.

    Straight lines in ln n. Zeros are dropped from the sequence (protocol rule 25): of some between opposite signs the
    crossing is the geometric mean of their first and last size, some between equal signs are none. Raises ValueError
    for sizes that do not rise or a difference that is not finite.
    """
    sizes, means = _checked(sizes_N, mean_difference_N)
    signs = [(i, 1 if mean > 0 else -1) for i, mean in enumerate(means.tolist()) if abs(mean) > TIE]
    changes = [(i, j) for (i, sign), (j, other) in pairwise(signs) if sign != other]
    found = tuple(_between(sizes, means, i, j) for i, j in changes)
    if not signs:
        return Crossing("tied_everywhere", ())
    ahead = signs[-1][1] > 0
    if not found:
        return Crossing("ahead_everywhere" if ahead else "no_crossover_up_to_N", ())
    if len(found) > 1:
        return Crossing("several_crossings", found)
    return Crossing("overtakes" if ahead else "is_overtaken", found)


def _between(sizes_N: FloatArray, means_N: FloatArray, i: int, j: int) -> float:
    """The crossing between two sizes of opposite signs, with nothing but zeros between them."""
    if j > i + 1:
        return sqrt(sizes_N[i + 1] * sizes_N[j - 1])
    share = means_N[i] / (means_N[i] - means_N[j])
    return exp(log(sizes_N[i]) + share * (log(sizes_N[j]) - log(sizes_N[i])))


def crossover_set(sizes_N: Values, difference_SN: npt.NDArray[np.floating], *, level: float = 0.95) -> SizeSet:
    """{n: 0 lies in the t interval over seeds S of the difference, a straight line in ln n within each seed}.

    End points are exact: with mean m(w) and variance v(w) of the seeds at share w of a segment, 0 is in the interval
    where S m^2 - t^2 v, a quadratic, is at most 0 (as Fieller 1954 inverts a ratio's t test). Raises ValueError for
    fewer than two seeds, sizes that do not rise, or a difference that is not finite.
    """
    difference = np.asarray(difference_SN, dtype=np.float64)
    sizes, _ = _checked(sizes_N, difference)
    if difference.ndim != 2 or len(difference) < 2:
        raise ValueError(f"a set needs two seeds at least; found differences of shape {difference.shape}")
    logs = np.log(sizes)
    ends = [(i + low, i + high) for i in range(len(sizes) - 1)
            for low, high in _inside(*_quadratic(difference[:, i:i + 2], level))]
    if len(sizes) == 1 and _quadratic(difference[:, [0, 0]], level)[2] <= 0:
        ends = [(0.0, 0.0)]
    pieces = _joined(ends)
    found = tuple((_size(low, logs, sizes), _size(high, logs, sizes)) for low, high in pieces)
    return SizeSet(found, bool(pieces) and pieces[0][0] == 0, bool(pieces) and pieces[-1][1] == len(sizes) - 1)


def _checked(sizes_N: Values, difference: Values | FloatArray) -> tuple[FloatArray, FloatArray]:
    sizes, found = np.asarray(sizes_N, dtype=np.float64), np.asarray(difference, dtype=np.float64)
    if not sizes.size or found.shape[-1:] != sizes.shape or not (
            sizes[0] > 0 and (np.diff(sizes) > 0).all() and np.isfinite(sizes).all() and np.isfinite(found).all()):
        raise ValueError("a crossover needs sizes above 0 that rise and a finite difference at each; found "
                         f"{sizes.tolist()} and {found.tolist()}")
    return sizes, found


def _quadratic(ends_S2: FloatArray, level: float) -> tuple[float, float, float]:
    """a, b, c of a w^2 + 2 b w + c = S m(w)^2 - t^2 v(w), along a segment with these differences at its ends."""
    seeds = len(ends_S2)
    t = float(stdtrit(seeds - 1, (1 + level) / 2))
    start_S, slope_S = ends_S2[:, 0], ends_S2[:, 1] - ends_S2[:, 0]

    def product(one_S: FloatArray, other_S: FloatArray) -> float:
        spread = (one_S - one_S.mean()) @ (other_S - other_S.mean()) / (seeds - 1)
        return float(seeds * one_S.mean() * other_S.mean() - t**2 * spread)

    return product(slope_S, slope_S), product(start_S, slope_S), product(start_S, start_S)


def _inside(a: float, b: float, c: float) -> list[tuple[float, float]]:
    """Where a w^2 + 2 b w + c <= 0 for w from 0 to 1."""
    root = b * b - a * c
    if abs(root) <= TOLERANCE * (b * b + abs(a * c)):
        root = 0.0
    if root < 0 or (a == 0 and b == 0):
        return [(0.0, 1.0)] if c <= 0 and a <= 0 else []
    if a == 0:
        pieces = [(0.0, -c / (2 * b))] if b > 0 else [(-c / (2 * b), 1.0)]
    else:
        # Of the two forms of a root the one whose terms have one sign: the other would cancel.
        far = -(b + (sqrt(root) if b >= 0 else -sqrt(root)))
        low, high = sorted((far / a, c / far if far else 0.0))
        pieces = [(low, high)] if a > 0 else [(0.0, low), (high, 1.0)]
    cut = [(max(0.0, low), min(1.0, high)) for low, high in pieces]
    return [(low, high) for low, high in cut if low <= high]


def _joined(ends: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Pieces that touch made one."""
    found: list[tuple[float, float]] = []
    for low, high in ends:
        if found and low <= found[-1][1] + TOLERANCE:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _size(place: float, logs_N: FloatArray, sizes_N: FloatArray) -> float:
    """The size at a place counted in segments; a measured one exactly."""
    i = min(int(place), len(sizes_N) - 1)
    if place == i:
        return float(sizes_N[i])
    return exp(logs_N[i] + (place - i) * (logs_N[i + 1] - logs_N[i]))
