"""On little data the family decides the error, not the size: main effects of the 2 x 2 of family and size."""

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import (
    Blocked,
    Cell,
    Contrast,
    Evidence,
    Expected,
    Leg,
    Planted,
    Stratum,
    Verdict,
    accuracy_contrast,
    contrast_of,
    described,
    fitting,
    gap,
    little_sizes,
    matched_architectures,
    rule_g,
    with_legs,
)
from vitbench.verdicts.controls import HEADLINE

MARGIN = 0.01
CELLS = range(4)  # att s, att l, cnn s, cnn l: what the signs below are of
FAMILY, SIZE, INTERACTION = (1, 1, -1, -1), (-1, 1, -1, 1), (-1, 1, 1, -1)
AT_S, AT_L = (2, 0, -2, 0), (0, 2, 0, -2)  # the family effect at one size
STUDY = {"models": ["attention:s", "attention:l", "convolution:s", "convolution:l"], "images_per_class": [5, 20],
         "seeds": 10}


def _planted(cell: Cell) -> Expected:
    return Expected(0.88 if cell.family == "attention" else 0.9)


@CLAIMS.add("family_not_size", ClaimMeta(
    sentence="On little data the family decides how large the error is, not the size of the model.",
    source="what is argued about small data: 'use a smaller model' against 'use a CNN'",
    null="Attention has no larger error than convolution, or size makes as much of a difference as the family.",
    planted=Planted("attention 2 points behind at both sizes; 10 seeds", _planted, power=0.85, study=STUDY),
    margin=MARGIN, unit="test error, as a share of images", controls=HEADLINE))
def judge(evidence: Evidence) -> Verdict:
    """Family F, size S and interaction I of the 2 x 2 {att, cnn} x {s, l} on e, per seed, little sizes.

    Depends if I excludes 0 with |I| >= margin and the family effects at s and l exclude 0 on opposite sides; holds if
    F passes rule G and both F - S and F + S have L > 0; fails if U(F) < margin or both S - F and S + F have L > 0. On
    the gap F stands beside it, in the strata where no cell underfits.
    """
    little = little_sizes(evidence)
    groups = [(a["s"], a["l"], c["s"], c["l"]) for a, c in matched_architectures(evidence, "s", "l")]
    strata = evidence.strata(groups, little)

    def effect(*signs: int) -> Contrast:
        """Half the signed sum of the cells' errors, mean over the sizes."""
        return accuracy_contrast(evidence, strata, {
            (place, n): -signs[place] / 2 / len(little) for place in CELLS for n in little})

    return with_legs(
        _decided(effect),
        described("family, effect on the error", "attention minus convolution", effect(*FAMILY)),
        described("size, effect on the error", "l minus s", effect(*SIZE)),
        described("interaction on the error", "half the difference of the size effects", effect(*INTERACTION)),
        *_on_the_gap(evidence, strata, little))


def _decided(effect: Callable[..., Contrast]) -> Verdict:
    family, interaction = effect(*FAMILY), effect(*INTERACTION)
    verdict = rule_g(family, margin=MARGIN)
    if family.few_seeds:
        return verdict
    excluded = interaction.lies_above(0) or interaction.lies_below(0)
    at_s, at_l = effect(*AT_S), effect(*AT_L)
    if excluded and abs(interaction.interval.mean) >= MARGIN and (
            (at_s.lies_above(0) and at_l.lies_below(0)) or (at_s.lies_below(0) and at_l.lies_above(0))):
        ahead = ("s", "l") if at_s.lies_below(0) else ("l", "s")
        return replace(verdict, outcome="depends", sentence=f"Attention has the smaller error at {ahead[0]} and the "
                                                            f"larger one at {ahead[1]}")
    more, less = (effect(*(f + sign * s for f, s in zip(FAMILY, SIZE, strict=True))) for sign in (-1, 1))
    if more.lies_below(0) and less.lies_above(0):
        return replace(verdict, outcome="fails", sentence="Size makes more of a difference than the family does")
    if verdict.outcome != "holds" or (more.lies_above(0) and less.lies_above(0)):
        return verdict
    return replace(verdict, outcome="undecided", sentence=(
        "Attention has the larger error, but whether the family or the size makes more of a difference is not shown: "
        f"F - S begins at {more.interval.low:.3g} and F + S at {less.interval.low:.3g}, not above 0"))


def _on_the_gap(evidence: Evidence, strata: tuple[Stratum, ...], little: tuple[str, ...]) -> tuple[Leg, ...]:
    """The family effect on the gap, described; nothing where a cell underfits in every stratum."""
    try:
        for place in CELLS:
            strata = fitting(evidence, strata, place, little).strata
    except Blocked:
        return ()
    y = contrast_of(evidence, strata, little, lambda rows: fmean(
        sum(FAMILY[place] * gap(rows[place, n]) for place in CELLS) / 2 for n in little))
    return (described("family, effect on the gap", "attention minus convolution, where no cell underfits", y),)
