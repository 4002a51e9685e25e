"""Attention behind a CNN of its size on the study's smallest size of data, and ahead of it on the largest."""

from dataclasses import replace

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import (
    Blocked,
    Cell,
    Evidence,
    Expected,
    Planted,
    Verdict,
    accuracy_difference,
    decided,
    matched_pairs,
    rule_g,
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
    planted=Planted("10 points behind at the smallest size, 2 ahead at the largest; 10 seeds", _planted, power=0.85),
    margin=MARGIN, controls=HEADLINE))
def judge(evidence: Evidence) -> Verdict:
    """D, accuracy of attention minus that of its CNN: U(D) < 0 at the smallest size of data, rule G at the largest."""
    smallest, full = evidence.smallest, evidence.full
    if smallest == full:
        raise Blocked(f"It takes two sizes of data; the study has {full} alone")
    pairs = matched_pairs(evidence, smallest, full)
    start, end = (accuracy_difference(evidence, pairs, share) for share in (smallest, full))
    little, much = evidence.described(smallest), evidence.described(full)
    if start.lies_above(0):
        return decided("blocked", f"Ahead from the start: attention leads at {little}, nothing is overtaken", start)
    verdict = rule_g(end, margin=MARGIN)
    verdict = replace(verdict, run_ids=tuple(sorted({*start.run_ids, *end.run_ids})))
    if verdict.outcome == "fails":
        return replace(verdict, sentence=f"No crossover up to {much}. {verdict.sentence}")
    if verdict.outcome != "holds":
        return verdict
    if not start.lies_below(0):
        return replace(verdict, outcome="undecided", sentence=f"Ahead at {much}, but at {little} the interval of the "
                                                              f"difference holds 0. {verdict.sentence}")
    return replace(verdict, sentence=f"Behind at {little}, ahead at {much}; the size at which it overtakes is not "
                                     f"estimated. {verdict.sentence}")
