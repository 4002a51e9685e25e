"""On images with an empty border sinusoidal positions keep the accuracy that learned, interpolated ones lose."""

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import numpy as np

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.measurement import Value
from vitbench.row import Row
from vitbench.verdicts import (
    Blocked,
    Cell,
    Evidence,
    Expected,
    Looked,
    Planted,
    Rows,
    Verdict,
    by_run,
    contrast_of,
    described,
    number,
    rule_g,
    undecided,
    variants,
    with_legs,
)

MARGIN, PROBE = 0.01, "longer_sequences"
LEARNED, SINUSOIDAL = range(2)
ADDED, MOST_LOST = (1, 2, 3, 4), 0.05  # tokens a side; what sinusoidal positions may lose
STUDY = {"models": [{"name": "attention", "size": "s", "positions": positions, "label": positions}
                    for positions in ("learned", "sinusoidal")], "images_per_class": [80], "seeds": 10}


def losing(learned: float, sinusoidal: float) -> Callable[[Cell | None, np.random.Generator], list[dict[str, Value]]]:
    """What the probe finds where the two drop by so much on average."""

    def found(cell: Cell | None, rng: np.random.Generator) -> list[dict[str, Value]]:
        if cell is None:
            return []
        drop = rng.normal(learned if cell.options["positions"] == "learned" else sinusoidal, 0.012)
        return [{"added": added, "drop": drop * added / fmean(ADDED)} for added in (0, *ADDED)]

    return found


@CLAIMS.add("sinusoidal_positions_outgrow_their_training_size", ClaimMeta(
    sentence="Sinusoidal positions keep their accuracy on images larger than those of training; learned ones do not.",
    source="lecture notes on self-attention that this project starts from; Vaswani et al. 2017, section 3.5",
    null="A larger image costs sinusoidal positions as much accuracy as learned ones.",
    planted=Planted("a drop of 4 points with learned positions, of 2 with sinusoidal ones; 10 seeds",
                    lambda _: Expected(0.9), power=0.85, study=STUDY, probes={PROBE: losing(0.04, 0.02)},
                    null_probes={PROBE: losing(0.02, 0.02)}),
    margin=MARGIN))
def judge(evidence: Evidence) -> Verdict:
    """Images grow by an empty border, object unchanged; drop = accuracy at the trained size minus the mean over +1..+4
    tokens a side, mean over all sizes of data of the study.

    Holds if drop(learned, interpolated) - drop(sinusoidal) passes rule G and U(drop(sinusoidal)) < .05; fails if U of
    the difference < margin, as rule G has it, or L(drop(sinusoidal)) > .05. A lost run, which counts as chance on
    images of any size, drops by nothing.
    """
    sizes = evidence.shares
    strata = evidence.strata(variants(evidence, "positions", "learned", "sinusoidal"), sizes)
    looked = by_run(evidence, PROBE, which=lambda of: int(of.options.get("most", ADDED[-1])) >= ADDED[-1])

    def drop(rows: Rows, place: int) -> float:
        return fmean(_drop(rows[place, n], looked) for n in sizes)

    learned, sinusoidal, y = (contrast_of(evidence, strata, sizes, of) for of in (
        lambda rows: drop(rows, LEARNED), lambda rows: drop(rows, SINUSOIDAL),
        lambda rows: drop(rows, LEARNED) - drop(rows, SINUSOIDAL)))
    verdict = rule_g(y, margin=MARGIN)
    if verdict.t_p is not None:  # both have to be shown
        kept = sinusoidal.t_p(MOST_LOST) if sinusoidal.interval.mean < MOST_LOST else 1.0
        verdict = replace(verdict, t_p=max(verdict.t_p, kept))
    if sinusoidal.lies_above(MOST_LOST):
        verdict = replace(verdict, outcome="fails", sentence=(
            f"With sinusoidal positions themselves {sinusoidal.interval.mean:.3g} of accuracy is lost, more than "
            f"{MOST_LOST:g}"))
    elif verdict.outcome == "holds" and not sinusoidal.lies_below(MOST_LOST):
        why = undecided(f"More is lost with learned positions, but whether less than {MOST_LOST:g} is with sinusoidal "
                        "ones is not shown", sinusoidal, margin=MARGIN)
        verdict = replace(verdict, outcome="undecided", sentence=why.sentence)
    return with_legs(verdict, described("drop with learned positions", "interpolated", learned),
                     described("drop with sinusoidal positions", f"at most {MOST_LOST:g} is wanted", sinusoidal))


def _drop(run: Row, looked: Callable[[Row], Looked]) -> float:
    if run.outcome != "done":
        return 0.0
    drops = {row["added"]: number(row, "drop") for row in looked(run) if row["added"] in ADDED
             and row["drop"] is not None}
    if set(drops) != set(ADDED):
        raise Blocked(f"{run.label} takes no images that are larger by {ADDED[0]} to {ADDED[-1]} tokens a side")
    return fmean(drops.values())
