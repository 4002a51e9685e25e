"""What crossover sets, data-efficiency factors and fitted bands cover: simulated studies with planted laws.

    python benchmarks/crossovers.py [--write]

Some minutes on one core; fixed seeds. Prints a section; `--write` puts it into docs/statistics.md.
"""

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri

from vitbench.stats.crossover import SizeSet, crossing, crossover_set
from vitbench.stats.curve_band import band
from vitbench.stats.curve_choice import learning_curve
from vitbench.stats.efficiency import Factor, data_efficiency

TITLE = "Curves and crossovers, simulated"
SIZES = np.array([14, 28, 57, 115, 230, 460, 920, 1437])  # of digits
STUDIES, RESAMPLES, BANDS = 1000, 1000, 60
# Deviations in probits: a seed's luck with both models, with one, and a run's own. At 90 % accuracy a paired difference
# of 360 images varies over seeds by 2.8 points, of which 2.2 come from the images.
SEED, MODEL, RUN = 0.05, 0.05, 0.08
TOTAL = float(np.sqrt(1 + SEED**2 + MODEL**2 + RUN**2))
Rng, FloatArray = np.random.Generator, npt.NDArray[np.float64]
Law = Callable[[FloatArray], FloatArray]


def cnn(n: FloatArray) -> FloatArray:
    return np.asarray(0.03 + 1.2 * n**-0.45)


def attention(n: FloatArray, n_star: float = 230, slope: float = 0.3) -> FloatArray:
    """The CNN's error at `n_star`; the odds of an error fall by a factor 2^slope more with every doubling. Of no family
    that is fitted."""
    return np.asarray(expit(logit(cnn(n)) - slope * np.log(n / n_star)))


def errors(laws: list[FloatArray], images: int, seeds: int, studies: int, rng: Rng) -> FloatArray:
    """Test errors R x K x S x N: expected ones of each law at sizes N, luck of seeds, models and runs, and so many test
    images, drawn for every run."""
    shape = (studies, len(laws), seeds, laws[0].size)
    luck = rng.normal(0, SEED, (studies, 1, seeds, 1)) + rng.normal(0, MODEL, (*shape[:3], 1)) + rng.normal(
        0, RUN, shape)
    wrong = ndtr(ndtri(np.array(laws))[None, :, None] * TOTAL + luck)  # its mean is the law
    return rng.binomial(images, wrong) / images


def within(n: float, found: SizeSet) -> bool:
    return any(low <= n <= high for low, high in found.pieces)


def first_crossing(sizes: FloatArray, means_BN: FloatArray) -> FloatArray:
    """Where each line first comes up to 0: below the range if it begins there, above it if it never does."""
    rises = (means_BN[:, :-1] < 0) & (means_BN[:, 1:] >= 0)
    i = rises.argmax(axis=1)
    rows = np.arange(len(means_BN))
    low, high = means_BN[rows, i], means_BN[rows, i + 1]
    logs = np.log(sizes)
    place = logs[i] - low / np.where(rises.any(axis=1), high - low, 1) * (logs[i + 1] - logs[i])
    never = np.where(means_BN[:, 0] >= 0, -np.inf, np.inf)
    return np.where(rises.any(axis=1), np.exp(place), never)


def percentile(values_B: FloatArray) -> tuple[float, float]:
    """2.5 and 97.5 % of what resamples give; some are infinite, so none is interpolated."""
    low, high = np.quantile(values_B, (0.025, 0.975), method="inverted_cdf")
    return float(low), float(high)


def crossovers_covered(n_star: float, slope: float, images: int, seeds: int,
                       studies: int = STUDIES) -> tuple[float, float, Counter[str]]:
    """Share of studies whose set, and whose percentile bootstrap, holds the planted crossover; and the outcomes."""
    rng = np.random.default_rng([round(n_star), round(100 * slope), images, seeds])
    sizes = SIZES.astype(float)
    found = errors([attention(sizes, n_star, slope), cnn(sizes)], images, seeds, studies, rng)
    difference_RSN = found[:, 1] - found[:, 0]
    inside, boot, outcomes = 0, 0, Counter[str]()
    for difference in difference_RSN:
        inside += within(n_star, crossover_set(sizes, difference))
        outcomes[crossing(sizes, difference.mean(axis=0)).outcome] += 1
        drawn = difference[rng.integers(seeds, size=(RESAMPLES, seeds))].mean(axis=1)
        low, high = percentile(first_crossing(sizes, drawn))
        boot += low <= n_star <= high
    return inside / studies, boot / studies, outcomes


def true_factor(n: float, n_star: float, slope: float) -> float:
    """How many times n images attention's law needs for the CNN's error at n."""
    wanted = float(cnn(np.array(n)))
    return float(brentq(lambda m: float(attention(np.array(m), n_star, slope)) - wanted, 2, 1e9)) / n


def holds(factor: Factor, true: float) -> bool:
    return (factor.low or 0) <= true <= (np.inf if factor.high is None else factor.high)


