"""A large attention model overfits little data: a larger gap than a small CNN's, and harm by its size or by time."""

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
    contrast_of,
    fitting,
    gap,
    little_sizes,
    matched_architectures,
    rule_g,
    time_harm,
    with_legs,
)
from vitbench.verdicts.controls import HEADLINE

MARGIN = 0.01
ATT_L, ATT_S, CNN_S = range(3)
STUDY = {"models": ["attention:s", "attention:l", "convolution:s"], "images_per_class": [5, 20, 80], "seeds": 10}


def _planted(cell: Cell) -> Expected:
    if cell.family == "convolution":
        return Expected(0.9)
    return Expected(0.86, time_harm=0.01) if cell.size == "l" else Expected(0.88)


@CLAIMS.add("large_attention_overfits_little_data", ClaimMeta(
    sentence="A large attention model overfits little data.",
    source="lecture notes on self-attention that this project starts from; the ViT paper (Dosovitskiy et al. 2021), "
           "section 4.3 and figure 4",
    null="Its gap is no larger than that of a small CNN, or neither its size nor time does it harm.",
    planted=Planted("gap 4 points above the small CNN's, size harm 2 and time harm 1 points; 10 seeds", _planted,
                    power=0.9, study=STUDY),
    margin=MARGIN, controls=HEADLINE))
def judge(evidence: Evidence) -> Verdict:
    """y1 = gap(att l) - gap(cnn s); y2 = half of [e(att l) - e(att s)] + half of h(att l), little sizes, G for each.

    Holds if both hold; depends if y1 holds and y2 fails; fails if y1 fails. A stratum in which att l is underfit in
    over half of its runs is blocked: it is said first and left out; the claim is blocked where none is left.
    """
    little = little_sizes(evidence)
    groups = [(a["l"], a["s"], c["s"]) for a, c in matched_architectures(evidence, "s", attention=("l",))]
    strata, told = fitting(evidence, evidence.strata(groups, little), ATT_L, little)
    larger = rule_g(contrast_of(evidence, strata, little, lambda rows: fmean(
        gap(rows[ATT_L, n]) - gap(rows[CNN_S, n]) for n in little)), margin=MARGIN)
    harm = rule_g(contrast_of(evidence, strata, little, lambda rows: fmean(
        (rows[ATT_S, n].counted_accuracy - rows[ATT_L, n].counted_accuracy + time_harm(rows[ATT_L, n])) / 2
        for n in little)), margin=MARGIN)
    verdict = _both(larger, harm)
    t_p = None if larger.t_p is None or harm.t_p is None else max(larger.t_p, harm.t_p)
    return with_legs(replace(verdict, sentence=told + verdict.sentence, t_p=t_p),
                     Leg.of("gap of att l minus gap of cnn s", larger), Leg.of("half size harm, half time harm", harm))


def _both(larger: Verdict, harm: Verdict) -> Verdict:
    if larger.outcome != "holds":
        return replace(larger, sentence=f"The gap: {larger.sentence}")
    if harm.outcome == "holds":
        return replace(harm, sentence=f"Larger gap, and harm. The gap: {larger.sentence}. The harm: {harm.sentence}")
    if harm.outcome == "fails":
        return replace(harm, outcome="depends", sentence="Larger gap, but neither size nor time does harm. "
                                                         f"{harm.sentence}")
    return replace(harm, sentence=f"Larger gap; whether it does harm: {harm.sentence}")
