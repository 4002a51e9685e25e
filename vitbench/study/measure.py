"""Measuring what a kind of run takes, by a few steps of it under the load that the study will have."""

import math
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from vitbench.environment import code_version
from vitbench.grid import Run, model_of
from vitbench.record import Execution, RunRecord
from vitbench.report.frame import counts_of
from vitbench.spec import Budget, RunSpec
from vitbench.store import ResultStore
from vitbench.study import costs
from vitbench.study.engines.local import LocalEngine, slow_imports
from vitbench.study.engines.worker import Task
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import image_bytes
from vitbench.study.place import choose_place

FIRST_STEPS, MOST_STEPS = 8, 400
SECONDS = 2.0  # of training are enough for a rate


class NotMeasured(ValueError):
    """A kind of run whose trial failed; the message has its reason."""


def measure(folder: StudyFolder, runs: Iterable[Run], plugins: dict[str, Path], workers: int,
            tell: Callable[[str], object]) -> None:
    """Put rates for each kind among `runs` into the cost file. Nothing is written to the study's own folder.

    Each kind is measured on the smallest share it has here, `workers` trials at once. Raises NotMeasured.
    """
    shared = workers > 1
    by_kind: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: sum(counts_of(run, folder.resolved).train)):
        by_kind.setdefault(costs.kind_of(run.spec, "", shared=shared), run)
    began, imports = time.monotonic(), slow_imports(by_kind.values())
    with tempfile.TemporaryDirectory(prefix="vitbench-") as temporary, LocalEngine(imports, workers) as engine:
        store = ResultStore(Path(temporary) / "trial")
        store.prepare()
        machine = engine.inspect(folder.study.dataset, tuple(plugins.values()),
                                 {run.label: model_of(run) for run in by_kind.values()})
        place = choose_place(store, folder.study.device, machine, code_version())
        costs.keep(folder.store.folder.parent, {}, start_seconds=time.monotonic() - began)
        for run in by_kind.values():
            tell(f"measuring {run.label}")
            rates = _Trial(engine, store, place, tuple(plugins.values()), image_bytes(folder.resolved)).rates(run)
            costs.keep(folder.store.folder.parent, {costs.kind_of(run.spec, place.device, shared=shared): rates})


@dataclass(frozen=True)
class _Trial:
    engine: LocalEngine
    store: ResultStore
    place: Execution
    plugins: tuple[Path, ...]
    image_size: int

    def rates(self, run: Run) -> list[costs.Rates]:
        """A few steps; more where these take too little time to tell."""
        first = self._of(run, FIRST_STEPS)
        seconds = max(record.cost.train_seconds for record, _ in first)
        steps = min(MOST_STEPS, math.ceil(FIRST_STEPS * SECONDS / max(seconds, 1e-3)))
        found = self._of(run, steps) if steps > FIRST_STEPS else first
        return [costs.rates_of(record, taken, self.image_size) for record, taken in found]

    def _of(self, run: Run, steps: int) -> list[tuple[RunRecord, float]]:
        """Trials side by side, one a worker: records and the driver's seconds."""
        workers, budget = self.engine.workers, Budget(unit="steps", amount=steps)
        for seed in range(workers):
            # Not model_copy: it would keep the run id that was computed for the original.
            spec = RunSpec.model_validate(run.spec.model_dump() | {"budget": budget, "seed": seed})
            self.engine.start(Task(spec, self.place, self.store.folder, self.plugins, workers > 1, trial=True))
        found = []
        while self.engine.busy:
            for end in self.engine.ended(timeout=1.0):
                if end.outcome != "done":
                    raise NotMeasured(f"{run.label} cannot be measured: {end.outcome}: {end.reason}")
                record = self.store.read(end.spec.run_id)
                assert isinstance(record, RunRecord)
                found.append((record, end.seconds))
        return found
