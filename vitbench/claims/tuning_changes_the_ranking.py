"""Who wins, attention or a CNN, turns around when both are tuned."""

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import Blocked, Cell, Evidence, Expected, Planted, Verdict, with_legs
from vitbench.verdicts.ranking import agreement, compared, comparisons, legs, ranking_changes

MARGIN = 0.01
STUDY = {"models": ["attention:s", "convolution:s"], "images_per_class": [5, 20], "seeds": 10,
         "tuning": {"trials": 2, "validation": "cv", "space": {"learning_rate": [0.001, 0.003, 0.01]}}}


def _planted(cell: Cell) -> Expected:
    ahead = cell.family == ("attention" if cell.setting == "tuned" else "convolution")
    return Expected(0.912 if ahead else 0.888)


@CLAIMS.add("tuning_changes_the_ranking", ClaimMeta(
    sentence="Tuning changes which of two models is the more accurate one.",
    source="what is argued about comparisons at default hyperparameters; Dodge et al. 2019, 'Show your work'",
    null="No pair of models changes places: what leads by default leads, or is level, when both are tuned.",
    planted=Planted("2.4 points behind by default and 2.4 ahead when tuned, at two sizes; 10 seeds", _planted,
                    power=0.93, study=STUDY),
    margin=MARGIN, unit="what tuning adds to a difference of test accuracies, in the stratum's comparison"))
def judge(evidence: Evidence) -> Verdict:
    """Over the declared pairs, else the matched ones, at each size in each regime and budget (m of them): a flip is a
    default and a tuned difference that exclude 0 on opposite sides at level 1 - alpha/m, both |mean| >= margin.

    Holds if any flips; fails if for every one both intervals at level 1 - alpha lie above -margin, or both below
    +margin; else undecided. Several searches are several tuned settings: each is compared with the default one, and
    counts in m. Kendall's tau-b of all models stands beside it.
    """
    found = comparisons(evidence, "setting")
    if not found:
        raise Blocked("The study has no pair of models both by default and tuned; `tuning` in its file adds a tuned "
                      "setting to its cells")
    each = compared(evidence, found)
    return with_legs(ranking_changes(each, margin=MARGIN), *legs(each, margin=MARGIN), agreement(evidence, found))
