"""Training some runs of a study again, in a store of their own, and comparing them with their records."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vitbench.datasets import DATASETS
from vitbench.environment import code_version, environment_id
from vitbench.grid import Run, distinct, model_of
from vitbench.models import MODELS
from vitbench.record import Execution, Failure, RunRecord
from vitbench.registry import UnknownName
from vitbench.spec import NUMERICS, RunSpec, named_version, split_version
from vitbench.store import ResultStore, StoreError
from vitbench.study.agreement import differences
from vitbench.study.engines.local import LocalEngine, imports_of
from vitbench.study.engines.worker import Task
from vitbench.study.findings import Check, Stored
from vitbench.study.place import Machine, Placement, description_here


def draw(stored: Stored, count: int, seed: int) -> tuple[list[Run], Check]:
    """`count` runs of the study that ended, at random but the same for the same seed; and what cannot be drawn."""
    check = Check("reruns")
    able: dict[str, Run] = {}
    for run in distinct(run for run in stored.folder.runs if not run.pending):
        ended = stored.found.get(run.spec.run_id)
        if isinstance(ended, RunRecord) or (isinstance(ended, Failure) and not ended.crash):
            why = of_another_version(run.spec)
            if why:
                check.skip(f"run {run.spec.run_id}", why)
            else:
                able[run.spec.run_id] = run
    ids = sorted(able)
    chosen = np.random.default_rng(seed).choice(len(ids), size=min(count, len(ids)), replace=False)
    return [able[ids[i]] for i in chosen], check


def of_another_version(spec: RunSpec) -> str | None:
    """Why this version of vitbench cannot train a run as it was trained; None where it can."""
    if spec.numerics != NUMERICS:
        return f"computed with numerics {spec.numerics}; this version's are {NUMERICS}"
    for registry, versioned in ((DATASETS, spec.dataset), (MODELS, spec.model)):
        name, _ = split_version(versioned)
        try:
            here = named_version(name, registry.get(name).meta.version)
        except UnknownName as error:
            return str(error)
        if here != versioned:
            return f"computed with {versioned}; this version has {here}"
    return None


def rerun(stored: Stored, runs: list[Run], plugins: tuple[Path, ...], workers: int | None,
          check: Check) -> Iterator[str]:
    """Train `runs` again and note in `check` where they differ from their records; a line for each as it ends.

    The study's folder is only read. Raises what a study raises before it trains.
    """
    with tempfile.TemporaryDirectory(prefix="vitbench-") as temporary, LocalEngine(imports_of(runs)) as engine:
        store = ResultStore(Path(temporary) / stored.folder.name)
        store.prepare()
        machine = engine.inspect(stored.folder.study.dataset, plugins, {run.label: model_of(run) for run in runs})
        places = {run.spec.run_id: place_again(stored.found[run.spec.run_id], machine) for run in runs}
        cuda = any(place.device == "cuda" for place in places.values())
        engine.placement = Placement.of("cuda" if cuda else "cpu", machine.devices, workers=workers,
                                        runs_per_device=1, runs=len(runs))
        waiting = list(reversed(runs))
        while waiting or engine.busy:
            while waiting and engine.free:
                spec = waiting.pop().spec
                engine.start(Task(spec, places[spec.run_id], store.folder, plugins, engine.placement.shared))
            for end in engine.ended(timeout=0.5):
                if end.outcome == "unstored":
                    raise StoreError(f"cannot write to {temporary}: {end.reason}")
                run_id = end.spec.run_id
                yield _judge(check, stored.read(run_id), store.read(run_id), places[run_id])


def place_again(ended: object, machine: Machine) -> Execution:
    """Where a run is trained again: on its own kind of device where there is one."""
    before = ended.execution if isinstance(ended, RunRecord) else None
    device = "cuda" if before and before.device == "cuda" and machine.cuda else "cpu"
    return Execution(device=device, threads=before.threads if before else 1,
                     deterministic=before.deterministic if before else True,
                     environment=environment_id(description_here(device, machine)), code_version=code_version())


def _judge(check: Check, before: RunRecord | Failure, again: RunRecord | Failure, place: Execution) -> str:
    """Note what differs; the line that tells how much."""
    where = f"run {before.run_id}"
    if isinstance(again, Failure) and again.crash:
        check.skip(where, f"its {again.reason}")
        return f"{where}: {again.reason}"
    exactly = isinstance(before, RunRecord) and same_place(before.execution, place)
    wrong, told = differences(before, again, exactly=exactly)
    check.checked += 1
    how = "exactly" if exactly else "within the tolerance of another machine or device"
    if wrong:
        check.fault(where, f"trained again it differs from its record, compared {how}: {'; '.join(wrong)}",
                    "its record is not of this run; move its folder out of runs/ and do it again")
    return f"{where}: {'DIFFERS' if wrong else 'agrees'}, compared {how}{told}"


def same_place(before: Execution, here: Execution) -> bool:
    """True where every number of a run must come out the same."""
    return (before.environment, before.device, before.threads, before.deterministic) == (
        here.environment, here.device, here.threads, here.deterministic)
