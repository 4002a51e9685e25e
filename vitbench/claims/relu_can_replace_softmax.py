"""Attention that normalises with ReLU loses nothing against softmax, once each has its own learning rate."""

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import Blocked, Cell, Evidence, Expected, Planted, Verdict, accuracy_contrast, rule_e, variants
from vitbench.verdicts.evidence import DEFAULT

MARGIN = 0.01
RATES = 3
STUDY = {"models": [{"name": "attention", "size": "s", "label": n, "normaliser": n} for n in ("softmax", "relu")],
         "images_per_class": [20, 80], "seeds": 10,
         "tuning": {"trials": 2, "validation": "cv", "space": {"learning_rate": [0.001, 0.003, 0.01]}}}
TUNE = "tuning: {validation: where_needed, space: {learning_rate: [0.0003, 0.003, 0.03]}}"


def _planted(_cell: Cell) -> Expected:
    return Expected(0.96)


def _at_the_margin(cell: Cell) -> Expected:
    return Expected(0.96 - MARGIN * (cell.options["normaliser"] == "relu"))


@CLAIMS.add("relu_can_replace_softmax", ClaimMeta(
    sentence="ReLU, scaled by the number of tokens, can replace softmax in attention.",
    source="Wortsman et al. 2023, 'Replacing softmax with ReLU in Vision Transformers'",
    null="Attention with ReLU is a point or more less accurate than with softmax.",
    planted=Planted("both at 96 %; 10 seeds", _planted, power=0.9, study=STUDY, null=_at_the_margin,
                    equivalence=True),
    margin=MARGIN))
def judge(evidence: Evidence) -> Verdict:
    """y = accuracy with softmax minus accuracy with relu, each at its own learning rate out of the same three, chosen
    on validation; models alike in all else, all sizes; rule E.

    Only the tuned settings count, and only of a study that searched three learning rates and nothing else. As for
    every tuned claim, a best rate that is the first or last of the three blocks it.
    """
    groups = variants(evidence, "normaliser", "softmax", "relu")
    rates = evidence.space.get("learning_rate")
    if set(evidence.space) != {"learning_rate"} or not isinstance(rates, list) or len(set(rates)) != RATES:
        raise Blocked(f"Each of the two needs its own learning rate out of the same {RATES}, which this study does not "
                      f"search: write `{TUNE}` in its file")
    strata = tuple(s for s in evidence.strata(groups, evidence.shares) if s.condition.setting != DEFAULT)
    if not strata:
        raise Blocked("The study tunes no pair of them at all its sizes")
    weights = {(place, n): sign / len(evidence.shares) for place, sign in enumerate((1, -1)) for n in evidence.shares}
    return rule_e(accuracy_contrast(evidence, strata, weights), margin=MARGIN)
