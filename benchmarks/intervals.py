"""What the usual statistics do at few seeds: coverage, power and error rates of 4,000 simulated studies each.

    python benchmarks/intervals.py [--write]

Four minutes on one core; fixed seeds. Prints a section; `--write` puts it into docs/statistics.md.
"""

import sys
from collections.abc import Callable
from functools import partial
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from vitbench.stats import Interval, sign_flip_p, t_interval
from vitbench.stats.bootstrap import bca_interval, percentile_interval, studentised_interval
from vitbench.stats.mcnemar import mcnemar_p
from vitbench.stats.multiplicity import holm, step_down_max_t
from vitbench.stats.paired import paired_t
from vitbench.stats.sign_flip import TOLERANCE, sign_patterns
from vitbench.stats.slopes import log2_error_ratio, slopes_per_doubling

TITLE = "Where the usual methods mislead"
REPEATS, RESAMPLES, ALPHA = 4000, 1000, 0.05
Rng, FloatArray = np.random.Generator, npt.NDArray[np.float64]

IMAGES, BETTER, WORSE = 360, 0.95, 0.93  # of the binomial differences


def gamma(rng: Rng, shape: tuple[int, ...], skewness: float) -> FloatArray:
    return rng.gamma(4 / skewness**2, size=shape) - 4 / skewness**2


