"""Accuracy where models are equally far in training: at the first curve point of a small clean-train loss."""

from statistics import median

from vitbench.report import notes
from vitbench.report.cells import Cell, cells
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table, plain, where_varied, word
from vitbench.report.wording import NONE, interval_text, percent
from vitbench.row import MATCHED_LOSS
from vitbench.stats.intervals import t_interval

COLUMNS = (
    Column("label", "model"), Column("family", "family"), Column("share", "share"), Column("regime", "regime"),
    Column("budget", "budget"), Column("setting", "setting"), Column("train_images", "train images", numeric=True),
    Column("reached", "reached it", numeric=True), Column("step", "step, median", numeric=True),
    Column("accuracy", "test accuracy there, % [95 %]", numeric=True), Column("accuracy_low", "", shown=False),
    Column("accuracy_high", "", shown=False), Column("at_the_end", "of the same runs at the end, %", numeric=True),
    *notes.RESTS_ON)


def matched_loss(frame: Frame) -> Table | None:
    """One row a cell of the grid, over the runs that reached the loss. None where no run did."""
    found = cells(frame)
    if not any(row.matched_loss_accuracy is not None for cell in found for row in cell.rows):
        return None
    identity = notes.identity(frame)
    values = {key: len({getattr(cell, key) for cell in found}) for key in ("regime", "budget", "setting")}
    return Table(f"Study {frame.study}: test accuracy at matched clean-train loss",
                 where_varied(COLUMNS, values),
                 tuple((*_row(cell), *notes.rests_on([cell], identity)) for cell in found), (),
                 (f"At the first curve point with a clean-train loss of {MATCHED_LOSS:g} nats or less, on the curve's "
                  "sample of test images: models that train at different speeds are compared where each has fitted its "
                  "training part equally well. Runs that never reach it are left out and counted; of cells in which "
                  "few do, the mean is of the luckier seeds.", *notes.cited(frame)))


def _row(cell: Cell) -> tuple[Entry, ...]:
    there = [row for row in cell.rows if row.matched_loss_accuracy is not None]
    accuracy = t_interval([row.matched_loss_accuracy for row in there]) if there else None  # type: ignore[misc]
    step = median(row.matched_loss_step for row in there) if there else None  # type: ignore[type-var]
    end = sum(row.counted_accuracy for row in there) / len(there) if there else None
    return (word(cell.label), word(cell.family), word(cell.share), word(cell.regime), word(cell.budget),
            word(cell.setting), Entry(cell.train_images, f"{cell.train_images:,}"),
            Entry(len(there), f"{len(there)} of {len(cell.rows)}"),
            Entry(step, NONE if step is None else f"{step:,.0f}"),
            Entry(accuracy.mean if accuracy else None, interval_text(accuracy)),
            plain(accuracy.low if accuracy else None), plain(accuracy.high if accuracy else None),
            Entry(end, percent(end)))
