"""A small CNN resists overfitting on little data: neither does longer training harm it, nor is it behind a line."""

from dataclasses import replace
from statistics import fmean

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import (
    Cell,
    Evidence,
    Expected,
    Leg,
    Planted,
    Verdict,
    accuracy_contrast,
    architectures,
    contrast_of,
    fitting,
    little_sizes,
    named,
    rule_e,
    time_harm,
    with_legs,
)
from vitbench.verdicts.controls import HEADLINE

MARGIN = 0.01
CNN_S, LINEAR = range(2)
STUDY = {"models": ["convolution:s", "linear"], "images_per_class": [5, 20, 80], "seeds": 10}


def _planted(cell: Cell) -> Expected:
    return Expected(0.9, time_harm=0.006) if cell.family == "convolution" else Expected(0.8)


def _at_the_margin(cell: Cell) -> Expected:
    return replace(_planted(cell), time_harm=MARGIN)


@CLAIMS.add("small_cnn_resists_overfitting", ClaimMeta(
    sentence="A small CNN does not overfit little data.",
    source="lecture notes on self-attention that this project starts from",
    null="Time or its capacity harms it by a point or more.",
    planted=Planted(".6 points of time harm, 10 points ahead of a linear model; 10 seeds", _planted, power=0.85,
                    study=STUDY, null=_at_the_margin, equivalence=True),
    margin=MARGIN, unit="test error, as a share of images", controls=HEADLINE))
def judge(evidence: Evidence) -> Verdict:
    """Rule E on both h(cnn s) and e(cnn s) - e(linear), little sizes. Holds if both hold, fails if either fails.

    A stratum in which cnn s is underfit in over half of its runs is blocked: it is said first and left out; the claim
    is blocked where none is left.
    """
    little = little_sizes(evidence)
    groups = [(c["s"], line) for c in architectures(evidence, "convolution", "s") for line in named(evidence, "linear")]
    strata, told = fitting(evidence, evidence.strata(groups, little), CNN_S, little)
    by_time = rule_e(contrast_of(evidence, strata, little, lambda rows: fmean(
        time_harm(rows[CNN_S, n]) for n in little)), margin=MARGIN)
    behind = rule_e(accuracy_contrast(evidence, strata, {
        (place, n): sign / len(little) for place, sign in ((CNN_S, -1), (LINEAR, 1)) for n in little}), margin=MARGIN)
    verdict = _both(by_time, behind)
    t_p = None if by_time.t_p is None or behind.t_p is None else max(by_time.t_p, behind.t_p)
    return with_legs(replace(verdict, sentence=told + verdict.sentence, t_p=t_p),
                     Leg.of("time harm of cnn s", by_time), Leg.of("error of cnn s minus error of linear", behind))


def _both(by_time: Verdict, behind: Verdict) -> Verdict:
    found = {"Harm of time": by_time, "Error above a linear model's": behind}
    for outcome in ("fails", "depends", "undecided"):
        for what, verdict in found.items():
            if verdict.outcome == outcome:
                return replace(verdict, sentence=f"{what}: {verdict.sentence}")
    return replace(by_time, sentence="Neither time nor its capacity does harm: both intervals end below the margin of "
                                     f"{MARGIN:g} in every stratum")
