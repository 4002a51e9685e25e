"""Measuring what a kind of run takes, by a few steps of it under the load that the study will have."""

import math
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vitbench.environment import code_version
from vitbench.grid import Resolved, Run, counts_of, model_of
from vitbench.record import Execution, RunRecord
from vitbench.spec import Budget, RunSpec
from vitbench.store import ResultStore
from vitbench.study import costs
from vitbench.study.engines.local import LocalEngine, imports_of
from vitbench.study.engines.worker import Task
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import image_bytes
from vitbench.study.memory import refuse_too_large
from vitbench.study.place import Placement, choose_place
from vitbench.study.slow import refuse_too_slow

FIRST_STEPS, MOST_STEPS = 1, 400
SECONDS = 2.0  # of training are enough for a rate


class NotMeasured(ValueError):
    """A kind of run whose probe failed; the message has its reason."""


def measure_missing(folder: StudyFolder, placement: Placement, plugins: tuple[Path, ...],
                    tell: Callable[[str], object], *, allow_slow: bool) -> None:
    """Put rates for each kind of run that was never measured here into the cost file.

    Nothing is written to the study's own folder. Raises NotMeasured, and what a study raises before it trains: TooSlow
    only where a run would be too slow on any core, and not with `allow_slow`.
    """
    known = costs.read(folder.store.folder.parent)

    def kind(run: Run) -> str:
        return costs.kind_of(run.spec, placement.device, shared=placement.shared)

    by_share = sorted(folder.left(), key=lambda run: sum(counts_of(run, folder.resolved).train))
    missing = {kind(run): run for run in by_share if kind(run) not in known.kinds}  # each with its largest share
    if not missing:
        return
    began, todo = time.monotonic(), list(missing.values())
    with tempfile.TemporaryDirectory(prefix=PREFIX) as temporary, LocalEngine(imports_of(todo), placement) as engine:
        machine = engine.inspect(folder.study.dataset, plugins, {run.label: model_of(run) for run in todo})
        costs.keep(folder.store.folder.parent, {}, start_seconds=time.monotonic() - began - machine.load_seconds)
        side_by_side = [run for run in todo for _ in range(placement.workers)]
        refuse_too_large(side_by_side, folder.resolved, machine.costs, {}, placement.workers)
        if not allow_slow:
            new = [run for run in folder.left() if kind(run) in missing]
            refuse_too_slow(new, folder.resolved, machine.costs, known, placement)
        store = probe_store(temporary)
        place = choose_place(store, placement.device, machine, code_version())
        Bench(folder, engine, store, place, plugins).measure(missing, tell)


PREFIX = "vitbench-"  # of folders for what probes write


def probe_store(temporary: str) -> ResultStore:
    """A store for the records of probes."""
    store = ResultStore(Path(temporary) / "probe")
    store.prepare()
    return store


@dataclass(frozen=True)
class Bench:
    """Where kinds of runs of a study are measured: on every worker of `engine` at once, into a `store` of their own."""

    folder: StudyFolder
    engine: LocalEngine
    store: ResultStore
    place: Execution
    plugins: tuple[Path, ...]

    def measure(self, runs: Mapping[str, Run], tell: Callable[[str], object]) -> None:
        """Put the rates of `runs`, by kind, into the cost file, each when it is known. Raises NotMeasured."""
        for kind, run in runs.items():
            tell(f"measuring {run.label}")
            costs.keep(self.folder.store.folder.parent, {kind: self._rates(run)})

    def _rates(self, run: Run) -> list[costs.Rates]:
        """A few steps; more where these take too little time to tell."""
        spec, steps, wanted = few_images(run, self.folder.resolved), 0, FIRST_STEPS
        while wanted >= 2 * steps:
            steps = wanted
            found = self._of(run.label, spec, steps)
            seconds = max(record.cost.train_seconds for record, _ in found)
            wanted = min(MOST_STEPS, math.ceil(steps * SECONDS / max(seconds, 1e-3)))
        return [costs.rates_of(record, taken, image_bytes(self.folder.resolved)) for record, taken in found]

    def _of(self, label: str, spec: RunSpec, steps: int) -> list[tuple[RunRecord, float]]:
        """Probes side by side, one a worker: records and the driver's seconds."""
        placement, budget = self.engine.placement, Budget(unit="steps", amount=steps)
        for seed in range(placement.workers):
            changed = spec.changed(budget=budget, seed=seed)
            self.engine.start(Task(changed, self.place, self.store.folder, self.plugins, placement.shared, probe=True))
        found = []
        while self.engine.busy:
            for end in self.engine.ended(timeout=1.0):
                if end.outcome != "done":
                    raise NotMeasured(f"{label} cannot be measured: {end.outcome}: {end.reason}")
                record = self.store.read(end.spec.run_id)
                assert isinstance(record, RunRecord)
                found.append((record, end.seconds))
        return found


def few_images(run: Run, resolved: Resolved) -> RunSpec:
    """The run's specification with no more images than fill a batch: a large share is evaluated for minutes."""
    drawn, wanted = counts_of(run, resolved), run.spec.recipe.batch(sum(counts_of(run, resolved).train))
    for number in range(max(1, wanted // len(drawn.drawn)), min(drawn.drawn)):
        spec = run.spec.changed(fraction=None, images_per_class=number)
        if sum(counts_of(replace(run, spec=spec), resolved).train) >= wanted:
            return spec
    return run.spec
