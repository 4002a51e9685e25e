"""What runs took on this machine: measured rates of each kind of run, kept in results/.costs.json."""

import fcntl
import os
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Annotated

from pydantic import Field, ValidationError

from vitbench.environment import processor
from vitbench.record import RunRecord
from vitbench.spec import Frozen, Positive, RunSpec, canonical_json
from vitbench.store import write_atomically
from vitbench.training.schedule import images_evaluated

FILE = ".costs.json"
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Rates(Frozen):
    """Medians over the runs of one kind. `base_memory_bytes` is a worker's peak without its images."""

    train_images_per_second: Positive
    eval_images_per_second: Positive
    overhead_seconds: NotNegative  # beside training and evaluation: fork, data, counting, storing
    base_memory_bytes: Annotated[int, Field(ge=0)]
    macs: Annotated[int, Field(ge=0)]


class Costs(Frozen):
    """Rates by kind of run, and what a study takes beside its runs."""

    machine: str
    kinds: dict[str, Rates] = Field(default_factory=dict)
    start_seconds: NotNegative | None = None  # until the first run can start
    closing_seconds: NotNegative | None = None  # table and page


def machine() -> str:
    """What rates belong to: processor, cores and torch's version, without a name."""
    return f"{processor()}, {os.cpu_count()} cores, torch {version('torch')}"


def kind_of(spec: RunSpec, device: str, *, shared: bool) -> str:
    """What decides a run's rates: not its seed, share or budget."""
    recipe = spec.recipe
    options = " ".join(f"{key}={canonical_json(value)}" for key, value in sorted(spec.options.items()))
    parts = [f"{spec.model}:{spec.size or ''}", options, spec.dataset_text, spec.regime,
             f"batch {recipe.batch_size} {recipe.precision} {recipe.optimizer}",
             f"{device} {'shared' if shared else 'alone'}",
             *(f"{name}={digest[:16]}" for name, digest in sorted(spec.plugins.items()))]
    return " | ".join(part for part in parts if part)


def rates_of(record: RunRecord, seconds: float, image_bytes: int) -> Rates:
    """Rates of one run that took `seconds` in the driver's eyes and holds images of `image_bytes` each."""
    cost, data = record.cost, record.data
    images = {"train": data.train_images, "val": data.val_images, "test": data.test_images}
    evaluated = images_evaluated(record.curves.step[-1], images)
    return Rates(train_images_per_second=cost.train_images_per_second,
                 eval_images_per_second=evaluated / max(cost.eval_seconds, 1e-6),
                 overhead_seconds=max(0.0, seconds - cost.train_seconds - cost.eval_seconds),
                 base_memory_bytes=max(0, cost.peak_memory_bytes - sum(images.values()) * image_bytes),
                 macs=cost.macs)


def together(measured: Iterable[Rates]) -> Rates:
    """One for runs of one kind: medians, the largest memory."""
    found = list(measured)
    return Rates(train_images_per_second=median(r.train_images_per_second for r in found),
                 eval_images_per_second=median(r.eval_images_per_second for r in found),
                 overhead_seconds=median(r.overhead_seconds for r in found),
                 base_memory_bytes=max(r.base_memory_bytes for r in found),
                 macs=found[-1].macs)


def read(results: Path) -> Costs:
    """The costs known under `results`; none where the file is missing, damaged or another machine's."""
    here = machine()
    try:
        found = Costs.model_validate_json((results / FILE).read_bytes())
    except (OSError, ValidationError):
        return Costs(machine=here)
    return found if found.machine == here else Costs(machine=here)


def keep(results: Path, measured: Mapping[str, list[Rates]], *, start_seconds: float | None = None,
         closing_seconds: float | None = None) -> None:
    """Put newly measured rates in the place of older ones. A disk that refuses costs only the forecast."""
    try:
        os.makedirs(results, exist_ok=True)
        with (results / f"{FILE}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two studies of one folder may end at once
            known = read(results)
            new = {"kinds": known.kinds | {kind: together(rates) for kind, rates in measured.items() if rates},
                   "start_seconds": start_seconds or known.start_seconds,
                   "closing_seconds": closing_seconds or known.closing_seconds}
            write_atomically(results / FILE, known.model_copy(update=new).model_dump_json(indent=1) + "\n")
    except OSError:
        return
