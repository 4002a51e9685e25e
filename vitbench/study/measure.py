"""Measuring what a kind of run takes, by a few steps of it under the load that the study will have."""

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vitbench.environment import code_version
from vitbench.grid import Run, counts_of, model_of
from vitbench.record import Execution, RunRecord
from vitbench.spec import Budget
from vitbench.store import ResultStore
from vitbench.study import costs
from vitbench.study.engines.local import LocalEngine, imports_of
from vitbench.study.engines.worker import Task
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import image_bytes
from vitbench.study.memory import refuse_too_large
from vitbench.study.place import Placement, choose_place

FIRST_STEPS, MOST_STEPS = 8, 400
SECONDS = 2.0  # of training are enough for a rate


class NotMeasured(ValueError):
    """A kind of run whose probe failed; the message has its reason."""


def measure_missing(folder: StudyFolder, placement: Placement, plugins: dict[str, Path],
                    tell: Callable[[str], object]) -> None:
    """Put rates for each kind of run that was never measured here into the cost file.

    Each is measured on the smallest share it has, on every worker at once. Nothing is written to the study's own
    folder. Raises NotMeasured, and what a study raises before it trains.
    """
    results, by_kind = folder.store.folder.parent, dict[str, Run]()
    for run in sorted(folder.left(), key=lambda run: sum(counts_of(run, folder.resolved).train)):
        by_kind.setdefault(costs.kind_of(run.spec, placement.device, shared=placement.shared), run)
    known = costs.read(results).kinds
    missing = {kind: run for kind, run in by_kind.items() if kind not in known}
    if missing:
        _measure(folder, missing, placement, tuple(plugins.values()), tell)


def _measure(folder: StudyFolder, runs: dict[str, Run], placement: Placement, plugins: tuple[Path, ...],
             tell: Callable[[str], object]) -> None:
    began, results, todo = time.monotonic(), folder.store.folder.parent, list(runs.values())
    with tempfile.TemporaryDirectory(prefix="vitbench-") as temporary, \
            LocalEngine(imports_of(todo), placement) as engine:
        store = ResultStore(Path(temporary) / "probe")
        store.prepare()
        machine = engine.inspect(folder.study.dataset, plugins, {run.label: model_of(run) for run in todo})
        costs.keep(results, {}, start_seconds=time.monotonic() - began - machine.load_seconds)
        side_by_side = [run for run in todo for _ in range(placement.workers)]
        refuse_too_large(side_by_side, folder.resolved, machine.costs, {}, placement.workers)
        place = choose_place(store, placement.device, machine, code_version())
        for kind, run in runs.items():
            tell(f"measuring {run.label}")
            probe = _Probe(engine, store, place, plugins, image_bytes(folder.resolved))
            costs.keep(results, {kind: probe.rates(run)})


@dataclass(frozen=True)
class _Probe:
    engine: LocalEngine
    store: ResultStore
    place: Execution
    plugins: tuple[Path, ...]
    image_bytes: int

    def rates(self, run: Run) -> list[costs.Rates]:
        """A few steps; more where these take too little time to tell."""
        first = self._of(run, FIRST_STEPS)
        seconds = max(record.cost.train_seconds for record, _ in first)
        steps = min(MOST_STEPS, math.ceil(FIRST_STEPS * SECONDS / max(seconds, 1e-3)))
        found = self._of(run, steps) if steps > FIRST_STEPS else first
        return [costs.rates_of(record, taken, self.image_bytes) for record, taken in found]

    def _of(self, run: Run, steps: int) -> list[tuple[RunRecord, float]]:
        """Probes side by side, one a worker: records and the driver's seconds."""
        placement, budget = self.engine.placement, Budget(unit="steps", amount=steps)
        for seed in range(placement.workers):
            spec = run.spec.changed(budget=budget, seed=seed)
            self.engine.start(Task(spec, self.place, self.store.folder, self.plugins, placement.shared, probe=True))
        found = []
        while self.engine.busy:
            for end in self.engine.ended(timeout=1.0):
                if end.outcome != "done":
                    raise NotMeasured(f"{run.label} cannot be measured: {end.outcome}: {end.reason}")
                record = self.store.read(end.spec.run_id)
                assert isinstance(record, RunRecord)
                found.append((record, end.seconds))
        return found
