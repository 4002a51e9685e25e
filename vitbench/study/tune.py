"""Tuning a study: every search's trials, one at a time each, on all workers; what ends is kept at once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vitbench.record import Execution
from vitbench.search import Search, Trial
from vitbench.spec import RunSpec
from vitbench.study.engines.local import Ended, LocalEngine
from vitbench.study.engines.worker import TrialTask
from vitbench.study.sampler import Asker, open_journal
from vitbench.study.searches import FOLDER, JOURNAL, Wanted, keep

MOST_LOSSES = 2  # of a trial's worker: a crash is no result, but one that comes back must not go on for ever


@dataclass
class _Searching:
    """One search at work."""

    name: str
    spec: RunSpec
    folds: tuple[int, int] | None
    search: Search
    asker: Asker
    running: TrialTask | None = None
    losses: Counter[int] = field(default_factory=Counter)

    def next_task(self, place: Execution, folder: Path, plugins: tuple[Path, ...]) -> TrialTask | None:
        asked = self.asker.ask()
        if asked is None:
            return None
        number, params = asked
        spec = self.spec.changed(recipe=self.spec.recipe.model_dump() | params)
        self.running = TrialTask(spec, place, folder, plugins, number, params, self.folds, self._halving())
        return self.running

    def _halving(self) -> tuple[Literal["accuracy", "loss"], tuple[tuple[float, ...], ...]] | None:
        tuning = self.search.tuning
        if tuning.pruner == "none":
            return None
        reached = [trial.rungs for trial in self.search.trials]
        most = max(map(len, reached), default=0)
        return tuning.objective, tuple(tuple(rungs[i] for rungs in reached if len(rungs) > i) for i in range(most))

    def refresh(self) -> None:
        trials = self.asker.trials()[:self.search.tuning.trials]
        self.search = self.search.model_copy(update={"trials": trials})


@dataclass
class Tuner:
    """Drives searches until all have ended, or `stop` gives a reason to end."""

    engine: LocalEngine
    place: Execution
    folder: Path  # of the study
    plugins: tuple[Path, ...]
    stop: Callable[[], str | None]
    tick: Callable[[int, int], object]  # trials ended, trials in all
    tell: Callable[[str], object]

    def drive(self, wanted: list[Wanted]) -> None:
        """Do what is left of each search, in their order; none stands twice. Raises DamagedJournal."""
        journal = open_journal(self.folder / FOLDER / JOURNAL)
        searching = [_Searching(w.name, w.spec, w.folds, w.search, Asker(w.name, w.search.tuning, journal))
                     for w in wanted]
        for one in searching:
            one.asker.restore(one.search.trials)
            one.refresh()
            keep(self.folder / FOLDER, one.name, one.search)
        while True:
            waiting = [one for one in searching if one.running is None and not one.search.ended]
            for one in waiting if not self.stop() else []:
                if not self.engine.free:
                    break
                task = one.next_task(self.place, self.folder, self.plugins)
                if task is not None:
                    self.engine.start(task)
            if not self.engine.busy:
                break
            for end in self.engine.ended(timeout=0.5):
                self._ended(next(one for one in searching if one.running is end.task), end)
            self.tick(sum(len(one.search.trials) for one in searching),
                      sum(one.search.tuning.trials for one in searching))

    def _ended(self, one: _Searching, end: Ended) -> None:
        task, trial = one.running, end.trial
        assert task is not None
        one.running = None
        what = f"trial {task.number} of {one.search.label}, {one.search.share}"
        if trial is None:  # its worker died
            one.losses[task.number] += 1
            if one.losses[task.number] < MOST_LOSSES:
                self.tell(f"{what}: {end.reason}; done again")
                return
            trial = Trial(number=task.number, params=task.params, state="failed", reason=end.reason,
                          seconds=round(end.seconds, 3))
        if trial.state in ("failed", "diverged"):
            self.tell(f"{what} {trial.state}: {trial.reason}")
        one.asker.tell(trial)
        one.refresh()
        keep(self.folder / FOLDER, one.name, one.search)
