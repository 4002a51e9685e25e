"""Executing a study: the runs that the store lacks, given to an engine until all have ended."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vitbench.environment import code_version
from vitbench.grid import Run, model_of
from vitbench.live import Progress, clear, running
from vitbench.record import DamagedRecord, Execution, Failure, RunRecord
from vitbench.store import ResultStore, StoreError
from vitbench.study import costs
from vitbench.study.engines.local import Ended, LocalEngine, imports_of
from vitbench.study.engines.worker import Task
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import forecasts, image_bytes, refuse_short_budgets, wall_seconds
from vitbench.study.memory import refuse_too_large
from vitbench.study.place import Placement, choose_place
from vitbench.units import duration


@dataclass(frozen=True)
class Options:
    """How a study is driven. Seconds count from the start of the first run; None: no limit."""

    workers: int | None = None  # runs at a time; None: one a core, or on CUDA `runs_per_device` a device
    runs_per_device: int = 1
    seconds: float | None = None
    max_failures: int | None = None
    retry_failed: bool = False


@dataclass
class Summary:
    """What one driver did. `stopped` says why it left runs undone."""

    already: int = 0
    study_changed: bool = False
    done: int = 0
    diverged: int = 0
    failed: list[Ended] = field(default_factory=list)
    left: int = 0  # runs that have not ended
    stopped: str | None = None
    seconds: float = 0.0  # from the first run's start to the last one's end
    forecast_seconds: float | None = None  # of the same, None where a kind of run was never measured here
    measured: dict[str, list[costs.Rates]] = field(default_factory=dict)
    start_seconds: float | None = None  # loading torch, before the first run

    @property
    def ended(self) -> int:
        """Runs that this driver saw ending."""
        return self.done + self.diverged + len(self.failed)


class Display(Protocol):
    """Shows a study while it runs."""

    def note(self, line: str) -> None:
        """Something to know before it starts."""

    def tick(self, summary: Summary, live: list[Progress], seconds_left: float | None) -> None:
        """Called about twice a second."""

    def ended(self, run: Run, ended: Ended) -> None:
        """Called once for each run that ended."""


def to_do(runs: Iterable[Run], store: ResultStore, *, retry_failed: bool) -> tuple[list[Run], list[str]]:
    """Runs without a whole record or whose worker died, and a line for each damaged one, which is set aside.

    `runs` are distinct. Raises ForeignRecord for a record of another version.
    """
    todo, damaged, there = [], [], store.ids()
    for run in runs:
        run_id = run.spec.run_id
        if run_id not in there:
            todo.append(run)
            continue
        try:
            found = store.read(run_id)
        except DamagedRecord as error:
            place = store.set_aside(run_id, "damaged")
            damaged.append(f"{run_id} ({run.label}, {run.spec.share}, seed {run.spec.seed}): {error}; moved to {place}")
            todo.append(run)
            continue
        if isinstance(found, Failure) and (retry_failed or found.crash):
            store.set_aside(run_id, "replaced")
            todo.append(run)
    return todo, damaged


def execute(folder: StudyFolder, runs: list[Run], plugins: dict[str, Path], options: Options,
            display: Display) -> Summary:
    """Do those of `runs` that the folder lacks, keeping what ends at once.

    Raises StoreError where results cannot be written or another driver is at work, DatasetError where the
    dataset cannot be had. KeyboardInterrupt ends the running workers and passes on.
    """
    store = folder.store
    store.prepare()
    with store.locked():
        store.clean()
        changes = folder.write(plugins)
        for change in changes:
            display.note(f"the study changed since its last run: {change}")
        for remark in folder.remarks():
            display.note(remark)
        chosen = {run.spec.run_id for run in runs}
        # Of all, in order: a priority may name runs that --only left out.
        wanted = [run for run in folder.in_order() if run.spec.run_id in chosen]
        todo, damaged = to_do(wanted, store, retry_failed=options.retry_failed)
        for line in damaged:
            display.note(f"damaged record, done again: {line}")
        summary = Summary(already=len(wanted) - len(todo), study_changed=bool(changes))
        if todo:
            try:
                # The copies in the results folder: an edit while the study runs changes no run of it.
                copies = tuple(store.folder / "plugins" / path.name for path in plugins.values())
                _start(folder, todo, copies, options, display, summary)
            finally:
                clear(store.folder / "live")
                costs.keep(store.folder.parent, summary.measured, start_seconds=summary.start_seconds)
        return summary


def _start(folder: StudyFolder, todo: list[Run], plugins: tuple[Path, ...], options: Options, display: Display,
           summary: Summary) -> None:
    began = time.monotonic()
    display.note(f"{len(todo)} runs to do; the workers load torch first, once")
    with LocalEngine(imports_of(todo)) as engine:
        machine = engine.inspect(folder.study.dataset, plugins, {run.label: model_of(run) for run in todo},
                                 tuple(regime for regime in folder.study.regimes if regime != "none"))
        for regime, png in machine.pictures.items():
            folder.store.write_picture(regime, png)
        summary.start_seconds = time.monotonic() - began - machine.load_seconds
        place = choose_place(folder.store, folder.study.device, machine, code_version())
        engine.placement = Placement.of(place.device, machine.devices, workers=options.workers,
                                        runs_per_device=options.runs_per_device, runs=len(todo))
        refuse_short_budgets(todo, folder.resolved, machine.costs)
        forecast = forecasts(todo, folder.resolved, costs.read(folder.store.folder.parent), engine.placement)
        if place.device == "cpu":
            refuse_too_large(todo, folder.resolved, machine.costs, forecast, engine.placement.workers)
        summary.forecast_seconds = wall_seconds(forecast.values(), engine.placement.workers)
        seconds = "" if summary.forecast_seconds is None else f"; forecast: {duration(summary.forecast_seconds)}"
        display.note(f"{engine.placement.workers} at a time on {place.device}{seconds}")
        _Driver(folder, engine, place, plugins, options, display, summary).drive(todo)


@dataclass
class _Driver:
    """Keeps the engine's workers busy until all runs ended or a limit is reached; what runs then ends first."""

    folder: StudyFolder
    engine: LocalEngine
    place: Execution
    plugins: tuple[Path, ...]
    options: Options
    display: Display
    summary: Summary

    def drive(self, runs: list[Run]) -> None:
        summary, by_id = self.summary, {run.spec.run_id: run for run in runs}
        started, waiting = time.monotonic(), list(reversed(runs))
        summary.left = len(runs)
        while summary.left:
            summary.seconds = time.monotonic() - started
            summary.stopped = summary.stopped or _limit_reached(self.options, summary, summary.seconds)
            while waiting and self.engine.free and not summary.stopped:
                self.engine.start(Task(waiting.pop().spec, self.place, self.folder.store.folder, self.plugins,
                                       self.engine.placement.shared))
            if not self.engine.busy:
                break
            for end in self.engine.ended(timeout=0.5):
                _count(summary, end, self.folder.store.folder)
                self._measure(end)
                self.display.ended(by_id[end.spec.run_id], end)
            self.display.tick(summary, running(self.folder.store.folder / "live"), self._left(len(runs)))
        summary.seconds = time.monotonic() - started

    def _left(self, runs: int) -> float | None:
        ended = runs - self.summary.left
        return self.summary.seconds / ended * self.summary.left if ended else None

    def _measure(self, end: Ended) -> None:
        record = self.folder.store.read(end.spec.run_id) if end.outcome == "done" else None
        if isinstance(record, RunRecord):
            kind = costs.kind_of(end.spec, self.place.device, shared=self.engine.placement.shared)
            rates = costs.rates_of(record, end.seconds, image_bytes(self.folder.resolved))
            self.summary.measured.setdefault(kind, []).append(rates)


def _limit_reached(options: Options, summary: Summary, elapsed: float) -> str | None:
    if options.seconds is not None and elapsed >= options.seconds:
        return "the time limit is reached"
    if options.max_failures is not None and len(summary.failed) >= options.max_failures:
        return f"{len(summary.failed)} failed, and --max-failures is {options.max_failures}"
    return None


def _count(summary: Summary, end: Ended, folder: Path) -> None:
    if end.outcome == "unstored":
        raise StoreError(f"cannot write to {folder}: {end.reason}. What had ended is kept; put that "
                         "right and run the same command again")
    summary.left -= 1
    if end.outcome == "done":
        summary.done += 1
    elif end.outcome == "diverged":
        summary.diverged += 1
    else:
        summary.failed.append(end)