def factors_covered(n_star: float, slope: float, images: int, seeds: int,
                    studies: int = STUDIES) -> tuple[FloatArray, FloatArray]:
    """At each size: the true factor, and the share of studies whose interval holds it."""
    rng = np.random.default_rng([round(n_star), round(100 * slope), images, seeds, 1])
    sizes = SIZES.astype(float)
    found = errors([attention(sizes, n_star, slope), cnn(sizes)], images, seeds, studies, rng)
    true_N = np.array([true_factor(n, n_star, slope) for n in sizes])
    inside_N = np.zeros(len(sizes))
    for attention_SN, cnn_SN in found:
        found_N = data_efficiency(sizes, cnn_SN, attention_SN)
        inside_N += [holds(factor, true) for factor, true in zip(found_N, true_N, strict=True)]
    return true_N, inside_N / studies


def bands_covered(law: Law, images: int, seeds: int, studies: int = BANDS) -> tuple[float, float, float, Counter[str]]:
    """Share of the band that holds the law at measured sizes, and between them; share of studies called ill-behaved;
    and the families that were chosen. Of studies that are not ill-behaved."""
    rng = np.random.default_rng([images, seeds, 2])
    sizes = SIZES.astype(float)
    between = np.sqrt(sizes[:-1] * sizes[1:])
    at = np.concatenate([sizes, between])
    found = errors([law(sizes)], images, seeds, studies, rng)[:, 0]
    inside, families, ill = [], Counter[str](), 0
    for errors_SN in found:
        curve = learning_curve(sizes, errors_SN)
        if curve.curve is None:
            ill += 1
            continue
        families[curve.curve.family] += 1
        around = band(sizes, errors_SN, at, rng=rng)
        assert around is not None
        inside.append((around.low_M <= law(at)) & (law(at) <= around.high_M))
    shares = np.mean(inside, axis=0)
    return float(shares[:len(sizes)].mean()), float(shares[len(sizes):].mean()), ill / studies, families


PLANTED = [(230, 360, 6), (230, 1000, 6), (163, 360, 6), (163, 1000, 6), (325, 1000, 6), (230, 1000, 10),
           (163, 1000, 10)]
SLOPE = 0.3  # of attention's odds of an error against the CNN's, per e-fold of images
HEAD = f"""{TITLE}

Made by `python benchmarks/crossovers.py --write`: a CNN's error of .03 + 1.2 n^-.45, and attention, whose odds of an
error fall faster by n^-{SLOPE:g} and meet it at the planted size; test images drawn for every run; luck of seeds,
models and runs. Sizes {', '.join(map(str, SIZES))}. {STUDIES:,} studies a row.
"""


def crossovers() -> list[str]:
    lines = ["### Planted crossovers", "",
             "| planted n\\* | test images | seeds | set n\\* holds it, % | percentile bootstrap, % |",
             "| ---: | ---: | ---: | ---: | ---: |"]
    for n_star, images, seeds in PLANTED:
        inside, boot, _ = crossovers_covered(n_star, SLOPE, images, seeds)
        lines.append(f"| {n_star} | {images:,} | {seeds} | {100 * inside:.1f} | {100 * boot:.1f} |")
    return [*lines, "", "230 is a size of the grid, 163 and 325 lie between two, where the straight line in ln n",
            "is an approximation.", ""]


def factors() -> list[str]:
    true_N, few_N = factors_covered(230, SLOPE, 360, 6)
    _, many_N = factors_covered(230, SLOPE, 1000, 10)
    rows = [f"| {n:,} | {true:.2f} | {100 * few:.1f} | {100 * many:.1f} |"
            for n, true, few, many in zip(SIZES, true_N, few_N, many_N, strict=True)]
    return ["### Planted data-efficiency factors", "",
            "| the CNN's images | true factor | interval holds it, %: 360 images, 6 seeds | 1,000 images, 10 seeds |",
            "| ---: | ---: | ---: | ---: |", *rows, ""]


def bands() -> list[str]:
    lines = ["### Planted curves", "", f"{BANDS} studies a row; the band is one of 95 % at each size.", "",
             "| law | test images | seeds | band holds it at the sizes, % | between, % | ill-behaved, % | chosen |",
             "| --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    for name, law in (("the CNN's, a pow3", cnn), ("attention's, of no family", attention)):
        for images, seeds in ((360, 6), (1000, 10)):
            at, between, ill, families = bands_covered(law, images, seeds)
            chosen = ", ".join(f"{family} {count}" for family, count in families.most_common())
            lines.append(f"| {name} | {images:,} | {seeds} | {100 * at:.1f} | {100 * between:.1f} | {100 * ill:.1f} | "
                         f"{chosen} |")
    return [*lines, "",
            "A band covers less than it says where the law is of no family: fits are pictures and interpolators, and",
            "decide nothing."]


if __name__ == "__main__":
    made = "\n".join([HEAD, *crossovers(), *factors(), *bands()]) + "\n"
    print(made)
    if "--write" in sys.argv:
        from pages import write  # beside this file, which tests import from elsewhere

        write(TITLE, made, "statistics.md")
