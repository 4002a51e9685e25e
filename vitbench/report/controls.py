"""The controls of a study beside the cells that they change."""

from collections.abc import Mapping

from vitbench.report import notes
from vitbench.report.cells import Cell, CellKey, cells, control_cells, paired
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table, plain, where_varied, word
from vitbench.report.wording import interval_text, percent, signed_interval
from vitbench.stats.intervals import t_interval

COLUMNS = (
    Column("control", "control"), Column("label", "model"), Column("share", "share"), Column("regime", "regime"),
    Column("budget", "budget"), Column("runs", "runs", numeric=True),
    Column("test_accuracy", "test accuracy, % [95 %]", numeric=True),
    Column("grid_accuracy", "in the grid, %", numeric=True),
    Column("difference", "difference, points [95 %]", numeric=True), Column("difference_low", "", shown=False),
    Column("difference_high", "", shown=False), Column("fit_state", "fit state"), Column("notes", "notes"),
    *notes.RESTS_ON)


def controls(frame: Frame) -> Table | None:
    """One row a control's cell: its accuracy and the paired difference to the grid's own. None without controls."""
    found, grid = control_cells(frame), {cell.key: cell for cell in cells(frame)}
    if not found:
        return None
    identity = notes.identity(frame)
    values = {key: len({getattr(cell, key) for cell in found}) for key in ("regime", "budget")}
    return Table(f"Study {frame.study}: controls, test accuracy on {found[0].runs[0].spec.dataset_text}",
                 where_varied(COLUMNS, values),
                 tuple((*_row(cell, _origin(cell, grid)), *notes.rests_on([cell], identity)) for cell in found), (),
                 _footer(frame))


def _origin(cell: Cell, grid: Mapping[CellKey, Cell]) -> Cell | None:
    """The cell of the grid that the control repeats; None where the frame holds a part of the study without it."""
    origin = cell.runs[0].origin
    return None if origin is None else grid.get((*origin, cell.setting))


def _row(cell: Cell, origin: Cell | None) -> tuple[Entry, ...]:
    differences = paired(cell, origin) if origin is not None and not cell.crossed else []
    difference = t_interval(differences) if differences else None
    accuracy = cell.accuracy
    shown = percent(accuracy.mean) if cell.crossed and accuracy else interval_text(accuracy)
    before = origin.accuracy.mean if origin is not None and origin.accuracy else None
    return (word(cell.control), word(cell.label), word(cell.share), word(cell.regime), word(cell.budget),
            Entry(len(cell.rows), f"{len(cell.rows)} of {len(cell.runs)}"),
            Entry(accuracy.mean if accuracy else None, shown), Entry(before, percent(before)),
            Entry(difference.mean if difference else None, signed_interval(difference)),
            plain(difference.low if difference else None), plain(difference.high if difference else None),
            word(cell.fit_state),
            notes.marks(cell, None, "crossed design: no interval over its runs" if cell.crossed else None))


def _footer(frame: Frame) -> tuple[str, ...]:
    return ("Each control repeats cells of the grid with one thing changed; the difference is paired by seed, control "
            "minus grid, with its 95 % t interval over seeds.",
            "Clean-train error under label noise is measured against the labels that were trained on.",
            *notes.cited(frame))
