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
import safetensors.torch
import torch

from vitbench import cost, datasets, models, subset
from vitbench.datasets._variant import varied
from vitbench.metrics.classification import correct
from vitbench.nn.stochastic_depth import set_stochastic_depth, stochastic_depth_of
from vitbench.record import Cost, Curves, Data, Execution, Final, RunRecord, pack_hits
from vitbench.regimes import STOCHASTIC_DEPTH, augmentation_text, regularisers_of
from vitbench.registry import Entry
from vitbench.spec import Frozen, RunSpec, split_version
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
    module: Classifier  # after its last step
    weights: bytes | None = None  # safetensors of the model

    def with_weights(self) -> "Finished":
        """The same with the model's final weights, named in its record by their hash; as it is where it diverged."""
        if self.record.outcome != "done":
            return self
        # Copies: safetensors takes no two names of one memory, and none that lies channels last.
        weights = safetensors.torch.save({name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
                                          for name, tensor in self.module.model.state_dict().items()})
        named = self.record.model_copy(update={"weights_sha256": hashlib.sha256(weights).hexdigest()})
        return replace(self, record=named, weights=weights)


def run_one(spec: RunSpec, place: Execution, *, shared: bool = False, probe: bool = False,
            on_start: Callable[[Classifier], object] = lambda _untrained: None,
            on_point: Callable[[Point], object] = lambda _point: None) -> Finished:
    """Train and measure one run on `place.device`. Draws nothing that depends on what ran before.

    A probe looks at few test images: its record tells what a run costs, and nothing else.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    prepare_torch(place)
    device, arrays = torch.device(place.device), loaded(spec)
    arrays = _few(arrays) if probe else arrays
    chosen = drawn(spec, arrays.train_labels)
    module, counted = classifier(spec, arrays, chosen, device, on_point)
    on_start(module)
    fit(module, curve_points(module.steps), device)

    logits_IC = module.last_logits["test"] if module.diverged_at is None else None
    record = RunRecord(
        run_id=spec.run_id, spec=spec, family=_family(spec),
        outcome="done" if module.diverged_at is None else "diverged",
        reason=None if module.diverged_at is None else
        f"loss, gradient or logits not finite at the curve point after step {module.diverged_at:,} of {module.steps:,}",
        data=_data(spec, module, chosen, arrays.sha256), card=_card(spec, module.model),
        cost=_cost(module, counted, device, seconds=time.perf_counter() - clock, shared=shared),
        curves=_curves(module.points), final=_final(module), **_predictions(logits_IC, module),
        execution=place, started=started.isoformat(timespec="seconds"),
        finished=datetime.now(UTC).isoformat(timespec="seconds"))
    return Finished(record, logits_IC, subset.index_file(
        chosen, spec.dataset, spec.share, Streams.of(spec).subset, len(arrays.train_labels),
        options=spec.dataset_options), module)


def loaded(spec: RunSpec) -> datasets.Arrays:
    """The run's dataset. Raises DatasetError where it cannot be had as declared."""
    return datasets.load(split_version(spec.dataset)[0], spec.dataset_options)


def drawn(spec: RunSpec, labels_N: np.ndarray) -> subset.Subset:
    """The images of a run: a function of dataset, share and seed of the subset alone."""
    wanted = subset.counts(_dataset(spec).train_counts, fraction=spec.fraction, images_per_class=spec.images_per_class)
    return subset.draw(labels_N, wanted, Streams.of(spec).subset_rng())


def classifier(spec: RunSpec, arrays: datasets.Arrays, chosen: subset.Subset, device: torch.device,
               on_point: Callable[[Point], object]) -> tuple[Classifier, cost.ModelCost]:
    """The untrained module of a run with its data and schedule, and what its model costs."""
    meta, streams, (name, _) = _dataset(spec), Streams.of(spec), split_version(spec.model)
    layout = _memory_format(_family(spec), device)
    arrays, seen = varied(arrays, chosen.refitted() if spec.refit else chosen, spec.data, streams, meta.num_classes)
    augmentation = Augmentation.of(spec.regime, meta, streams, device, shuffled=spec.data.pixels == "shuffled")
    data = Resident(arrays, seen, streams, spec.recipe, device, layout, augmentation=augmentation)

    def build() -> torch.nn.Module:
        return models.build(name, spec.size, spec.options, meta.image, meta.num_classes)

    counted = cost.count(build, meta.image)
    torch.manual_seed(streams.init_seed())
    model = build().to(memory_format=layout)
    see_normalisation: Callable[..., object] | None = getattr(model, "see_normalisation", None)
    if see_normalisation is not None:
        see_normalisation(*data.normalisation)
    if spec.regime == "strong":
        set_stochastic_depth(model, STOCHASTIC_DEPTH, meta.image)
    seeds = streams.step_seeds(spec.steps(len(seen.train), counted.macs))
    return Classifier(model, data, spec.recipe, seeds, on_point), counted


