"""What claims on overfitting read from a run, and strata in which a model does not even fit."""

from collections.abc import Sequence
from typing import NamedTuple

from vitbench.row import Row
from vitbench.verdicts.evidence import CellOf, Evidence, Stratum
from vitbench.verdicts.verdict import Blocked


def little_sizes(evidence: Evidence) -> tuple[str, ...]:
    """The study's sizes of 5 to 50 drawn images a class. Raises Blocked where it has none."""
    if not evidence.little:
        raise Blocked(f"The study has no size of 5 to 50 drawn images of every class; it has "
                      f"{', '.join(map(evidence.described, evidence.shares)) or 'none at all'}")
    return evidence.little


def train_error(row: Row) -> float:
    """On the clean training part at the end, as a share; that of chance where the run was lost."""
    return 1 - row.counted_clean_train_accuracy


def gap(row: Row) -> float:
    """Test error minus clean-train error; 0 where the run was lost, for both are chance then."""
    return row.counted_clean_train_accuracy - row.counted_accuracy


def time_harm(row: Row) -> float:
    """Test error at the end minus test error at the onset. Raises Blocked for a run that has none."""
    if row.time_harm is None:
        why = "held out no validation images" if row.outcome == "done" else f"is {row.outcome}"
        raise Blocked(f"Time harm is missing: {row.label} at {row.share}, seed {row.seed}, {why}")
    return row.time_harm


class Fitting(NamedTuple):
    """Strata that are left, and a sentence about those that are blocked; empty where none is."""

    strata: tuple[Stratum, ...]
    told: str


def fitting(evidence: Evidence, strata: Sequence[Stratum], place: int, shares: Sequence[str]) -> Fitting:
    """The strata but those in which the model at `place` is underfit in over half of its runs at `shares`.

    Raises Blocked where none is left: what is not even fitted cannot be overfitted.
    """
    states = {stratum: [row.fit_state for share in shares for row in evidence.by_cell.get(
        CellOf(stratum.models[place], share, stratum.condition), {}).values()] for stratum in strata}
    underfit = {stratum: (of.count("underfit"), len(of)) for stratum, of in states.items()
                if 2 * of.count("underfit") > len(of)}
    told = "; ".join(f"{stratum.name} underfits: {stratum.models[place]} in {count} of {runs} runs"
                     for stratum, (count, runs) in underfit.items())
    left = tuple(stratum for stratum in strata if stratum not in underfit)
    if not left:
        raise Blocked(told[:1].upper() + told[1:])
    return Fitting(left, f"Blocked, and left out: {told}. " if told else "")
