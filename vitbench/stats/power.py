"""What a number of seeds can show, and how many a margin needs. Imports scipy.stats (0.9 s) only when asked."""

from itertools import count
from math import floor, inf, isnan, sqrt

import numpy as np
from scipy.special import chdtri, ndtr, stdtrit

from vitbench.stats.sign_flip import TOLERANCE, sign_flip_interval

MOST_SEEDS = 10_000  # what a study file can name


def paired_t_power(n: int, effect: float, *, alpha: float = 0.05) -> float:
    """Power of the two-sided paired t test at `n` pairs for a true mean of `effect` deviations (noncentral t)."""
    from scipy.stats import nct  # scipy.special's nctdtr is NaN in places

    critical, shift = float(stdtrit(n - 1, 1 - alpha / 2)), effect * sqrt(n)
    wrong_side = float(nct.cdf(-critical, n - 1, shift))
    # NaN where the tail is below its accuracy.
    return float(nct.sf(critical, n - 1, shift)) + (0.0 if isnan(wrong_side) else wrong_side)


def smallest_detectable(n: int, sd: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Smallest true paired difference that `n` seeds show with `power`, for a deviation `sd` of the differences.

    Raises ValueError below two seeds or for a negative deviation.
    """
    from scipy.optimize import brentq

    if n < 2 or not sd >= 0:
        raise ValueError(f"a paired difference needs two seeds and a deviation of 0 or more; found n={n}, sd={sd}")
    top = next(2.0**k for k in count() if paired_t_power(n, 2.0**k, alpha=alpha) > power)
    return sd * float(brentq(lambda effect: paired_t_power(n, effect, alpha=alpha) - power, 0.0, top, xtol=1e-12))


def smallest_detectable_sign_flip(n: int, sd: float, *, alpha: float = 0.05, power: float = 0.8,
                                  rng: np.random.Generator | None = None) -> float:
    """The same for the exact sign-flip test of normal differences; infinite where `n` seeds can never reject.

    Where only differences of one sign reject (six seeds at .05), the root of Phi(d)^n + Phi(-d)^n = power. With more
    seeds the `power` quantile of how far the inverted interval of 4,000 samples of `rng` reaches to the other side of
    their mean: the shift that takes it past 0. Raises ValueError as above, or where a generator lacks.
    """
    from scipy.optimize import brentq

    if n < 1 or not sd >= 0:
        raise ValueError(f"a paired difference needs a seed and a deviation of 0 or more; found n={n}, sd={sd}")
    rejecting = floor(alpha * 2 ** (n - 1) + TOLERANCE)  # patterns on each side
    if rejecting == 0:
        return inf
    if rejecting == 1:
        return sd * float(brentq(lambda d: ndtr(d) ** n + ndtr(-d) ** n - power, 0.0, 40.0, xtol=1e-12))
    if rng is None:
        raise ValueError(f"the power of {n} seeds is simulated: give a generator")
    lows = [sign_flip_interval(values_S, level=1 - alpha, rng=rng).low for values_S in rng.standard_normal((4000, n))]
    return sd * float(np.quantile(np.negative(lows), power))


def sd_upper(sd: float, n: int, *, level: float = 0.8) -> float:
    """Upper confidence limit of a deviation measured over `n` normal values (chi-squared)."""
    return sd * sqrt((n - 1) / float(chdtri(n - 1, level)))


def seeds_needed(sd: float, n: int, half_width: float, *, level: float = 0.8) -> int | None:
    """Fewest seeds, six or more, whose t interval is at most +- `half_width`, for a deviation measured over `n` seeds.

    Rests on the deviation's 80 % upper limit (protocol rule 22). None beyond 10,000 seeds.
    """
    limit = sd_upper(sd, n, level=level)
    return next((k for k in range(6, MOST_SEEDS + 1) if float(stdtrit(k - 1, 0.975)) * limit / sqrt(k) <= half_width),
                None)
