"""Cells: the runs of one model, share, regime, budget and setting over its seeds, with their means."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from vitbench.config.controls import ANCHOR, MAIN
from vitbench.grid import Run, counts_of
from vitbench.report.frame import Frame
from vitbench.row import Row
from vitbench.spec import sha256_json
from vitbench.stats.intervals import Interval, t_interval

CellKey = tuple[str, str, str, str, str]  # label, share, regime, budget, setting


@dataclass(frozen=True)
class Cell:
    """One cell. `rows` are the runs that ended, by seed; None is 'missing' in every mean."""

    label: str
    share: str
    regime: str
    budget: str
    setting: str
    control: str
    family: str
    size: str | None
    drawn_images: int
    train_images: int
    val_images: int
    runs: tuple[Run, ...]  # of the grid, by seed
    rows: tuple[Row, ...]

    @property
    def key(self) -> CellKey:
        """What names the cell within its study."""
        return self.label, self.share, self.regime, self.budget, self.setting

    @property
    def condition(self) -> str:
        """What stays the same while models and shares are compared: 'none, steps:300, default'."""
        return f"{self.regime}, {self.budget}, {self.setting}"

    @property
    def done(self) -> tuple[Row, ...]:
        """Runs that neither diverged nor failed."""
        return tuple(row for row in self.rows if row.outcome == "done")

    def count(self, outcome: str) -> int:
        """Number of runs that ended so."""
        return sum(row.outcome == outcome for row in self.rows)

    @cached_property
    def accuracy(self) -> Interval | None:
        """Test accuracy; a run that diverged or failed counts as chance (protocol rule 13)."""
        return _interval(row.counted_accuracy for row in self.rows)

    @cached_property
    def accuracy_of_done(self) -> Interval | None:
        """Test accuracy without the runs that diverged or failed."""
        return _interval(row.counted_accuracy for row in self.done)

    @property
    def crossed(self) -> bool:
        """True where its runs share seeds, as those of a crossed design do: no interval over them means anything."""
        return len({run.spec.seed for run in self.runs}) < len(self.runs)

    def mean(self, column: str) -> float | None:
        """Mean of a column of the frame over the runs that have it."""
        values = [value for row in self.rows if (value := getattr(row, column)) is not None]
        return fsum(values) / len(values) if values else None

    def constant(self, column: str) -> int | None:
        """A column that is the same for all runs of a cell: parameters, MACs."""
        return next((value for row in self.rows if (value := getattr(row, column)) is not None), None)

    @property
    def gap_is_test_error(self) -> bool:
        """True where no finished run has an error left on its training part (protocol rule 15)."""
        return bool(self.done) and all(row.clean_train_accuracy == 1 for row in self.done)

    @property
    def fit_state(self) -> str | None:
        """The state of two thirds of the runs that ended, else `mixed`; None where no run has one (rule 16)."""
        states = Counter(row.fit_state for row in self.rows if row.fit_state is not None)
        if not states:
            return None
        state, times = states.most_common(1)[0]
        return state if 3 * times >= 2 * len(self.rows) else "mixed"

    @property
    def shared_device(self) -> bool:
        """True if any of its times was taken with other runs beside it."""
        return any(row.shared_device for row in self.rows)


def accuracy_by_seed(cell: Cell) -> dict[int, float]:
    """What pairs a cell with another of the same seeds: test accuracy, chance where a run diverged or failed."""
    return {row.seed: row.counted_accuracy for row in cell.rows}


def paired(cell: Cell, other: Cell) -> list[float]:
    """Accuracy of `cell` minus that of `other` for each seed that ended in both, by seed."""
    mine, others = accuracy_by_seed(cell), accuracy_by_seed(other)
    return [mine[seed] - others[seed] for seed in sorted(mine.keys() & others.keys())]


def _interval(values: Iterable[float]) -> Interval | None:
    found = list(values)
    return t_interval(found) if found else None


def ordered_rows(frame: Frame) -> tuple[Row, ...]:
    """The frame's rows in the order of the grid, whatever their own."""
    place = {run.key: i for i, run in enumerate(frame.runs)}
    return tuple(sorted(frame.rows, key=lambda row: place[row.key]))


def cells(frame: Frame) -> tuple[Cell, ...]:
    """Every cell of the grid, in its order, whatever the order of the frame's rows; missing ones have no rows.

    A tuned cell stands below the default one of the same condition.
    """
    found = _cells(frame.main)
    place: dict[tuple[str, ...], int] = {}
    for i, cell in enumerate(found):
        place.setdefault(cell.key[:4], i)
    return tuple(sorted(found, key=lambda cell: place[cell.key[:4]]))


def all_cells(frame: Frame) -> tuple[Cell, ...]:
    """The cells of the grid, of its controls and of its anchors."""
    return (*cells(frame), *control_cells(frame), *anchor_cells(frame))


def control_cells(frame: Frame) -> tuple[Cell, ...]:
    """The cells of the study's controls, in their order."""
    return _cells(frame.of(lambda control: control not in (MAIN, ANCHOR)))


def anchor_cells(frame: Frame) -> tuple[Cell, ...]:
    """The cells that are held against reference bands."""
    return _cells(frame.of(lambda control: control == ANCHOR))


def _cells(frame: Frame) -> tuple[Cell, ...]:
    rows = {row.key: row for row in frame.rows}
    grouped: dict[tuple[str, ...], list[Run]] = {}
    for run in frame.runs:
        grouped.setdefault((*run.condition, run.setting, run.control), []).append(run)
    return tuple(_cell(frame, runs, rows) for runs in grouped.values())


def _cell(frame: Frame, runs: list[Run], rows: dict[tuple[str, str, str, str], Row]) -> Cell:
    first = runs[0]
    label, share, regime, budget = first.condition
    counts = counts_of(runs[0], frame.resolved)
    by_seed = tuple(sorted(runs, key=lambda run: (run.spec.seed, run.spec.run_id)))
    ended = [rows.get(run.key) for run in by_seed]
    return Cell(label, share, regime, budget, first.setting, first.control, frame.resolved.models[label].family,
                first.spec.size, sum(counts.drawn), sum(counts.train), sum(counts.validation), by_seed,
                tuple(row for row in ended if row is not None))


def content_sha256(frame: Frame) -> str:
    """Names what a table or figure rests on: SHA-256 over sorted run ids, each with its record's hash, and over what
    the study says of them: labels and controls, margin, constants of the fit state, bands, and looks.

    A failed run stands with the hash of its reason, a run without a result as `missing` or `excluded`.
    """
    stands = {row.run_id: sha256_json(row.reason) for row in frame.rows if row.run_id not in frame.records}
    # Of a cell that is not tuned yet no run has an id of its own.
    stands |= {"/".join(run.key) if run.pending else run.spec.run_id: "missing" for run in frame.missing}
    stands |= dict.fromkeys(frame.excluded, "excluded")
    stands |= {run_id: record.sha256 for run_id, record in frame.records.items()}
    stands |= {"/".join((one.setting, *one.condition)): sha256_json(one.model_dump(mode="json"))
               for one in frame.searches}
    said = [sorted(run.key for run in frame.runs), frame.margin, frame.rule.model_dump(), frame.exploratory,
            {label: band.model_dump(mode="json") for label, band in frame.resolved.bands.items()}]
    return sha256_json([sorted(stands.items()), said])
