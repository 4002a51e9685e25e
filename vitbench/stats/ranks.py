"""Ranks of models: whether two rankings agree, and which models their mean ranks tell apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtr

from vitbench.stats.arrays import FloatArray, finite


@dataclass(frozen=True)
class Kendall:
    """Pairs of models that two scores order alike and opposite; tau_b is None where one score ties all models."""

    tau_b: float | None
    concordant: int
    discordant: int


def kendall_tau_b(a_M: Sequence[float] | FloatArray, b_M: Sequence[float] | FloatArray) -> Kendall:
    """(C - D)/sqrt(pairs untied in a x pairs untied in b) over models M (Kendall 1945; `scipy.stats.kendalltau`).

    Raises ValueError below two models, for unequal lengths or what is not finite.
    """
    a, b = finite(a_M, "M", least=2), finite(b_M, "M", least=2)
    if a.size != b.size:
        raise ValueError(f"two scores of the same models are compared; found {a_M!r} and {b_M!r}")
    pairs = np.triu_indices(a.size, 1)
    sign_a, sign_b = (np.sign(x[:, None] - x[None, :])[pairs] for x in (a, b))
    concordant, discordant = (int((sign_a * sign_b == sign).sum()) for sign in (1, -1))
    untied = int(np.abs(sign_a).sum()) * int(np.abs(sign_b).sum())
    return Kendall((concordant - discordant) / sqrt(untied) if untied else None, concordant, discordant)


@dataclass(frozen=True, eq=False)
class Friedman:
    """Do the models M differ in rank? `chi2` with `p`, and the better approximation `iman_davenport_f` with `f_p`."""

    mean_rank_M: FloatArray  # 1 is the best
    chi2: float
    p: float
    kendall_w: float  # 0: blocks order the models at random, 1: all alike
    iman_davenport_f: float
    f_p: float


def friedman(scores_BM: Sequence[Sequence[float]] | FloatArray) -> Friedman:
    """Friedman's test of scores, higher is better, blocks B (datasets, or seeds within one cell) x models M.

    Tied scores share their mean rank, chi2 is corrected for them (Conover 1999, 5.8); W = chi2/(B (M - 1)); F =
    (B - 1) chi2/(B (M - 1) - chi2) with M - 1 and (M - 1)(B - 1) degrees of freedom (Iman and Davenport 1980). Where
    all models tie everywhere, chi2 is 0 and p 1. Raises ValueError below two of either or for what is not finite.
    """
    array_BM = finite(scores_BM, "BM", least=2)
    B, M = array_BM.shape
    higher_BMM, equal_BMM = (compare(array_BM[:, None, :], array_BM[:, :, None]) for compare in (np.greater, np.equal))
    rank_BM = higher_BMM.sum(axis=2) + (equal_BMM.sum(axis=2) + 1) / 2
    spread = float(np.square(rank_BM - (M + 1) / 2).sum())
    between = float(np.square(rank_BM.sum(axis=0) - B * (M + 1) / 2).sum())
    chi2 = (M - 1) * between / spread if spread else 0.0
    rest = B * (M - 1) - chi2
    f = (B - 1) * chi2 / rest if rest > 1e-9 * chi2 else inf if chi2 else 0.0
    return Friedman(rank_BM.mean(axis=0), chi2, float(chdtrc(M - 1, chi2)), chi2 / (B * (M - 1)), f,
                    float(fdtrc(M - 1, (M - 1) * (B - 1), f)))


@dataclass(frozen=True)
class CriticalDifference:
    """Difference of mean ranks that tells two of `models` apart over `blocks`."""

    models: int
    blocks: int
    q: float
    value: float

    @property
    def can_separate(self) -> bool:
        """False where not even the first and the last of all blocks lie so far apart."""
        return self.value <= self.models - 1


def critical_difference(models: int, blocks: int, *, alpha: float = 0.05) -> CriticalDifference:
    """q sqrt(M (M + 1)/(6 B)), q = studentised range (1 - alpha, M, infinite df)/sqrt(2) (Nemenyi 1963, Demsar 2006).

    Raises ValueError below two models or one block, or for alpha outside 0 to 1.
    """
    if models < 2 or blocks < 1 or not 0 < alpha < 1:
        raise ValueError(f"expected two models, one block and 0 < alpha < 1; found {models}, {blocks} and {alpha}")
    q = _range_quantile(1 - alpha, models) / sqrt(2)
    return CriticalDifference(models, blocks, q, q * sqrt(models * (models + 1) / (6 * blocks)))


def rank_groups(mean_rank_M: Sequence[float] | FloatArray, difference: CriticalDifference) -> list[list[int]]:
    """Largest runs of models, best first, whose mean ranks differ by less than the critical difference: their numbers.

    A model that all others are told apart from is a group of its own. Refused with ValueError where the difference
    cannot be reached, which would tie all models whatever they score, or for another number of models.
    """
    array_M = finite(mean_rank_M, "M")
    if array_M.size != difference.models:
        raise ValueError(f"a critical difference of {difference.models} models; found mean ranks {mean_rank_M!r}")
    if not difference.can_separate:
        raise ValueError(f"{difference.models} models over {difference.blocks} blocks have a critical difference of "
                         f"{difference.value:.3g}, which no mean ranks reach: no groups")
    order, groups = [int(m) for m in np.argsort(array_M, kind="stable")], list[list[int]]()
    for first, model in enumerate(order):
        group = [other for other in order[first:] if array_M[other] - array_M[model] < difference.value]
        if not groups or group[-1] != groups[-1][-1]:
            groups.append(group)
    return groups


def _range_quantile(level: float, k: int) -> float:
    """Quantile of the range of k standard normal values. scipy.stats has it, and takes a second to load."""
    z, step = np.linspace(-9, 9, 1801, retstep=True)
    density = np.exp(-z * z / 2) / sqrt(2 * np.pi)
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        # The largest at z, all others within the range below it; the trapezoidal sum is exact to rounding.
        share = k * step * float(density @ (ndtr(z) - ndtr(z - middle)) ** (k - 1))
        low, high = (middle, high) if share < level else (low, middle)
    return (low + high) / 2
