"""Curves of one cell as rows for a figure: every seed, the mean over seeds, and the onsets."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum
from statistics import median

from vitbench.record import Column, Curves, RunRecord
from vitbench.report.cells import Cell
from vitbench.report.frame import Frame
from vitbench.report.wording import six_digits

CurveRow = tuple[int | None, int, str, float | None, float | None]  # seed, step, part, loss, accuracy
OnsetRow = tuple[int | None, int, float | None, float | None]  # seed, step, validation loss and accuracy


@dataclass(frozen=True)
class CellCurves:
    """Rows of one cell. Seed None is the mean over seeds, in `onsets` their median; losses in nats."""

    curves: list[CurveRow]
    onsets: list[OnsetRow]
    seeds: list[int]


def records_of(frame: Frame, cell: Cell) -> list[RunRecord]:
    """The cell's records, by seed: those of failed runs do not exist."""
    return [frame.records[row.run_id] for row in cell.rows if row.run_id in frame.records]


def cell_curves(frame: Frame, cell: Cell) -> CellCurves:
    """Every seed's curves and their mean, which is given only where each of the cell's records has a value."""
    records = records_of(frame, cell)
    curves = [row for record in records for row in _rows(record.spec.seed, record.curves)]
    means = [row for part in ("train", "val", "test") for row in _means(part, records)]
    return CellCurves([*curves, *means], _onsets(cell, records), [record.spec.seed for record in records])


def columns_of(curves: Curves, part: str) -> tuple[Column, Column] | None:
    """Loss and accuracy of 'train', 'val' or 'test'; None where there is no validation."""
    loss, accuracy = getattr(curves, f"{part}_loss"), getattr(curves, f"{part}_accuracy")
    return None if loss is None or accuracy is None else (loss, accuracy)


def _rows(seed: int, curves: Curves) -> Iterator[CurveRow]:
    for part in ("train", "val", "test"):
        columns = columns_of(curves, part)
        if columns:
            for step, loss, accuracy in zip(curves.step, *columns, strict=True):
                if step > 0:  # a log axis has no place for the untrained model
                    yield seed, step, part, six_digits(loss), six_digits(accuracy)


def _means(part: str, records: list[RunRecord]) -> Iterator[CurveRow]:
    at: dict[int, list[tuple[float | None, float | None]]] = {}
    for record in records:
        columns = columns_of(record.curves, part)
        for step, loss, accuracy in zip(record.curves.step, *(columns or ((), ())), strict=bool(columns)):
            at.setdefault(step, []).append((loss, accuracy))
    for step, pairs in sorted(at.items()):
        loss, accuracy = (_mean([pair[i] for pair in pairs], len(records)) for i in (0, 1))
        if step > 0 and (loss is not None or accuracy is not None):
            yield None, step, part, loss, accuracy


def _mean(values: list[float | None], wanted: int) -> float | None:
    # The mean of those that are left would jump where one diverges.
    found = [value for value in values if value is not None]
    return six_digits(fsum(found) / wanted) if len(found) == wanted else None


def _onsets(cell: Cell, records: list[RunRecord]) -> list[OnsetRow]:
    steps = {row.run_id: row.onset_step for row in cell.rows if row.onset_step is not None}
    rows: list[OnsetRow] = []
    for record in records:
        columns = columns_of(record.curves, "val")
        if record.run_id in steps and columns:
            step = steps[record.run_id]
            loss, accuracy = (column[record.curves.step.index(step)] for column in columns)
            rows.append((record.spec.seed, step, six_digits(loss), six_digits(accuracy)))
    if rows:
        rows.append((None, round(median(row[1] for row in rows)), None, None))
    return rows


