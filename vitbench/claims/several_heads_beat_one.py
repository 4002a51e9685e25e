"""Attention with several heads is more accurate than with one, at equal parameters."""

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import Blocked, Cell, Evidence, Expected, Planted, Verdict, accuracy_contrast, rule_g, variants

MARGIN = 0.01
HEADS = (1, 2, 4, 8)
MATCH = 0.01  # largest difference of what counts as equal parameters
STUDY = {"models": [{"name": "attention", "size": "s", "label": f"heads {h}", "num_heads": h} for h in HEADS],
         "images_per_class": [5, 20, 80], "seeds": 10}


def _planted(cell: Cell) -> Expected:
    return Expected(0.88 if cell.options["num_heads"] == 1 else 0.895)


@CLAIMS.add("several_heads_beat_one", ClaimMeta(
    sentence="Several heads are more accurate than one, at equal parameters.",
    source="lecture notes on self-attention that this project starts from; Vaswani et al. 2017, table 3, rows A",
    null="The mean over 2, 4 and 8 heads is no more accurate than one head.",
    planted=Planted("one head 1.5 points behind at every size; 10 seeds", _planted, power=0.9, study=STUDY),
    margin=MARGIN))
def judge(evidence: Evidence) -> Verdict:
    """y = mean accuracy over 2, 4 and 8 heads minus that with 1, models alike in all else, all sizes; rule G.

    Never the best number of heads: the largest of three lies above their mean by chance alone. Blocked where parameters
    differ by more than 1 %, as trained offsets, which each head has of its own, make them.
    """
    groups = variants(evidence, "num_heads", *HEADS)
    for labels in groups:
        _refuse(evidence, labels)
    sizes = evidence.shares
    weights = {(place, n): (-1 if place == 0 else 1 / (len(HEADS) - 1)) / len(sizes)
               for place in range(len(HEADS)) for n in sizes}
    return rule_g(accuracy_contrast(evidence, evidence.strata(groups, sizes), weights), margin=MARGIN)


def _refuse(evidence: Evidence, labels: tuple[str, ...]) -> None:
    """Raise Blocked where the models have not the same number of parameters, or no run tells it."""
    counts = {label: params for label in labels if (params := evidence.models[label].params) is not None}
    if len(counts) < len(labels):
        raise Blocked(f"No run of {', '.join(label for label in labels if label not in counts)} tells its parameters, "
                      "so nobody knows whether they are equal")
    if max(counts.values()) > min(counts.values()) * (1 + MATCH):
        raise Blocked("Their parameters differ by more than "
                      f"{MATCH:.0%}: {', '.join(f'{label} {count:,}' for label, count in counts.items())}")
