"""What a study will take before it runs: runs to do and done, seconds, memory, and what its seeds can show."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitbench.grid import distinct
from vitbench.record import Execution
from vitbench.report.frame import build, counts_of
from vitbench.study import costs
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import Expected, expected, peak_bytes, together
from vitbench.study.progress import counts
from vitbench.study.resolution import Resolution, resolution

MOST_RECORDS = 2_000  # read for deviations; the first seeds are as good as all


@dataclass(frozen=True)
class ModelPlan:
    """Runs of one model. Seconds and memory are None where its kind of run was never measured here."""

    label: str
    runs: int
    done: int
    failed: int
    to_do: int
    seconds: float | None  # of the runs to do, summed
    peak_memory_bytes: int | None  # of the largest run to do


@dataclass(frozen=True)
class Plan:
    """A study's runs with their forecast on `workers` workers of `device`."""

    study: str
    device: str
    workers: int
    shares: tuple[dict[str, Any], ...]
    models: tuple[ModelPlan, ...]
    totals: ModelPlan  # a run of two labels counted once
    seconds: float | None  # wall time, loading and report included
    peak_memory_bytes: int | None  # of the largest runs at once
    unmeasured: tuple[str, ...]  # labels
    resolution: Resolution | None


def planned_device(folder: StudyFolder) -> str:
    """Where the study will be computed, as far as that is known without torch."""
    if folder.study.device != "auto":
        return folder.study.device
    try:
        return Execution.model_validate_json((folder.store.folder / "execution.json").read_bytes()).device
    except (OSError, ValueError):
        return "cuda" if Path("/dev/nvidia0").exists() else "cpu"


def plan(folder: StudyFolder, workers: int, *, deviation: float | None) -> Plan:
    """The forecast, from earlier runs' costs and records alone. `deviation` is a stated one, as a share of images."""
    device, known = planned_device(folder), costs.read(folder.store.folder.parent)
    ended = folder.store.ids()
    to_do = [run for run in distinct(folder.runs) if run.spec.run_id not in ended]
    workers = min(workers, max(1, len(to_do)))
    each = {run.spec.run_id: expected(run, folder.resolved, known, device, shared=workers > 1) for run in to_do}
    states, total = counts(folder, [])
    models = tuple(_of_model(label, count, [each[run.spec.run_id] for run in folder.runs
                                            if run.label == label and run.spec.run_id in each])
                   for label, count in states.items())
    seconds, peaks = together(each, workers), [one.peak_memory_bytes for one in each.values() if one is not None]
    beside = (known.start_seconds or 0) + (known.closing_seconds or 0) if to_do else 0
    return Plan(
        folder.name, device, workers, tuple(_shares(folder)), models, _of_model("all", total, list(each.values())),
        None if seconds is None else beside + seconds, None if seconds is None else peak_bytes(peaks, workers),
        tuple(model.label for model in models if model.to_do and model.seconds is None),
        _resolution(folder, ended, deviation))


def _of_model(label: str, states: Counter[str], left: list[Expected | None]) -> ModelPlan:
    known = [one for one in left if one is not None]
    whole = len(known) == len(left)
    return ModelPlan(label, states.total(), states["done"], states["failed"], states["to do"],
                     sum(one.seconds for one in known) if whole else None,
                     max((one.peak_memory_bytes for one in known), default=0) if whole else None)


def _shares(folder: StudyFolder) -> list[dict[str, Any]]:
    counts = {run.spec.share: counts_of(run, folder.resolved) for run in folder.runs}
    return [{"share": share, "drawn_images": sum(count.drawn), "train_images": sum(count.train),
             "val_images": sum(count.validation), "least_per_class": min(count.drawn),
             "most_per_class": max(count.drawn)} for share, count in counts.items()]


def _resolution(folder: StudyFolder, ended: set[str], deviation: float | None) -> Resolution | None:
    on_record = [run for run in folder.runs if run.spec.run_id in ended][:MOST_RECORDS]
    frame = build(folder.name, on_record, folder.store.read, folder.resolved, folder.study.fit) \
        if on_record and deviation is None else None
    return resolution(len(folder.study.seeds), stated=deviation, earlier=frame)
