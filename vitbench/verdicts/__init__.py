"""Verdicts: from a study's runs to contrasts between models, and by a rule fixed in advance to an outcome.

What claims are made of stands here, as what models are made of stands in nn: the files of claims/ are the claims.
"""

from vitbench.verdicts.contrast import Contrast
from vitbench.verdicts.evidence import CellOf, Evidence, Stratum
from vitbench.verdicts.groups import Sizes, architectures, matched_architectures, matched_pairs, named, variants
from vitbench.verdicts.looked import Looked, by_run, number, of_mechanism
from vitbench.verdicts.overfitting import fitting, gap, little_sizes, time_harm, train_error
from vitbench.verdicts.pairing import (
    Rows,
    Side,
    accuracy_contrast,
    accuracy_difference,
    contrast_between,
    contrast_of,
)
from vitbench.verdicts.rules import beside, decided, described, rule_d, rule_e, rule_g, undecided
from vitbench.verdicts.simulated import Cell, Expected, Planted
from vitbench.verdicts.verdict import Blocked, Leg, Unmeasured, Verdict, with_legs

__all__ = ["Blocked", "Cell", "CellOf", "Contrast", "Evidence", "Expected", "Leg", "Looked", "Planted", "Rows", "Side",
           "Sizes", "Stratum", "Unmeasured", "Verdict", "accuracy_contrast", "accuracy_difference", "architectures",
           "beside", "by_run", "contrast_between", "contrast_of", "decided", "described", "fitting", "gap",
           "little_sizes", "matched_architectures", "matched_pairs", "named", "number", "of_mechanism", "rule_d",
           "rule_e", "rule_g", "time_harm", "train_error", "undecided", "variants", "with_legs"]
