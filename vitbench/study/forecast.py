"""What the runs of a study will take: seconds and memory, from what earlier runs took."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vitbench.datasets import DATASETS
from vitbench.grid import Resolved, Run
from vitbench.report.frame import counts_of
from vitbench.spec import split_version
from vitbench.study.costs import Costs, kind_of
from vitbench.training.schedule import images_evaluated


@dataclass(frozen=True)
class Expected:
    """One run's forecast."""

    seconds: float
    peak_memory_bytes: int


def image_bytes(resolved: Resolved) -> int:
    """Bytes of one image as a worker holds it, uint8."""
    image = DATASETS.get(split_version(resolved.dataset)[0]).meta.image
    return image.channels * image.size**2


def expected(run: Run, resolved: Resolved, costs: Costs, device: str, *, shared: bool) -> Expected | None:
    """Forecast of one run; None where its kind was never measured here."""
    rates = costs.kinds.get(kind_of(run.spec, device, shared=shared))
    if rates is None:
        return None
    counts = counts_of(run, resolved)
    images = {"train": sum(counts.train), "val": sum(counts.validation), "test": resolved.test_images}
    batch = min(run.spec.recipe.batch_size, images["train"])
    steps = run.spec.budget.steps(images["train"], batch, rates.macs)
    seconds = (steps * batch / rates.train_images_per_second
               + images_evaluated(steps, images) / rates.eval_images_per_second + rates.overhead_seconds)
    return Expected(seconds, rates.base_memory_bytes + sum(images.values()) * image_bytes(resolved))


def wall_seconds(runs: Iterable[float], workers: int) -> float:
    """Seconds until runs, started in this order on `workers` workers, have all ended."""
    free = [0.0] * workers
    for seconds in runs:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def together(runs: Mapping[str, Expected | None], workers: int) -> float | None:
    """Wall time of runs in this order; None where one was never measured."""
    known = [run.seconds for run in runs.values() if run is not None]
    return wall_seconds(known, workers) if len(known) == len(runs) else None


def peak_bytes(runs: Iterable[int], workers: int) -> int:
    """Memory of the largest runs at once."""
    return sum(heapq.nlargest(workers, runs))