def _dataset(spec: RunSpec) -> datasets.DatasetMeta:
    return datasets.resolve(split_version(spec.dataset)[0], spec.dataset_options)[0]


def _model(spec: RunSpec) -> Entry[models.ModelMeta]:
    return models.MODELS.get(split_version(spec.model)[0])


def _options(spec: RunSpec) -> Frozen:
    return models.resolve(split_version(spec.model)[0], spec.size, spec.options)[0]


def _family(spec: RunSpec) -> models.Family:
    return _model(spec).meta.family_with(_options(spec))


def _data(spec: RunSpec, module: Classifier, chosen: subset.Subset, sha256: str) -> Data:
    parts = module.data.parts
    return Data(drawn_images=len(chosen.drawn), train_images=len(parts["train"].labels_N),
                val_images=len(parts["val"].labels_N) if "val" in parts else 0, test_images=len(parts["test"].labels_N),
                num_classes=_dataset(spec).num_classes, subset=chosen.sha256, dataset_sha256=sha256)


def _card(spec: RunSpec, model: torch.nn.Module) -> models.Card:
    """The model's parts, the regularisers that are on (protocol rule 8), and what was done to the images."""
    entry, meta, options = _model(spec), _dataset(spec), _options(spec)
    parts = entry.meta.card(options, meta.image)
    if spec.regime == "none":
        return {**parts, "regularisers": spec.recipe.regularisers}
    own = [f"{name} {amount:g}" for name, amount in entry.meta.regularisers_in(options).items()
           if name != "stochastic_depth"]  # which the next counts, whoever set it
    on = [spec.recipe.regularisers, *own, *regularisers_of(spec.regime, stochastic_depth_of(model))]
    return {**parts, "regularisers": ", ".join(text for text in on if text != "none") or "none",
            "augmentation": augmentation_text(spec.regime, meta.keeps_labels, meta.image)}


def _cost(module: Classifier, counted: cost.ModelCost, device: torch.device, *, seconds: float, shared: bool) -> Cost:
    images_seen = module.steps_done * module.data.batch_size
    return Cost(params=counted.params, macs=counted.macs, activations=counted.activations,
                train_images_per_second=_rounded(images_seen / max(module.train_seconds, 1e-9)),
                peak_memory_bytes=_peak_memory(device), train_seconds=_rounded(module.train_seconds),
                eval_seconds=_rounded(module.eval_seconds), seconds=_rounded(seconds), shared=shared)


def _predictions(logits_IC: np.ndarray | None, module: Classifier) -> dict[str, Any]:
    if logits_IC is None:
        return {}
    labels_I = module.data.parts["test"].labels_N
    return {"predictions_sha256": hashlib.sha256(logits_IC.tobytes()).hexdigest(),
            "test_correct": pack_hits(correct(logits_IC, labels_I))}


def _few(arrays: datasets.Arrays) -> datasets.Arrays:
    return replace(arrays, test_images=arrays.test_images[:PROBE_TEST_IMAGES],
                   test_labels=arrays.test_labels[:PROBE_TEST_IMAGES])


def _memory_format(family: str, device: torch.device) -> torch.memory_format:
    # Tensor cores want channels last; on a CPU it would change bits and gains little on small images.
    convolves = family in ("convolution", "hybrid")
    return torch.channels_last if device.type == "cuda" and convolves else torch.contiguous_format


def prepare_torch(place: Execution) -> None:
    """Threads, determinism and denormals: the same for everything that trains."""
    torch.set_num_threads(place.threads)
    torch.use_deterministic_algorithms(place.deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # costs time, guards nothing here
    torch.set_flush_denormal(True)  # Adam's averages of units that fell silent would slow a run down


def fit(module: Classifier, points: list[int], device: torch.device) -> None:
    """Train for the whole schedule, measuring after each of `points`."""
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
