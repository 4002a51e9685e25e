"""Cells: the runs of one model, share, regime, budget and setting over its seeds, with their means."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from vitbench.grid import Run
from vitbench.report.frame import Frame, counts_of
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


def _interval(values: Iterable[float]) -> Interval | None:
    found = list(values)
    return t_interval(found) if found else None


def ordered_rows(frame: Frame) -> tuple[Row, ...]:
    """The frame's rows in the order of the grid, whatever their own."""
    place: dict[tuple[str, str, str], int] = {(run.label, run.setting, run.spec.run_id): i
                                              for i, run in enumerate(frame.runs)}
    return tuple(sorted(frame.rows, key=lambda row: place[row.label, row.setting, row.run_id]))


def cells(frame: Frame) -> tuple[Cell, ...]:
    """Every cell of the grid, in its order, whatever the order of the frame's rows; missing ones have no rows."""
    # Two labels may name one specification, so a run id alone does not name a row.
    rows = {(row.label, row.setting, row.run_id): row for row in frame.rows}
    grouped: dict[CellKey, list[Run]] = {}
    for run in frame.runs:
        grouped.setdefault((run.label, run.spec.share, run.spec.regime, run.budget, run.setting), []).append(run)
    return tuple(_cell(frame, key, runs, rows) for key, runs in grouped.items())


def _cell(frame: Frame, key: CellKey, runs: list[Run], rows: dict[tuple[str, str, str], Row]) -> Cell:
    label, share, regime, budget, setting = key
    counts = counts_of(runs[0], frame.resolved)
    by_seed = tuple(sorted(runs, key=lambda run: (run.spec.seed, run.spec.run_id)))
    ended = [rows.get((label, setting, run.spec.run_id)) for run in by_seed]
    return Cell(label, share, regime, budget, setting, frame.resolved.models[label].family, runs[0].spec.size,
                sum(counts.drawn), sum(counts.train), sum(counts.validation), by_seed,
                tuple(row for row in ended if row is not None))


def content_sha256(frame: Frame) -> str:
    """Names what a table or figure rests on: SHA-256 over sorted run ids, each with its record's hash.

    A failed run stands with the hash of its reason, a run without a result as `missing` or `excluded`.
    """
    stands = {row.run_id: sha256_json(row.reason) for row in frame.rows}
    stands |= {run.spec.run_id: "missing" for run in frame.missing}
    stands |= dict.fromkeys(frame.excluded, "excluded")
    stands |= {run_id: record.sha256 for run_id, record in frame.records.items()}
    return sha256_json(sorted(stands.items()))
