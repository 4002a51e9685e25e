"""Where the spread between runs comes from: the parts of the variance in a crossed design (protocol rule 26)."""

import numpy as np

from vitbench.grid import Run
from vitbench.report import notes
from vitbench.report.cells import Cell, control_cells
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table, plain, where_varied, word
from vitbench.report.wording import MINUS, NONE, percent
from vitbench.stats.variance import VarianceParts, variance_parts
from vitbench.streams import Streams

LEAST = (5, 5, 2)  # subsets, initialisations, orders (protocol rule 26)
PARTS = ("subset", "initialisation", "interaction", "order")
COLUMNS = (
    Column("control", "control"), Column("label", "model"), Column("share", "share"), Column("regime", "regime"),
    Column("budget", "budget"), Column("design", "subsets x initialisations x orders"),
    Column("runs", "runs", numeric=True), Column("test_accuracy", "test accuracy, %", numeric=True),
    *(Column(part, f"{part}, points² (share)", numeric=True) for part in PARTS),
    *(Column(f"{part}_deviation", "", shown=False) for part in PARTS),
    Column("total_deviation", "deviation of a run, points", numeric=True), Column("notes", "notes"), *notes.RESTS_ON)
NOTHING = (Entry(None, NONE),) * len(PARTS) + (plain(None),) * len(PARTS) + (Entry(None, NONE),)


def variance(frame: Frame) -> Table | None:
    """One row a cell of a crossed design. None where the study has none."""
    found = [cell for cell in control_cells(frame) if cell.crossed]
    if not found:
        return None
    identity = notes.identity(frame)
    values = {key: len({getattr(cell, key) for cell in found}) for key in ("control", "regime", "budget")}
    return Table(f"Study {frame.study}: parts of the variance of test accuracy", where_varied(COLUMNS, values),
                 tuple((*_row(cell), *notes.rests_on([cell], identity)) for cell in found), (), (
                     "Balanced crossed random-effects analysis of variance by the method of moments. A part below 0 is "
                     "an estimate like any other and is shown as it is; shares are of the sum of all four. Order holds "
                     "augmentation and all else that is left. Test images are the same for all runs.",
                     "The parts are rough: where all four are equal, a design of 5 x 5 x 2 gives those of subset and "
                     "initialisation with a deviation of nine tenths of their size (simulated).", *notes.cited(frame)))


def _row(cell: Cell) -> tuple[Entry, ...]:
    levels = [sorted({place[i] for place in map(_place, cell.runs)}) for i in range(3)]
    design = tuple(map(len, levels))
    scores = {_place(run): row.counted_accuracy for run in cell.runs for row in cell.rows
              if row.run_id == run.spec.run_id}
    missing = [place for place in map(_place, cell.runs) if place not in scores]
    lacks = _lacks(design, missing)
    numbers = NOTHING if lacks else _parts(variance_parts(np.array([
        [[scores[u, v, w] for w in levels[2]] for v in levels[1]] for u in levels[0]])))
    small = None if all(n >= least for n, least in zip(design, LEAST, strict=True)) else (
        f"below the {' x '.join(map(str, LEAST))} of protocol rule 26")
    mean = cell.mean("counted_accuracy")
    return (word(cell.control), word(cell.label), word(cell.share), word(cell.regime), word(cell.budget),
            word(" x ".join(map(str, design))), Entry(len(cell.rows), f"{len(cell.rows)} of {len(cell.runs)}"),
            Entry(mean, percent(mean)), *numbers, notes.marks(cell, None, lacks, small))


def _place(run: Run) -> tuple[int, int, int]:
    """Its subset, initialisation and order."""
    streams = Streams.of(run.spec)
    return streams.subset, streams.init, streams.order


def _lacks(design: tuple[int, ...], missing: list[tuple[int, int, int]]) -> str | None:
    """Why the design has no parts: it is not balanced, or one of a kind shows no spread."""
    if missing:
        told = "; ".join("subset {}, initialisation {}, order {}".format(*place) for place in missing[:3])
        more = f"; and {len(missing) - 3} more" if len(missing) > 3 else ""
        return f"no parts: the design is not balanced without {told}{more}"
    if min(design) < 2:
        return "no parts: it takes two subsets, initialisations and orders at least"
    return None


def _parts(found: VarianceParts) -> tuple[Entry, ...]:
    parts = [getattr(found, part) for part in PARTS]
    total = sum(parts)
    shown = [Entry(value, f"{1e4 * value:.3g}".replace("-", MINUS) + (
        f" ({100 * value / total:.0f} %)".replace("-", MINUS) if total > 0 else "")) for value in parts]
    deviation = max(total, 0.0) ** 0.5
    return (*shown, *(plain(max(value, 0.0) ** 0.5) for value in parts), Entry(deviation, percent(deviation)))
