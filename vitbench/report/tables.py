"""The summary table of a study: one row a cell, in grid order, missing cells included."""

from collections.abc import Callable

from vitbench.report import notes
from vitbench.report.cells import Cell, cells
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table, plain, word
from vitbench.report.saturation import budget_limited
from vitbench.report.tuning import marks as tuning_marks
from vitbench.report.wording import NONE, interval_text, percent, short_count


class MixedDevices(ValueError):
    """Runs of several devices in one table, which compares neither their times nor, to the last digit, their losses."""


def refuse_mixed(frame: Frame) -> None:
    """Raise MixedDevices, naming them, where the runs were computed on several devices."""
    devices = notes.devices_of(frame)
    if len(devices) > 1:
        raise MixedDevices(f"study {frame.study!r} has runs of {len(devices)} devices: {', '.join(devices)}; "
                           "one table never mixes devices unless asked")


def summary(frame: Frame, *, mixed_devices: bool = False) -> Table:
    """One row a cell of the study's grid.

    Same records, same table, whatever their order. Runs that diverged or failed count as chance accuracy, with the
    mean without them in a footnote. Raises MixedDevices unless `mixed_devices` allows it.
    """
    if not mixed_devices:
        refuse_mixed(frame)
    found, limited, tuned = cells(frame), budget_limited(frame), tuning_marks(frame)
    badly = [notes.ended_badly(cell) for cell in found]
    numbers = notes.numbered(badly)
    identity = notes.identity(frame)
    columns, fills = zip(*_columns(found), strict=True)
    rows = tuple((*(fill(cell) for fill in fills),
                  notes.marks(cell, number, tuned.get(cell.key), limited.get(cell.key)), plain(notes.INTERVAL),
                  *notes.rests_on([cell], identity))
                 for cell, number in zip(found, numbers, strict=True))
    return Table(notes.caption(frame, found), (*columns, *_LAST), rows,
                 (*(note for note in badly if note), *notes.excluded(frame)), notes.footer(frame, found))


Fill = Callable[[Cell], Entry]


def _columns(found: tuple[Cell, ...]) -> list[tuple[Column, Fill]]:
    """What names a cell, then its numbers. What is the same in every cell stands in the caption instead."""
    named: list[tuple[Column, Fill]] = [(Column("label", "model"), lambda c: word(c.label)),
                                        (Column("family", "family"), lambda c: word(c.family)),
                                        (Column("share", "share"), lambda c: word(c.share))]
    for key in ("regime", "budget", "setting"):
        varies = len({getattr(cell, key) for cell in found}) > 1
        named.append((Column(key, key, shown=varies), lambda c, key=key: word(getattr(c, key))))  # type: ignore[misc]
    return [*named, *_NUMBERS]


def _count(value: int) -> Entry:
    return Entry(value, f"{value:,}")


def _gap(cell: Cell) -> Entry:
    value = cell.mean("gap")
    return Entry(value, percent(value, sign=True) + (notes.GAP_IS_ERROR if cell.gap_is_test_error else ""))


def _seconds(cell: Cell) -> Entry:
    value = cell.mean("seconds")
    return Entry(value, NONE if value is None else f"{value:.3g}" + (notes.SHARED if cell.shared_device else ""))


def _bound(cell: Cell, side: str) -> Entry:
    return Entry(getattr(cell.accuracy, side) if cell.accuracy else None, "")


def _cost(cell: Cell, column: str) -> Entry:
    value = cell.constant(column)
    return Entry(value, short_count(value))


def _harm(cell: Cell) -> Entry:
    value = cell.mean("time_harm")
    return Entry(value, percent(value, sign=True))


def _early_stopped(cell: Cell) -> Entry:
    value = cell.mean("early_stopped_accuracy")
    return Entry(value, percent(value))


_NUMBERS: list[tuple[Column, Fill]] = [
    (Column("drawn_images", "drawn images", numeric=True), lambda c: _count(c.drawn_images)),
    (Column("train_images", "train images", numeric=True), lambda c: _count(c.train_images)),
    (Column("runs", "runs", numeric=True), lambda c: Entry(len(c.rows), f"{len(c.rows)} of {len(c.runs)}")),
    (Column("runs_planned", "", shown=False), lambda c: plain(len(c.runs))),
    (Column("diverged", "", shown=False), lambda c: plain(c.count("diverged"))),
    (Column("failed", "", shown=False), lambda c: plain(c.count("failed"))),
    (Column("test_accuracy", "test accuracy, % [95 %]", numeric=True),
     lambda c: Entry(c.accuracy.mean if c.accuracy else None, interval_text(c.accuracy))),
    (Column("test_accuracy_low", "", shown=False), lambda c: _bound(c, "low")),
    (Column("test_accuracy_high", "", shown=False), lambda c: _bound(c, "high")),
    (Column("test_accuracy_of_done", "", shown=False),
     lambda c: plain(c.accuracy_of_done.mean if c.accuracy_of_done else None)),
    (Column("few_seeds", "", shown=False), lambda c: plain(c.accuracy.few_seeds if c.accuracy else None)),
    (Column("gap", "gap, points", numeric=True), _gap),
    (Column("gap_is_test_error", "", shown=False), lambda c: plain(c.gap_is_test_error if c.done else None)),
    (Column("time_harm", "time harm, points", numeric=True), _harm),
    (Column("early_stopped_accuracy", "early stopped, %", numeric=True), _early_stopped),
    (Column("fit_state", "fit state"), lambda c: word(c.fit_state)),
    (Column("params", "parameters", numeric=True), lambda c: _cost(c, "params")),
    (Column("macs", "MACs", numeric=True), lambda c: _cost(c, "macs")),
    (Column("seconds", "seconds a run", numeric=True), _seconds),
    (Column("shared_device", "", shown=False), lambda c: plain(c.shared_device if c.rows else None)),
]

_LAST = (Column("notes", "notes"), Column("interval", "", shown=False), *notes.RESTS_ON)
