"""Where attention has the larger error on little data, most of it is there in training already."""

from dataclasses import replace
from statistics import fmean

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.stats import Interval
from vitbench.verdicts import (
    Cell,
    Evidence,
    Expected,
    Leg,
    Planted,
    Verdict,
    accuracy_contrast,
    contrast_of,
    decided,
    little_sizes,
    matched_architectures,
    rule_g,
    train_error,
    undecided,
    with_legs,
)
from vitbench.verdicts.controls import HEADLINE

MARGIN = 0.01
ATT, CNN = range(2)
STUDY = {"models": ["attention:l", "convolution:l"], "images_per_class": [20, 50], "seeds": 10}


def _planted(cell: Cell) -> Expected:
    return Expected(0.8, 0.93, fit_state="underfit") if cell.family == "attention" else Expected(0.9, 1.0)


def _half(cell: Cell) -> Expected:
    """Exactly half of the excess error is there in training."""
    return Expected(0.8, 0.95) if cell.family == "attention" else Expected(0.9, 1.0)


@CLAIMS.add("attention_underfits_rather_than_overfits", ClaimMeta(
    sentence="On little data a large attention model is worse than a CNN because it underfits, not because it "
             "overfits.",
    source="what is argued about ViT on small data sets, often without a train accuracy (see the page of claims)",
    null="Half of its excess error or less is there in training.",
    planted=Planted("10 points of excess error, 7 of them there in training; 10 seeds", _planted, power=0.9,
                    study=STUDY, null=_half),
    margin=MARGIN, unit="error, as a share of images", controls=HEADLINE))
def judge(evidence: Evidence) -> Verdict:
    """E = e(att l) - e(cnn l), little sizes, must pass rule G, else blocked: no excess error. Then
    y = tr(att l) - tr(cnn l) - E/2: holds if L(y) > 0 and sign-flip p <= alpha, fails if U(y) < 0.
    """
    little = little_sizes(evidence)
    strata = evidence.strata([(a["l"], c["l"]) for a, c in matched_architectures(evidence, "l")], little)
    excess = rule_g(accuracy_contrast(evidence, strata, {
        (place, n): sign / len(little) for place, sign in ((ATT, -1), (CNN, 1)) for n in little}), margin=MARGIN)
    y = contrast_of(evidence, strata, little, lambda rows: fmean(
        train_error(rows[ATT, n]) - train_error(rows[CNN, n])
        - (rows[CNN, n].counted_accuracy - rows[ATT, n].counted_accuracy) / 2 for n in little))
    leg = Leg.of("excess error E", excess)
    if y.few_seeds:
        return with_legs(rule_g(y, margin=MARGIN), leg)
    if excess.outcome != "holds":
        return with_legs(replace(excess, outcome="blocked", sentence=f"No excess error is shown: {excess.sentence}"),
                         leg)
    E = excess.effect.mean  # type: ignore[union-attr]
    share = f"{round(y.interval.mean + E / 2, 4):g} of {E:.3g}"
    if y.lies_above(0) and y.p <= y.alpha:
        return with_legs(decided("holds", f"Of the excess error {share} is there in training, more than half", y), leg)
    if y.lies_below(0):
        return with_legs(decided("fails", f"Of the excess error {share} is there in training, less than half", y), leg)
    told = f"Of the excess error {share} is there in training; whether that is more than half is not shown"
    above, below = ([part.name for part in decided("undecided", told, y).parts if side(part.interval)]
                    for side in (_lies_above, _lies_below))
    if above and below:  # no rule of its own, but no number of seeds will do
        return with_legs(decided("undecided", f"{told}, for it differs: more than half in {'; '.join(above)}; less in "
                                              f"{'; '.join(below)}", y), leg)
    return with_legs(undecided(told, y, margin=MARGIN), leg)


def _lies_above(interval: Interval) -> bool:
    return interval.low is not None and interval.low > 0


def _lies_below(interval: Interval) -> bool:
    return interval.high is not None and interval.high < 0
