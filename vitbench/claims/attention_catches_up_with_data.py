"""Behind a CNN of its size on little data, attention comes nearer, in the ratio of errors, with each doubling."""

from dataclasses import replace
from statistics import fmean

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.row import Row
from vitbench.stats.slopes import log2_error_ratio, slopes_per_doubling
from vitbench.verdicts import (
    Blocked,
    Cell,
    CellOf,
    Evidence,
    Expected,
    Planted,
    Stratum,
    Verdict,
    contrast_of,
    described,
    matched_pairs,
    rule_g,
    with_legs,
)
from vitbench.verdicts.controls import HEADLINE
from vitbench.verdicts.evidence import LITTLE

MARGIN = 0.05
OFF_CHANCE, SIZES = 0.05, 5
ATT, CNN = range(2)
STUDY = {"models": ["attention:s", "convolution:s"], "images_per_class": [5, 10, 20, 40, 80, 160], "seeds": 10}


def _planted(cell: Cell) -> Expected:
    error = 0.3 * (cell.images / 5) ** -0.3
    ratio = 2.0 * (cell.images / 5) ** -0.07 if cell.family == "attention" else 1.0
    return Expected(1 - error * ratio)


def _parallel(cell: Cell) -> Expected:
    """Behind by the same factor everywhere: the difference of accuracies shrinks, the ratio of errors does not."""
    error = 0.3 * (cell.images / 5) ** -0.3
    return Expected(1 - error * (2.0 if cell.family == "attention" else 1.0))


@CLAIMS.add("attention_catches_up_with_data", ClaimMeta(
    sentence="Attention is behind a CNN of its size on little data and catches up with more.",
    source="lecture notes on self-attention that this project starts from; the ViT paper (Dosovitskiy et al. 2021), "
           "section 4.3",
    null="The ratio of its errors to the CNN's does not fall with more data.",
    planted=Planted("twice the errors at the smallest size, and .07 of a doubling less with each doubling; 10 seeds",
                    _planted, power=0.85, study=STUDY, null=_parallel),
    margin=MARGIN, unit="doublings of the ratio of errors that are lost per doubling of the images", controls=HEADLINE))
def judge(evidence: Evidence) -> Verdict:
    """y = minus the least-squares slope, per doubling of train images, of log2((wrong_att + 1/2)/(wrong_cnn + 1/2)).

    One slope per seed, over the sizes of at least 5 images a class at which both models are .05 off chance, at least
    five sizes; rule G. Blocked 'not behind' unless the log ratio at the smallest of these has L > 0. The slope of the
    difference of accuracies is positive whenever both approach 100 %, even where attention falls behind: it stands
    beside the ratio and decides nothing.
    """
    least = tuple(n for n in evidence.shares if min(evidence.drawn[n]) >= LITTLE[0])
    strata = matched_pairs(evidence, *least)
    sizes = tuple(n for n in least if all(_off_chance(evidence, strata, place, n) for place in (ATT, CNN)))
    if len(sizes) < SIZES:
        raise Blocked(f"It takes {SIZES} sizes of {LITTLE[0]} images a class or more at which both models are "
                      f"{OFF_CHANCE:g} off chance; the study has {len(sizes)}{': ' * bool(sizes)}{', '.join(sizes)}")
    slope = contrast_of(evidence, strata, sizes, lambda rows: -_slope(
        [rows[ATT, n] for n in sizes], [_log_ratio(rows[ATT, n], rows[CNN, n]) for n in sizes]))
    start = contrast_of(evidence, strata, sizes[:1], lambda rows: _log_ratio(rows[ATT, sizes[0]], rows[CNN, sizes[0]]))
    points = contrast_of(evidence, strata, sizes, lambda rows: _slope(
        [rows[ATT, n] for n in sizes], [rows[ATT, n].counted_accuracy - rows[CNN, n].counted_accuracy for n in sizes]))
    behind = start.lies_above(0)
    verdict = rule_g(slope, margin=MARGIN)
    if not behind and not slope.few_seeds:
        verdict = replace(verdict, outcome="blocked", sentence=(
            f"Not behind: at {evidence.described(sizes[0])} attention is not shown to make more errors than the CNN"))
    return with_legs(
        verdict,
        described(f"log2 of the ratio of errors at {sizes[0]}",
                  f"attention {'makes' if behind else 'is not shown to make'} more errors", start),
        described("slope of the difference of accuracies per doubling", "decides nothing", points))


def _off_chance(evidence: Evidence, strata: tuple[Stratum, ...], place: int, share: str) -> bool:
    """True where the model's mean accuracy over seeds is OFF_CHANCE above chance in every stratum."""
    for stratum in strata:
        rows = evidence.by_cell.get(CellOf(stratum.models[place], share, stratum.condition), {}).values()
        if not rows or fmean(row.counted_accuracy - row.chance_accuracy for row in rows) < OFF_CHANCE:
            return False
    return True


def _log_ratio(attention: Row, cnn: Row) -> float:
    return float(log2_error_ratio(*(row.test_images * (1 - row.counted_accuracy) for row in (attention, cnn))))


def _slope(rows: list[Row], values: list[float]) -> float:
    """Least squares, per doubling of the training images."""
    return float(slopes_per_doubling([values], [row.train_images for row in rows])[0])
