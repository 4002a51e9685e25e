"""The tables of a study by name, in the order in which they are shown."""

from collections.abc import Callable
from functools import partial

from vitbench.report import anchors
from vitbench.report.controls import controls
from vitbench.report.frame import Frame
from vitbench.report.matched_loss import matched_loss
from vitbench.report.ranking import ranking
from vitbench.report.render import Table
from vitbench.report.tuning import trials, tuning
from vitbench.report.variance import variance

BESIDE: dict[str, Callable[[Frame], Table | None]] = {
    "budgets": partial(ranking, axis="budget"), "regimes": partial(ranking, axis="regime"),
    "settings": partial(ranking, axis="setting"), "tuning": tuning, "controls": controls,
    "variance": variance, "matched_loss": matched_loss,
    "anchors": anchors.table, "trials": trials}
"""Beside the summary. Each gives None where the study has nothing for it."""


BY_NAME = {"trials", "matched_loss"}  # shown only when asked for


def beside(frame: Frame) -> list[Table]:
    """What a study has beside its summary."""
    return [table for name, of in BESIDE.items() if name not in BY_NAME and (table := of(frame)) is not None]
