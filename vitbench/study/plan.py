"""What a study will take before it runs: runs to do and done, seconds, memory, and what its seeds can show."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitbench.config.controls import MAIN
from vitbench.grid import counts_of
from vitbench.record import Execution
from vitbench.study import costs
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import Expected, forecasts, peak_bytes, search_forecasts, wall_seconds
from vitbench.study.place import Placement
from vitbench.study.progress import counts
from vitbench.study.resolution import Resolution, resolution
from vitbench.study.searches import once
from vitbench.study.slow import too_slow

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
    trials: int  # of the tuning, to do
    seconds: float | None  # wall time, loading and report included
    peak_memory_bytes: int | None  # of the largest runs at once
    unmeasured: tuple[str, ...]  # labels
    too_slow: str | None  # the slowest run whose forecast is beyond what a run may take, and what would fit
    resolution: Resolution | None


def planned_placement(folder: StudyFolder, *, workers: int | None, runs_per_device: int) -> Placement:
    """Where the study will be computed, as far as that is known without torch."""
    devices, device = len(list(Path("/dev").glob("nvidia[0-9]*"))), folder.study.device
    if device == "auto":
        try:
            device = Execution.model_validate_json((folder.store.folder / "execution.json").read_bytes()).device  # type: ignore[assignment]
        except (OSError, ValueError):
            device = "cuda" if devices else "cpu"
    return Placement.of(device, devices, workers=workers, runs_per_device=runs_per_device, runs=len(folder.left()))


def plan(folder: StudyFolder, placement: Placement, *, deviation: float | None) -> Plan:
    """The forecast, from earlier runs' costs and records alone. `deviation` is a stated one, as a share of images.

    Raises BudgetTooSmall.
    """
    known = costs.read(folder.store.folder.parent)
    ended, left = folder.ended(), [run.key for run in folder.left()]
    # Of two labels for one run both have it in their rows, and all in one.
    each = forecasts((run for run in folder.runs if run.pending or run.spec.run_id not in ended), folder.resolved,
                     known, placement)
    states, total = counts(folder, [])
    models = tuple(_of_model(label, of_label, [one for key, one in each.items() if key[0] == label])
                   for label, of_label in states.items())
    to_do = [*(each[key] for key in left), *search_forecasts(folder.searches, folder.resolved, known, placement)]
    seconds = wall_seconds(to_do, placement.workers)
    peaks = [run.peak_memory_bytes for run in to_do if run]
    beside = (known.start_seconds or 0) + (known.closing_seconds or 0) if to_do else 0
    return Plan(
        folder.name, placement.device, placement.workers, tuple(_shares(folder)), models,
        _of_model("all", total, [each[key] for key in left]), sum(one.search.left for one in once(folder.searches)),
        None if seconds is None else beside + seconds,
        None if seconds is None else peak_bytes(peaks, placement.workers),
        tuple(model.label for model in models if model.to_do and model.seconds is None),
        too_slow(folder.left(), folder.resolved, {}, known, placement),
        _resolution(folder, deviation))


def _of_model(label: str, states: Counter[str], left: list[Expected | None]) -> ModelPlan:
    known = [one for one in left if one is not None]
    whole = len(known) == len(left)
    return ModelPlan(label, states.total(), states["done"], states["failed"], states["to do"],
                     sum(one.seconds for one in known) if whole else None,
                     max((one.peak_memory_bytes for one in known), default=0) if whole else None)


def _shares(folder: StudyFolder) -> list[dict[str, Any]]:
    # Anchors train on the validation part, too: the share 1 is theirs and the grid's, parted in two ways.
    images = {run.spec.share: counts_of(run, folder.resolved) for run in folder.runs if run.control == MAIN}
    return [{"share": share, "drawn_images": sum(of_share.drawn), "train_images": sum(of_share.train),
             "val_images": sum(of_share.validation), "least_per_class": min(of_share.drawn),
             "most_per_class": max(of_share.drawn)} for share, of_share in images.items()]


def _resolution(folder: StudyFolder, deviation: float | None) -> Resolution | None:
    ended = folder.store.ids()
    on_record = [run for run in folder.runs if run.spec.run_id in ended][:MOST_RECORDS]
    frame = folder.frame(on_record) if on_record and deviation is None else None
    return resolution(len(folder.study.seeds), len(folder.study.looks), stated=deviation, earlier=frame)
