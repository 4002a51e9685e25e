"""Verdicts: from a study's runs to contrasts between models, and by a rule fixed in advance to an outcome.

What claims are made of stands here, as what models are made of stands in nn: the files of claims/ are the claims.
"""

from vitbench.verdicts.contrast import Contrast
from vitbench.verdicts.evidence import Evidence, Stratum
from vitbench.verdicts.pairing import accuracy_contrast, accuracy_difference, contrast_of, matched_pairs
from vitbench.verdicts.rules import decided, rule_d, rule_e, rule_g
from vitbench.verdicts.simulated import Cell, Expected, Planted
from vitbench.verdicts.verdict import Blocked, Unmeasured, Verdict

__all__ = ["Blocked", "Cell", "Contrast", "Evidence", "Expected", "Planted", "Stratum", "Unmeasured", "Verdict",
           "accuracy_contrast", "accuracy_difference", "contrast_of", "decided", "matched_pairs", "rule_d", "rule_e",
           "rule_g"]
