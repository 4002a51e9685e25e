"""Heads come to look at different distances in training: a receptive field that nobody set."""

from collections.abc import Callable
from functools import partial

import numpy as np

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.measurement import Value
from vitbench.row import Row
from vitbench.stats.slopes import slopes_per_doubling
from vitbench.verdicts import (
    Blocked,
    Cell,
    Contrast,
    Evidence,
    Expected,
    Looked,
    Planted,
    Verdict,
    beside,
    by_run,
    contrast_of,
    number,
    rule_g,
    with_legs,
)

MARGIN, PROBE = 0.02, "attention_distance"
HEADS, TRAINED = "all heads", "trained"
STUDY = {"models": ["attention:s"], "images_per_class": [20, 80], "seeds": 10}


def _changing(by: float, _: Cell | None, rng: np.random.Generator) -> list[dict[str, Value]]:
    """What the probe finds where the deviation over heads changes by so much on average."""
    return [{"kind": HEADS, "when": TRAINED, "deviation_change": by + rng.normal(0, 0.03)}]


@CLAIMS.add("receptive_field_is_learned", ClaimMeta(
    sentence="Heads learn how far to look: in training their attention distances come to differ.",
    source="lecture notes on self-attention that this project starts from; Dosovitskiy et al. 2021, section 4.5 and "
           "figure 7; Cordonnier et al. 2020, section 4",
    null="The attention distances of heads differ after training as they did before.",
    planted=Planted("a deviation over heads that grows by .04 image sides; 10 seeds", lambda _: Expected(0.9),
                    power=0.9, study=STUDY, probes={PROBE: partial(_changing, 0.04)},
                    null_probes={PROBE: partial(_changing, 0.0)}),
    margin=MARGIN, unit="deviation over heads of mean attention distance, in image sides"))
def judge(evidence: Evidence) -> Verdict:
    """y = deviation over heads of mean attention distance (in image sides), end minus initialisation, full size; rule
    G. The slope of y on log2 n, one per seed, over all sizes, gives the direction.

    Strata are the study's models of attention that see the whole image: a window or an order is a field that was set.
    Those that the probe looked for and could not look into are left out. A lost run has learned nothing: y is 0.
    """
    models = [(label,) for label in _seeing_all(evidence)]
    looked, full, sizes = by_run(evidence, PROBE), evidence.full, evidence.shares
    y = contrast_of(evidence, evidence.strata(models, [full]), [full], lambda rows: _change(rows[0, full], looked))

    def slope() -> Contrast:
        if len(sizes) < 2:
            raise Blocked(f"It takes two sizes of data; the study has {full} alone")
        return contrast_of(evidence, evidence.strata(models, sizes), sizes, lambda rows: float(slopes_per_doubling(
            [[_change(rows[0, n], looked) for n in sizes]], [rows[0, n].train_images for n in sizes])[0]))

    return with_legs(rule_g(y, margin=MARGIN), beside("slope of the same on log2 n", "for each doubling of n", slope))


def _seeing_all(evidence: Evidence) -> list[str]:
    """Labels of attention whose span is not limited. Raises Blocked where there is none that can be looked into."""
    whole = [label for label, facts in sorted(evidence.models.items())
             if facts.family == "attention" and facts.full_options.get("span", "global") == "global"]
    label_of = {row.run_id: row.label for row in evidence.rows}
    measured = evidence.measured(PROBE)
    seen = {row.get("label") for one in measured for row in one.rows}
    unseen = {label_of.get(run_id) for one in measured for run_id in one.run_ids} - seen
    left = [label for label in whole if label not in unseen]
    if not left:
        raise Blocked("The study has no model of attention that sees the whole image and can be looked into")
    return left


def _change(run: Row, looked: Callable[[Row], Looked]) -> float:
    if run.outcome != "done":
        return 0.0
    return next(number(row, "deviation_change") for row in looked(run)
                if (row["kind"], row["when"]) == (HEADS, TRAINED))
