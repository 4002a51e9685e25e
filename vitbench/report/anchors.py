"""Anchors: what a study's baselines reach on full data, held against reference bands (protocol rule 19)."""

from dataclasses import dataclass
from typing import Literal

from vitbench.config.bands import Band
from vitbench.report import notes
from vitbench.report.cells import Cell, anchor_cells
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table, plain, word
from vitbench.report.wording import percent

State = Literal["within", "below", "above", "missing"]


@dataclass(frozen=True)
class Anchor:
    """One anchor: its cell and its band. `missing` until every run has ended."""

    cell: Cell
    band: Band

    @property
    def mean(self) -> float | None:
        """Test accuracy over the seeds; a run that diverged or failed counts as chance."""
        return self.cell.accuracy.mean if self.cell.accuracy else None

    @property
    def state(self) -> State:
        """Below the band a baseline is too weak to be compared with; above it, the band is too low."""
        if self.mean is None or len(self.cell.rows) < len(self.cell.runs):
            return "missing"
        return "below" if self.mean < self.band.low else "above" if self.mean > self.band.high else "within"


def anchors(frame: Frame) -> list[Anchor]:
    """Every anchor of the study, in its order."""
    return [Anchor(cell, frame.resolved.bands[cell.label]) for cell in anchor_cells(frame)]


COLUMNS = (Column("label", "model"), Column("family", "family"), Column("band", "band, %"),
           Column("test_accuracy", "test accuracy, %", numeric=True), Column("runs", "runs", numeric=True),
           Column("state", "state"), Column("steps", "steps", numeric=True), Column("source", "source of the band"),
           Column("low", "", shown=False), Column("high", "", shown=False), *notes.RESTS_ON)


def table(frame: Frame) -> Table | None:
    """One row an anchor. None without anchors."""
    found, identity = anchors(frame), notes.identity(frame)
    if not found:
        return None
    return Table(f"Study {frame.study}: anchors on all training images of {frame.resolved.dataset_text}", COLUMNS,
                 tuple((*_row(one), *notes.rests_on([one.cell], identity)) for one in found), (), (
                     "An anchor has the band's own recipe, regime and budget, and trains on the validation part, too.",
                     "Below its band a baseline is too weak to be compared with; above it the band is too low.",
                     *notes.cited(frame)))


def _row(one: Anchor) -> tuple[Entry, ...]:
    band, cell = one.band, one.cell
    return (word(cell.label), word(cell.family), word(f"{percent(band.low)} to {percent(band.high)}"),
            Entry(one.mean, percent(one.mean)), Entry(len(cell.rows), f"{len(cell.rows)} of {len(cell.runs)}"),
            word(one.state), Entry(band.steps, f"{band.steps:,}"), word(band.source), plain(band.low),
            plain(band.high))
