"""Attention behind a CNN of its size on the study's smallest size of data, and ahead of it on the largest."""

from dataclasses import replace

import numpy as np

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.stats import sentences
from vitbench.stats.crossover import crossing, crossover_set
from vitbench.verdicts import (
    Blocked,
    Cell,
    CellOf,
    Contrast,
    Evidence,
    Expected,
    Leg,
    Planted,
    Stratum,
    Verdict,
    accuracy_difference,
    contrast_of,
    decided,
    described,
    matched_pairs,
    rule_g,
    with_legs,
)
from vitbench.verdicts.controls import HEADLINE

MARGIN = 0.01
PLANTED = {"attention": {5: 0.60, 20: 0.80, 80: 0.92}, "convolution": {5: 0.70, 20: 0.82, 80: 0.90}}


def _planted(cell: Cell) -> Expected:
    return Expected(PLANTED[cell.family][cell.images])


@CLAIMS.add("attention_overtakes_with_enough_data", ClaimMeta(
    sentence="With little data a CNN is more accurate than attention of its size; with enough data attention is.",
    source="the ViT paper (Dosovitskiy et al. 2021), section 4.3 and figure 4",
    null="At the largest size attention is no more accurate than the CNN, or it was never behind.",
    planted=Planted("10 points behind at the smallest size, 2 ahead at the largest; 10 seeds", _planted, power=0.8),
    margin=MARGIN, controls=HEADLINE))
def judge(evidence: Evidence) -> Verdict:
    """D, accuracy of attention minus that of its CNN: holds if U(D at the smallest size) < 0 and D at the largest
    passes rule G; fails, 'no crossover up to N', if U(D at the largest) < margin; blocked, 'ahead from the start', if
    L(D at the smallest) > 0. The set n* of each stratum, over all sizes that it has, stands beside it.
    """
    smallest, full = evidence.smallest, evidence.full
    if smallest == full:
        raise Blocked(f"It takes two sizes of data; the study has {full} alone")
    pairs = matched_pairs(evidence, smallest, full)
    start, end = (accuracy_difference(evidence, pairs, share) for share in (smallest, full))
    little, much = evidence.described(smallest), evidence.described(full)
    if start.lies_above(0):
        verdict = decided("blocked", f"Ahead from the start: attention leads at {little}, nothing is overtaken", start)
    else:
        verdict = rule_g(end, margin=MARGIN)
        if verdict.outcome == "fails":
            verdict = replace(verdict, sentence=f"No crossover up to {much}. {verdict.sentence}")
        elif verdict.outcome == "holds" and not start.lies_below(0):
            verdict = replace(verdict, outcome="undecided", sentence=(
                f"Ahead at {much}, but at {little} the interval of the difference holds 0. {verdict.sentence}"))
        elif verdict.outcome == "holds":
            verdict = replace(verdict, sentence=f"Behind at {little}, ahead at {much}. {verdict.sentence}")
    return with_legs(verdict, described(f"difference at {smallest}", "attention minus CNN", start),
                     *(_set(evidence, pair) for pair in pairs))


def _set(evidence: Evidence, pair: Stratum) -> Leg:
    """n* over the sizes at which the study asks for both models, or why it is not to be had."""
    name = f"n* of {pair.name}"
    shares = [n for n in evidence.shares if all(
        CellOf(label, n, pair.condition) in evidence.seeds for label in pair.models)]

    def difference(n: str) -> Contrast:
        return contrast_of(evidence, (pair,), shares, lambda rows: (
            rows[0, n].counted_accuracy - rows[1, n].counted_accuracy))

    try:
        of = [difference(n) for n in shares]
    except Blocked as why:
        return Leg(name=name, sentence=str(why))
    images = {row.share: row.train_images for row in evidence.rows}
    sizes, difference_SN = [images[n] for n in shares], np.stack([y.y_S for y in of], axis=1)
    seeds = len(difference_SN)
    found = crossing(sizes, difference_SN.mean(axis=0))
    left_open = crossover_set(sizes, difference_SN) if seeds > 1 else None
    return Leg(name=name, sentence=sentences.of_crossing(found, left_open, sizes, seeds=seeds), run_ids=of[0].run_ids)
