"""Driving what is to do: runs and trials go to an engine until all have ended or a limit is reached."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vitbench.grid import Run
from vitbench.live import Progress, running
from vitbench.record import Execution, RunRecord
from vitbench.store import StoreError
from vitbench.study import costs
from vitbench.study.engines.local import Ended, LocalEngine
from vitbench.study.engines.worker import Task
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import image_bytes
from vitbench.study.searches import Wanted


@dataclass(frozen=True)
class Options:
    """How a study is driven. Seconds count from the start of the first run; None: no limit."""

    workers: int | None = None  # runs at a time; None: one a core, or on CUDA `runs_per_device` a device
    runs_per_device: int = 1
    seconds: float | None = None
    max_failures: int | None = None
    retry_failed: bool = False
    allow_slow: bool = False  # no limit for a single run


@dataclass
class Summary:
    """What one driver did. `stopped` says why it left runs undone."""

    already: int = 0
    study_changed: bool = False
    done: int = 0
    diverged: int = 0
    failed: list[Ended] = field(default_factory=list)
    left: int = 0  # runs that have not ended
    trials: int = 0  # of the tuning, ended
    trials_left: int = 0
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


@dataclass
class Driver:
    """Keeps the engine's workers busy until all runs ended or a limit is reached; what runs then ends first."""

    folder: StudyFolder
    engine: LocalEngine
    place: Execution
    plugins: tuple[Path, ...]
    options: Options
    display: Display
    summary: Summary
    waiting: int = 0  # runs that wait for a search
    began: float = field(default_factory=time.monotonic)

    def drive(self, runs: list[Run]) -> None:
        """Do all of `runs`, in their order."""
        summary, by_id = self.summary, {run.spec.run_id: run for run in runs}
        started, waiting = time.monotonic(), list(reversed(runs))
        summary.left = len(runs) + self.waiting
        while summary.left > self.waiting:
            while waiting and self.engine.free and not self._stop():
                self.engine.start(Task(waiting.pop().spec, self.place, self.folder.store.folder, self.plugins,
                                       self.engine.placement.shared, keep_weights="weights" in self.folder.study.keep))
            if not self.engine.busy:
                break
            for end in self.engine.ended(timeout=0.5):
                _count(summary, end, self.folder.store.folder)
                self._measure(end)
                self.display.ended(by_id[end.spec.run_id], end)
            ended = len(runs) + self.waiting - summary.left
            self.display.tick(summary, running(self.folder.store.folder / "live"),
                              (time.monotonic() - started) / ended * (len(runs) - ended) if ended else None)
        summary.seconds = time.monotonic() - self.began

    def tune(self, searches: list[Wanted]) -> None:
        """Do the trials of `searches`; what they find decides the runs that wait for them."""
        from vitbench.study.tune import Tuner

        started, before = time.monotonic(), sum(len(one.search.trials) for one in searches)

        def tick(ended: int, trials: int) -> None:
            self.summary.trials, self.summary.trials_left = ended, trials - ended
            new = ended - before
            self.display.tick(self.summary, [], (time.monotonic() - started) / new * (trials - ended) if new else None)

        Tuner(self.engine, self.place, self.folder.store.folder, self.plugins, self._stop, tick,
              self.display.note).drive(searches)
        self.summary.seconds = time.monotonic() - self.began

    def _stop(self) -> str | None:
        """Why nothing new is to start; once reached, a limit stays so."""
        summary = self.summary
        summary.stopped = summary.stopped or _limit_reached(self.options, summary, time.monotonic() - self.began)
        return summary.stopped

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
