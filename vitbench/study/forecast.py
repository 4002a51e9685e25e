"""What the runs of a study will take: seconds and memory, from what earlier runs took."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vitbench import datasets
from vitbench.cost import ModelCost
from vitbench.grid import Resolved, Run, counts_of
from vitbench.spec import split_version
from vitbench.study.costs import Costs, Rates, kind_of
from vitbench.study.place import Placement
from vitbench.study.searches import Wanted, once
from vitbench.training.schedule import images_evaluated

SHARED_BYTES = 350_000_000  # torch and Lightning, loaded once: a worker's own memory begins where it changes them


@dataclass(frozen=True)
class Expected:
    """One run's forecast."""

    seconds: float
    peak_memory_bytes: int


def image_bytes(resolved: Resolved) -> int:
    """Bytes of one image as a worker holds it, uint8."""
    meta, _ = datasets.resolve(split_version(resolved.dataset)[0], resolved.dataset_options)
    image = meta.image
    return image.channels * image.size**2


def expected(run: Run, resolved: Resolved, costs: Costs, device: str, *, shared: bool) -> Expected | None:
    """Forecast of one run; None where its kind was never measured here. Raises BudgetTooSmall."""
    rates = costs.kinds.get(kind_of(run.spec, device, shared=shared))
    return None if rates is None else at(rates, run, resolved)


def at(rates: Rates, run: Run, resolved: Resolved) -> Expected:
    """Forecast of one run at these rates. Raises BudgetTooSmall."""
    counts = counts_of(run, resolved)
    images = {"train": sum(counts.train), "val": sum(counts.validation), "test": resolved.test_images}
    steps = run.spec.steps(images["train"], rates.macs)
    seconds = (steps * run.spec.recipe.batch(images["train"]) / rates.train_images_per_second
               + images_evaluated(steps, images) / rates.eval_images_per_second + rates.overhead_seconds)
    return Expected(seconds, rates.base_memory_bytes + sum(images.values()) * image_bytes(resolved))


def forecasts(runs: Iterable[Run], resolved: Resolved, costs: Costs,
              placement: Placement) -> dict[tuple[str, ...], Expected | None]:
    """By the runs' keys, in their order."""
    return {run.key: expected(run, resolved, costs, placement.device, shared=placement.shared) for run in runs}


def search_forecasts(searches: Iterable[Wanted], resolved: Resolved, costs: Costs,
                     placement: Placement) -> list[Expected | None]:
    """One for each search that has not ended: its trials wait for each other, each as long as a run of the same cell,
    once for each fold. What is searched may change a trial's pace; the forecast knows the study's own recipe."""
    found: list[Expected | None] = []
    for one in once(searches):
        run = Run(one.search.label, one.search.setting, one.spec)
        each = expected(run, resolved, costs, placement.device, shared=placement.shared)
        trainings = one.search.left * (one.folds[0] * one.folds[1] if one.folds else 1)
        if trainings > 0:
            found.append(each and Expected(each.seconds * trainings, each.peak_memory_bytes))
    return found


def refuse_short_budgets(runs: Iterable[Run], resolved: Resolved, costs: Mapping[str, ModelCost]) -> None:
    """Raise BudgetTooSmall where a budget buys no step. `costs` are by label."""
    for run in runs:
        run.spec.steps(sum(counts_of(run, resolved).train), costs[run.label].macs)


def wall_seconds(runs: Iterable[Expected | None], workers: int) -> float | None:
    """Seconds until runs, started in this order on `workers` workers, have all ended; None where one is unknown."""
    free = [0.0] * workers
    for run in runs:
        if run is None:
            return None
        heapq.heapreplace(free, free[0] + run.seconds)
    return max(free)


def peak_bytes(runs: Iterable[int], workers: int) -> int:
    """Memory of the largest runs at once."""
    return SHARED_BYTES + sum(max(0, run - SHARED_BYTES) for run in heapq.nlargest(workers, runs))
