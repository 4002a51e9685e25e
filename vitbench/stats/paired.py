"""Paired differences of two models over seeds: is it 0, is it small, how large is it beside its spread."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, exp, inf, sqrt
from typing import Literal

from scipy.special import gammaln, stdtr

from vitbench.stats.arrays import FloatArray, finite
from vitbench.stats.intervals import t_interval


@dataclass(frozen=True)
class PairedT:
    """Student's paired t test. Without spread t is 0 or infinite, and `outcome` says that nothing was tested."""

    t: float
    p: float
    df: int
    outcome: Literal["tested", "all zero", "all equal"]


def paired_t(differences_S: Sequence[float] | FloatArray) -> PairedT:
    """t = mean sqrt(S)/sd, p = 2 P(T > |t|) with S - 1 degrees of freedom (Student 1908; `scipy.stats.ttest_1samp`).

    'all zero' has p 1, 'all equal' (to another value) p 0: the limits. Raises ValueError below two finite values.
    """
    mean, sd, n = _moments(differences_S)
    if sd == 0:
        t = copysign(inf, mean) if mean else 0.0
        return PairedT(t, 0.0 if mean else 1.0, n - 1, "all equal" if mean else "all zero")
    t = mean * sqrt(n) / sd
    return PairedT(t, 2 * float(stdtr(n - 1, -abs(t))), n - 1, "tested")


def tost_p(differences_S: Sequence[float] | FloatArray, margin: float) -> float:
    """p of 'the mean lies outside +-margin': the larger of two one-sided paired t tests (Schuirmann 1987).

    Equal values have p 0 inside the margin, else 1. Raises ValueError below two finite values or for a margin that is
    not above 0.
    """
    if not 0 < margin < inf:
        raise ValueError(f"a margin of equivalence is a number above 0; found {margin}")
    mean, sd, n = _moments(differences_S)
    inside = margin - abs(mean)  # the test of the nearer margin has the larger p
    if sd == 0:
        return 0.0 if inside > 0 else 1.0
    return float(stdtr(n - 1, -inside * sqrt(n) / sd))


@dataclass(frozen=True)
class EffectSize:
    """The mean of paired differences in units of their deviation; None where they have none."""

    cohen_dz: float | None
    hedges_j: float
    hedges_gz: float | None


def effect_size(differences_S: Sequence[float] | FloatArray) -> EffectSize:
    """dz = mean/sd (Cohen 1988); gz = J dz, J = Gamma(f/2)/(sqrt(f/2) Gamma((f - 1)/2)), f = S - 1 (Hedges 1981).

    Raises ValueError below three finite values: with two, J is 0.
    """
    mean, sd, n = _moments(differences_S, least=3)
    half = (n - 1) / 2
    j = exp(float(gammaln(half) - gammaln(half - 0.5))) / sqrt(half)
    return EffectSize(mean / sd, j, j * mean / sd) if sd else EffectSize(None, j, None)


def _moments(differences_S: Sequence[float] | FloatArray, least: int = 2) -> tuple[float, float, int]:
    found = t_interval(finite(differences_S, "S", least=least))
    assert found.sd is not None
    return found.mean, found.sd, found.n
