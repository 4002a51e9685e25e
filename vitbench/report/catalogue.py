"""The tables of a study by name, in the order in which they are shown."""

from collections.abc import Callable
from functools import partial

from vitbench.report import anchors
from vitbench.report.controls import controls
from vitbench.report.crossovers import crossovers
from vitbench.report.efficiency import efficiency
from vitbench.report.frame import Frame
from vitbench.report.learning_curves import learning_curves
from vitbench.report.matched_loss import matched_loss
from vitbench.report.ranking import ranking
from vitbench.report.render import Table
from vitbench.report.tuning import trials, tuning
from vitbench.report.variance import variance

BESIDE: dict[str, Callable[[Frame], Table | None]] = {
    "budgets": partial(ranking, axis="budget"), "regimes": partial(ranking, axis="regime"),
    "settings": partial(ranking, axis="setting"), "tuning": tuning, "controls": controls,
    "crossovers": crossovers, "variance": variance, "anchors": anchors.table, "efficiency": efficiency,
    "curves": learning_curves, "matched_loss": matched_loss, "trials": trials}
"""Beside the summary. Each gives None where the study has nothing for it."""

WITHOUT = {
    "budgets": "it has one budget", "regimes": "it has one regime", "settings": "it has no tuning",
    "tuning": "it has no tuning", "trials": "it has no tuning", "controls": "it has no controls",
    "variance": "it has no control with a crossed design", "anchors": "it has no anchors",
    "crossovers": "it lacks attention or a CNN", "efficiency": "it lacks attention or a CNN",
    "curves": "it has no model", "matched_loss": "no run has come to a clean-train loss that small"}
"""Why a study has no table of the name."""

WHERE_ASKED = ("efficiency", "curves", "matched_loss", "trials")
"""Long, or, as the fits, a matter of seconds."""


def beside(frame: Frame) -> list[Table]:
    """What a study has beside its summary, but for what is shown only where asked."""
    found = [of(frame) for name, of in BESIDE.items() if name not in WHERE_ASKED]
    return [table for table in found if table is not None and table.rows]