# All of mean 0.
DRAWS: dict[str, Callable[[Rng, tuple[int, ...]], FloatArray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "t(3)": lambda rng, shape: rng.standard_t(3, shape),
    "binomial difference": lambda rng, shape: (
        (rng.binomial(IMAGES, BETTER, shape) - rng.binomial(IMAGES, WORSE, shape)) / IMAGES - (BETTER - WORSE)),
    "gamma, skewness 1": partial(gamma, skewness=1),
    "gamma, skewness 2": partial(gamma, skewness=2),
}
SYMMETRIC = list(DRAWS)[:3]  # or nearly so
SEEDS = (3, 6, 10, 20)
METHODS = ("t", "percentile", "BCa", "studentised", "sign-flip")


def holds_0(interval: Interval) -> bool:
    return interval.low is not None and interval.high is not None and interval.low <= 0 <= interval.high


def sign_flip_holds_0(values_RS: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether the inverted interval of each row holds 0: whether its exact p is above .05. All rows at once."""
    least_R = np.abs(values_RS.sum(axis=1)) - TOLERANCE * np.abs(values_RS).sum(axis=1)
    reached_R, patterns = np.zeros(len(values_RS)), 2 ** (values_RS.shape[1] - 1)
    for signs_PS in sign_patterns(values_RS.shape[1]):
        for rows in np.array_split(np.arange(len(values_RS)), max(1, len(values_RS) // 200)):
            sums_RP = np.abs(values_RS[rows] @ signs_PS.T)
            reached_R[rows] += np.count_nonzero(sums_RP >= least_R[rows, None], axis=1)
    return np.asarray(reached_R / patterns > ALPHA)


def coverage(draw: Callable[[Rng, tuple[int, ...]], FloatArray], n: int, repeats: int = REPEATS,
             methods: tuple[str, ...] = METHODS) -> dict[str, float]:
    """Share of studies of `n` seeds whose 95 % interval of each method holds the true mean."""
    rng = np.random.default_rng(n)
    values_RS = draw(rng, (repeats, n))
    drawn = partial(dict, rng=rng, resamples=RESAMPLES)
    of = {
        "t": lambda: [holds_0(t_interval(values_S)) for values_S in values_RS],
        "percentile": lambda: [holds_0(percentile_interval(values_S, **drawn())) for values_S in values_RS],
        "BCa": lambda: [holds_0(bca_interval(values_S, **drawn())) for values_S in values_RS],
        "studentised": lambda: [holds_0(studentised_interval(values_S, **drawn())) for values_S in values_RS],
        "sign-flip": lambda: sign_flip_holds_0(values_RS),
    }
    return {method: float(np.mean(of[method]())) for method in methods}


ADJUSTED: dict[str, Callable[[FloatArray], FloatArray]] = {
    "Holm, sign-flip": lambda rows_MS: holm([sign_flip_p(values_S) for values_S in rows_MS]),
    "Holm, paired t": lambda rows_MS: holm([paired_t(values_S).p for values_S in rows_MS]),
    "step-down max-T": lambda rows_MS: step_down_max_t(rows_MS).adjusted_M,
}
EFFECT = 2.0  # of the one better model, in deviations of a paired difference
FAMILIES = ((6, 2), (6, 3), (6, 4), (6, 8), (10, 4), (10, 8), (12, 8))  # seeds, models


def found_and_false(seeds: int, models: int, repeats: int = REPEATS) -> dict[str, tuple[float, float]]:
    """Of all pairs of models of which one is better: share of its differences found, of studies with a false one."""
    rng = np.random.default_rng([seeds, models])
    first, second = np.triu_indices(models, 1)
    true_M = first == 0
    found, false = (dict.fromkeys(ADJUSTED, 0.0) for _ in range(2))
    for _ in range(repeats):
        scores_KS = rng.normal(0, sqrt(0.5), (models, seeds))
        scores_KS[0] += EFFECT
        for name, adjusted in ADJUSTED.items():
            rejected_M = adjusted(scores_KS[first] - scores_KS[second]) <= ALPHA
            found[name] += rejected_M[true_M].mean() / repeats
            false[name] += (rejected_M & ~true_M).any() / repeats
    return {name: (found[name], false[name]) for name in ADJUSTED}


ACCURACY, RUNS = 0.9, 6
LUCK = ((360, 0.01), (1000, 0.01), (10_000, 0.01), (10_000, 0.003))  # test images, deviation of accuracy over seeds


def identical_told_apart(images: int, luck: float, repeats: int = REPEATS) -> dict[str, float]:
    """Share of studies in which a test tells apart two architectures that are the same.

    An image's difficulty and a run's noise on an image have deviation 1 (in probits), a run's own luck so much that
    the accuracy over endless test images varies over seeds by `luck`.
    """
    rng = np.random.default_rng([images, round(1 / luck)])
    z = float(ndtri(ACCURACY))
    own = luck * sqrt(2) / (np.exp(-z * z / 2) / sqrt(2 * np.pi))
    wrong = dict.fromkeys(("McNemar, one seed", "McNemar, six seeds pooled", "paired t over six seeds"), 0)
    for _ in range(repeats):
        level_I = z * sqrt(2 + own**2) + rng.standard_normal(images, dtype=np.float32)
        noise_KSI = rng.standard_normal((2, RUNS, images), dtype=np.float32)
        a_SI, b_SI = level_I + own * rng.standard_normal((2, RUNS, 1)).astype(np.float32) + noise_KSI > 0
        only_a_S, only_b_S = (a_SI & ~b_SI).sum(axis=1), (b_SI & ~a_SI).sum(axis=1)
        for name, p in zip(wrong, (mcnemar_p(int(only_a_S[0]), int(only_b_S[0])),
                                   mcnemar_p(int(only_a_S.sum()), int(only_b_S.sum())),
                                   paired_t((only_a_S - only_b_S) / images).p), strict=True):
            wrong[name] += p <= ALPHA
    return {name: count / repeats for name, count in wrong.items()}


SIZES = tuple(100 * 2**k for k in range(7))
TEST_IMAGES, SEED_LUCK = 1000, 0.1  # the deviation over seeds of ln error


def said_to_catch_up(repeats: int = REPEATS) -> dict[str, float]:
    """Share of six-seed studies that find attention catching up, though its error falls more slowly by construction.

    Errors .3 (n/100)^-.5 and .2 (n/100)^-.6: attention's grows by 7 % a doubling beside the CNN's.
    """
    rng, n = np.random.default_rng(7), np.array(SIZES) / 100
    expected_KN = np.array([0.3 * n**-0.5, 0.2 * n**-0.6])
    said = {"accuracy difference": 0, "log2 error ratio": 0}
    for _ in range(repeats):
        error_KSN = expected_KN[:, None] * np.exp(rng.normal(0, SEED_LUCK, (2, RUNS, len(SIZES))))
        wrong_a_SN, wrong_c_SN = rng.binomial(TEST_IMAGES, np.minimum(error_KSN, 1))
        for name, gain_SN in (("accuracy difference", (wrong_c_SN - wrong_a_SN) / TEST_IMAGES),
                              ("log2 error ratio", -log2_error_ratio(wrong_a_SN, wrong_c_SN))):
            low = t_interval(slopes_per_doubling(gain_SN, SIZES)).low
            said[name] += low is not None and low > 0
    return {name: count / repeats for name, count in said.items()}


def table(*rows: tuple[str, ...]) -> str:
    head, *body = (f"| {' | '.join(row)} |\n" for row in rows)
    return head + "| --- |" + " ---: |" * (len(rows[0]) - 1) + "\n" + "".join(body)


def percent(*shares: float) -> tuple[str, ...]:
    return tuple(f"{100 * share:.1f}" for share in shares)


def of_coverage() -> str:
    found = {(name, n): coverage(draw, n) for name, draw in DRAWS.items() for n in SEEDS}
    rows = [(name, str(n), *percent(*shares.values())) for (name, n), shares in found.items()]
    t = [found[name, n]["t"] for name in SYMMETRIC for n in (6, 10, 20)]

    def of(name: str, method: str, *seeds: int) -> str:
        return " and ".join(percent(*(found[name, n][method] for n in seeds))) + " %"

    return f"""### Coverage of intervals

Share (%) of {REPEATS:,} studies whose 95 % interval holds the true mean; bootstraps of {RESAMPLES:,} resamples;
standard error .3. A binomial difference is that of two accuracies, {BETTER:g} and {WORSE:g} of {IMAGES} images.

{table(("values", "seeds", *METHODS), *rows)}
- **t** covers {" to ".join(percent(min(t), max(t)))} % of the first three at 6, 10 and 20 seeds (93 to 97 asked for).
- **The percentile bootstrap** of normal values covers {of("normal", "percentile", 3, 6)} at three and six seeds,
  BCa {of("normal", "BCa", 3, 6)}: intervals that say 95 % and are wrong two to five times as often as they say.
- **Skew** takes from t, too. At six and twenty seeds it covers {of("gamma, skewness 1", "t", 6, 20)} at skewness 1,
  {of("gamma, skewness 2", "t", 6, 20)} at skewness 2; the studentised bootstrap
  {of("gamma, skewness 1", "studentised", 6, 20)}, {of("gamma, skewness 2", "studentised", 6, 20)}.
- **Heavy tails** take from the studentised bootstrap: at ten and twenty seeds of t(3) it covers
  {of("t(3)", "studentised", 10, 20)}, t {of("t(3)", "t", 10, 20)}. So it stands beside t and does not replace it.
- **The sign-flip interval** rests on symmetry: from ten seeds on it does no better than t under skew. At three seeds
  it has no ends, and the studentised one hardly ever has: they hold everything.
"""


def of_families() -> str:
    rows = []
    for seeds, models in FAMILIES:
        found, pairs = found_and_false(seeds, models), models * (models - 1) // 2
        rows.append((f"{seeds} seeds, {models} models, {pairs} pair{'s' * (pairs > 1)}",
                     *(f"{100 * true:.1f} ({100 * false:.1f})" for true, false in found.values())))
    return f"""### Many comparisons

All pairs of models, of which one is better by {EFFECT:g} deviations of a paired difference: share (%) of its
differences found at .05, in brackets share of studies with a false finding. {REPEATS:,} studies each.

{table(("family", *ADJUSTED), *rows)}
At six seeds the smallest exact sign-flip p is 2/64: under Holm over two or more comparisons it can reject nothing,
however large the difference. Holm over paired t finds the most there; step-down max-T, which has 64 patterns, less;
from ten seeds on they are alike. None gives more than 5 % of studies a false finding, but for the error of the
simulation (.3).
"""


def of_mcnemar() -> str:
    rows, names = [], ()
    for images, luck in LUCK:
        found = identical_told_apart(images, luck)
        names = tuple(found)
        rows.append((f"{images:,} images, accuracy {ACCURACY:g} +- {luck:g}", *percent(*found.values())))
    return f"""### McNemar's test between architectures

Two identical architectures, of which every run has its own luck: share (%) of {REPEATS:,} studies in which they
are told apart at .05. The deviation is that of accuracy over seeds.

{table(("test images and accuracy", *names), *rows)}
McNemar's test asks whether two trained models differ, and they do. It takes images for the sample, not seeds: more
images make it surer of what the next seed turns round, and pooled seeds are no remedy.
"""


def of_slopes() -> str:
    found = said_to_catch_up()
    return f"""### The slope of a difference of accuracies

Attention's error falls more slowly than the CNN's by construction (.3 (n/100)^-.5 against .2 (n/100)^-.6,
{SIZES[0]} to {SIZES[-1]:,} images): share (%) of {REPEATS:,} six-seed studies in which the interval of the slope per
doubling says that attention catches up.

{table(("slope of", "catches up"), *((name, *percent(share)) for name, share in found.items()))}
Both accuracies approach 1, so their difference shrinks whatever their order. The error ratio does not.
"""


def section() -> str:
    parts = [f"{TITLE}\n\nMade by `python benchmarks/intervals.py --write` with fixed seeds.\n"]
    for part in (of_coverage, of_families, of_mcnemar, of_slopes):
        parts.append(part())
        print(parts[-1], flush=True)
    return "\n".join(parts)


if __name__ == "__main__":
    from pages import write  # beside this file, which tests import from elsewhere

    text = section()
    if "--write" in sys.argv:
        write(TITLE, text, "statistics.md")
