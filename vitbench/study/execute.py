"""Executing a study: the runs that the store lacks, given to an engine until all have ended."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vitbench.environment import code_version
from vitbench.grid import Run, distinct
from vitbench.live import Progress, clear, running
from vitbench.models import MODELS
from vitbench.record import DamagedRecord, Failure
from vitbench.spec import split_version
from vitbench.store import ResultStore, StoreError
from vitbench.study.engines.local import Ended, LocalEngine, Task
from vitbench.study.folder import StudyFolder
from vitbench.study.place import choose_place


@dataclass(frozen=True)
class Options:
    """How a study is driven. Seconds count from the start of the first run; None: no limit."""

    workers: int
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
    left: int = 0
    stopped: str | None = None


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


def slow_imports(runs: Iterable[Run]) -> list[str]:
    """Modules that the runs' models take long to import."""
    names = {split_version(run.spec.model)[0] for run in runs}
    return sorted({module for name in names for module in MODELS.get(name).meta.imports})


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
        if earlier := folder.earlier_runs():
            display.note(earlier)
        wanted = distinct(runs)
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
        return summary


def _start(folder: StudyFolder, todo: list[Run], plugins: tuple[Path, ...], options: Options, display: Display,
           summary: Summary) -> None:
    workers = min(options.workers, len(todo))
    display.note(f"{len(todo)} runs to do, {workers} at a time; the workers load torch first, once")
    with LocalEngine(workers, slow_imports(todo)) as engine:
        machine = engine.inspect(folder.study.dataset, plugins)
        place = choose_place(folder.store, folder.study.device, machine, code_version())
        tasks = [Task(run.spec, place, folder.store.folder, plugins,
                      shared=engine.workers > 1) for run in todo]
        _drive(engine, tasks, {run.spec.run_id: run for run in todo}, options, display, summary)


def _drive(engine: LocalEngine, tasks: list[Task], by_id: dict[str, Run], options: Options, display: Display,
           summary: Summary) -> None:
    """Keep the engine's workers busy until all tasks ended or a limit is reached; what runs then ends first."""
    started, waiting = time.monotonic(), list(reversed(tasks))
    summary.left = len(tasks)
    while summary.left:
        elapsed = time.monotonic() - started
        summary.stopped = summary.stopped or _limit_reached(options, summary, elapsed)
        while waiting and engine.free and not summary.stopped:
            engine.start(waiting.pop())
        if not engine.busy:
            break
        for end in engine.ended(timeout=0.5):
            _count(summary, end, tasks[0].folder)
            display.ended(by_id[end.spec.run_id], end)
        ended = len(tasks) - summary.left
        display.tick(summary, running(tasks[0].folder / "live"), elapsed / ended * summary.left if ended else None)


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
