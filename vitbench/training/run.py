"""run_one: from a RunSpec to its record and test logits."""

import hashlib
import logging
import resource
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch

from vitbench import cost, datasets, models, subset
from vitbench.metrics.classification import correct
from vitbench.nn.stochastic_depth import set_stochastic_depth
from vitbench.record import Cost, Curves, Data, Execution, Final, RunRecord, pack_hits
from vitbench.regimes import STOCHASTIC_DEPTH, augmentation_text, regularisers_of
from vitbench.spec import RunSpec, split_version
from vitbench.streams import Streams
from vitbench.training.augment import Augmentation
from vitbench.training.data import Resident, Segments
from vitbench.training.module import Classifier, Point, metrics_of
from vitbench.training.schedule import curve_points

PROBE_TEST_IMAGES = 256

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Finished:
    """What a run hands to the store: test logits are None where it diverged."""

    record: RunRecord
    logits_IC: np.ndarray | None
    index_file: dict[str, object]


def run_one(spec: RunSpec, place: Execution, *, shared: bool = False, probe: bool = False,
            on_start: Callable[[int], object] = lambda _steps: None,
            on_point: Callable[[Point], object] = lambda _point: None) -> Finished:
    """Train and measure one run on `place.device`. Draws nothing that depends on what ran before.

    A probe looks at few test images: its record tells what a run costs, and nothing else.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    _prepare_torch(place)
    device = torch.device(place.device)
    streams = Streams.of(spec)
    name, _ = split_version(spec.dataset)
    meta = datasets.DATASETS.get(name).meta
    arrays = _few(datasets.load(name)) if probe else datasets.load(name)
    wanted = subset.counts(meta.train_counts, fraction=spec.fraction, images_per_class=spec.images_per_class)
    chosen = subset.draw(arrays.train_labels, wanted, streams.subset_rng())
    model_name, _ = split_version(spec.model)
    entry = models.MODELS.get(model_name).meta
    layout = _memory_format(entry.family, device)
    augmentation = Augmentation.of(spec.regime, meta, streams, device)
    data = Resident(arrays, chosen, streams, spec.recipe, device, layout, augmentation=augmentation)
    options, _ = models.resolve(model_name, spec.size, spec.options)

    def build() -> torch.nn.Module:
        return models.build(model_name, spec.size, spec.options, meta.image, meta.num_classes)

    counted = cost.count(build, meta.image)
    torch.manual_seed(streams.init_seed())
    model = build().to(memory_format=layout)
    deep = spec.regime == "strong" and set_stochastic_depth(model, STOCHASTIC_DEPTH, meta.image)
    steps = spec.steps(len(chosen.train), counted.macs)
    module = Classifier(model, data, spec.recipe, streams.step_seeds(steps), on_point)
    on_start(steps)
    _fit(module, curve_points(steps), device)

    logits_IC = module.last_logits["test"] if module.diverged_at is None else None
    record = RunRecord(
        run_id=spec.run_id, spec=spec, family=entry.family,
        outcome="done" if module.diverged_at is None else "diverged",
        reason=None if module.diverged_at is None else
        f"loss, gradient or logits not finite at the curve point after step {module.diverged_at:,} of {steps:,}",
        data=Data(drawn_images=len(chosen.drawn), train_images=len(chosen.train), val_images=len(chosen.validation),
                  test_images=len(arrays.test_labels), num_classes=meta.num_classes, subset=chosen.sha256,
                  dataset_sha256=meta.sha256),
        card={**entry.card(options, meta.image), **_regime_card(spec, meta, deep=deep)},
        cost=_cost(module, counted, device, seconds=time.perf_counter() - clock, shared=shared),
        curves=_curves(module.points), final=_final(module), **_predictions(logits_IC, arrays.test_labels),
        execution=place, started=started.isoformat(timespec="seconds"),
        finished=datetime.now(UTC).isoformat(timespec="seconds"))
    return Finished(record, logits_IC, subset.index_file(chosen, spec.dataset, spec.share, streams.subset,
                                                         len(arrays.train_labels)))


def _regime_card(spec: RunSpec, meta: datasets.DatasetMeta, *, deep: bool) -> dict[str, str]:
    """What is on (protocol rule 8), and what was done to the images. `deep`: the model has stochastic depth."""
    if spec.regime == "none":
        return {"regularisers": spec.recipe.regularisers}
    of_recipe = [text for text in [spec.recipe.regularisers] if text != "none"]
    return {"regularisers": ", ".join([*of_recipe, *regularisers_of(spec.regime, deep=deep)]) or "none",
            "augmentation": augmentation_text(spec.regime, meta.keeps_labels, meta.image)}


def _cost(module: Classifier, counted: cost.ModelCost, device: torch.device, *, seconds: float, shared: bool) -> Cost:
    images_seen = module.steps_done * module.data.batch_size
    return Cost(params=counted.params, macs=counted.macs, activations=counted.activations,
                train_images_per_second=_rounded(images_seen / max(module.train_seconds, 1e-9)),
                peak_memory_bytes=_peak_memory(device), train_seconds=_rounded(module.train_seconds),
                eval_seconds=_rounded(module.eval_seconds), seconds=_rounded(seconds), shared=shared)


def _predictions(logits_IC: np.ndarray | None, labels_I: np.ndarray) -> dict[str, Any]:
    if logits_IC is None:
        return {}
    return {"predictions_sha256": hashlib.sha256(logits_IC.tobytes()).hexdigest(),
            "test_correct": pack_hits(correct(logits_IC, labels_I))}


def _few(arrays: datasets.Arrays) -> datasets.Arrays:
    return replace(arrays, test_images=arrays.test_images[:PROBE_TEST_IMAGES],
                   test_labels=arrays.test_labels[:PROBE_TEST_IMAGES])


def _memory_format(family: str, device: torch.device) -> torch.memory_format:
    # Tensor cores want channels last; on a CPU it would change bits and gains little on small images.
    convolves = family in ("convolution", "hybrid")
    return torch.channels_last if device.type == "cuda" and convolves else torch.contiguous_format


def _prepare_torch(place: Execution) -> None:
    torch.set_num_threads(place.threads)
    torch.use_deterministic_algorithms(place.deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # costs time, guards nothing here
    torch.set_flush_denormal(True)  # Adam's averages of units that fell silent would slow a run down


def _fit(module: Classifier, points: list[int], device: torch.device) -> None:
    with warnings.catch_warnings():
        # The loader holds numbers, not images: what Lightning advises about workers does not apply.
        warnings.filterwarnings("ignore", module="pytorch_lightning")
        trainer = pl.Trainer(accelerator="gpu" if device.type == "cuda" else "cpu", devices=1,
                             max_epochs=len(points), logger=False, enable_checkpointing=False,
                             enable_progress_bar=False, enable_model_summary=False)
        trainer.fit(module, Segments(points))


def _final(module: Classifier) -> Final:
    """Metrics on all images of each part after the last step; empty where the run diverged."""
    columns = {}
    for name, logits_IC in module.last_logits.items():
        columns[f"{name}_loss"], columns[f"{name}_accuracy"] = metrics_of(logits_IC, module.data.parts[name].labels_N)
    return Final(**columns) if module.diverged_at is None else Final()


def _curves(points: Iterable[Point]) -> Curves:
    """Columns to 6 significant digits; no validation column where there is no validation."""
    points = list(points)
    columns: dict[str, Any] = {}
    for column in (field.name for field in fields(Point)):
        values = [getattr(point, column) for point in points]
        columns[column] = None if None in values else tuple(map(_rounded, values))
    if not points:
        columns |= {"val_loss": None, "val_accuracy": None}
    return Curves(**columns)


def _rounded(value: float) -> float:
    """6 significant digits; whole numbers as they are."""
    return value if isinstance(value, int) else float(f"{value:.6g}")


def _peak_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
