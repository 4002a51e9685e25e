"""How many images with random labels a model learns by heart in a given budget."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import altair as alt
import numpy as np
from pydantic import Field

from vitbench import datasets, models, subset
from vitbench.probes import PROBES, ROWS, WIDTH, Column, Look, Measured, ProbeError, ProbeMeta
from vitbench.probes._figure import by_kind
from vitbench.report.palette import QUIET
from vitbench.spec import Budget, Frozen, Positive, Recipe, RunSpec, Seed, named_version


class Options(Frozen):
    """Numbers of images rise; models are name:size. Nothing regularises but the clipped gradient."""

    images: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1, max_length=64, strict=False)] = (
        32, 64, 128, 256, 512, 1024)
    models: Annotated[tuple[str, ...], Field(min_length=1, max_length=8, strict=False)] = (
        "linear", "mlp:s", "convnet:xs", "convnet:s", "token_transformer:xs", "token_transformer:s")
    steps: Annotated[int, Field(ge=1, le=10**6)] = 300
    batch_size: Annotated[int, Field(ge=1, le=65536)] = 64
    learning_rate: Positive = 3e-3
    threshold: Annotated[float, Field(gt=0, le=1, description="training accuracy from which on n images are known by "
                                                              "heart")] = 0.99
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1, max_length=100, strict=False)] = (0, 1)
    dataset: str = "digits"


@dataclass(frozen=True)
class Task:
    """What a model is to learn: images whose labels are drawn."""

    spec: RunSpec
    arrays: datasets.Arrays  # without test images, labels random
    order_N: subset.Ints  # of the training split; the first n are learned

    def accuracy(self, images: int) -> tuple[float | None, int]:
        """Training accuracy on the first `images` after the budget, None where it diverged; and parameters."""
        import torch

        from vitbench.training.run import classifier, fit

        cpu, chosen = torch.device("cpu"), subset.Subset(np.sort(self.order_N[:images]), self.order_N[:0])
        module, counted = classifier(self.spec, self.arrays, chosen, cpu, lambda _point: None)
        fit(module, [module.steps], cpu)
        if module.diverged_at is not None:
            return None, counted.params
        labels_N = module.data.train.labels_N
        return float((module.last_logits["train"].argmax(axis=1) == labels_N).mean()), counted.params


@PROBES.add("memorisation", ProbeMeta(
    statement="A network can learn random labels by heart: it has room for more than the data's regularities.",
    source="Zhang et al. 2017, section 2", looks_at=("mechanism",), options=Options))
def memorisation(look: Look) -> Measured:
    """For each model rising numbers of images, up to the first that it does not learn by heart under every seed."""
    _refuse_unfit(look.options)
    rows = [row for model in look.options.models for row in _of_model(look, model)]
    return Measured(COLUMNS, rows, _figure(look.options), _summary(rows, look.options))


def _refuse_unfit(options: Options) -> None:
    if list(options.images) != sorted(set(options.images)):
        raise ProbeError(f"images: should rise; found {', '.join(map(str, options.images))}")
    meta = datasets.DATASETS.get(options.dataset).meta
    there = sum(meta.train_counts)
    if options.images[-1] > there:
        raise ProbeError(f"images: {options.dataset} has {there:,} training images; found {options.images[-1]:,}")
    for model in options.models:
        name, _, size = model.partition(":")
        full, _ = models.resolve(name, size or None, {})
        models.MODELS.get(name).meta.check(full, meta.image)


def random_labels(count: int, num_classes: int, seed: int) -> datasets.UInt8:
    """Labels of a stream of their own, each class alike likely whatever the image; the first n are the same for any
    count."""
    return np.random.default_rng((LABELS, seed)).integers(num_classes, size=count).astype(np.uint8)


LABELS, IMAGES = 0x1ABE15, 0x1A6E5  # streams of their own


def tasks(look: Look, model: str) -> Iterator[Task]:
    """One a seed: images and labels are the same for every model, and a smaller number's lie inside a larger one's."""
    options = look.options
    name, _, size = model.partition(":")
    meta, arrays = datasets.DATASETS.get(options.dataset).meta, datasets.load(options.dataset).without_test()
    recipe = Recipe(learning_rate=options.learning_rate, batch_size=options.batch_size, weight_decay=0)
    for seed in options.seeds:
        spec = RunSpec(dataset=named_version(options.dataset, meta.version), fraction="1", seed=seed, recipe=recipe,
                       model=named_version(name, models.MODELS.get(name).meta.version), size=size or None,
                       budget=Budget(unit="steps", amount=options.steps))
        count = len(arrays.train_labels)
        order_N = np.random.default_rng((IMAGES, seed)).permutation(count)
        labels_N = arrays.train_labels.copy()
        labels_N[order_N] = random_labels(count, meta.num_classes, seed)
        yield Task(spec, replace(arrays, train_labels=labels_N), order_N)


def _of_model(look: Look, model: str) -> list[dict[str, Any]]:
    options, rows, largest = look.options, [], 0
    for images in options.images:
        look.tell(f"{model}: {images} images")
        found = [(task, *task.accuracy(images)) for task in tasks(look, model)]
        known = [accuracy is not None and accuracy >= options.threshold for _, accuracy, _ in found]
        rows += [{"model": model, "parameters": parameters, "images": images, "seed": task.spec.seed,
                  "passes": options.steps * task.spec.recipe.batch(images) / images, "train_accuracy": accuracy,
                  "by_heart": by_heart} for (task, accuracy, parameters), by_heart in zip(found, known, strict=True)]
        if not all(known):
            break
        largest = images
    return [{**row, "largest": largest} for row in rows]


COLUMNS = (
    Column(name="model", unit="", meaning="name:size"),
    Column(name="parameters", unit="", meaning="of the model"),
    Column(name="images", unit="", meaning="n, each with a label drawn at random; none are tried beyond the first n "
                                           "that is not learned by heart"),
    Column(name="seed", unit="", meaning="of images, labels, initialisation and order; the same images and labels for "
                                         "every model"),
    Column(name="passes", unit="", meaning="over the images, that the steps of the budget make"),
    Column(name="train_accuracy", unit="", meaning="on the n images after the last step; missing where it diverged"),
    Column(name="by_heart", unit="", meaning="whether it reaches the threshold"),
    Column(name="largest", unit="images", meaning="the largest n that the model learns by heart under every seed; 0: "
                                                  "none of those tried"))


def _figure(options: Options) -> Any:
    lines = alt.Chart(ROWS).mark_line(point=alt.OverlayMarkDef(filled=True, size=40)).encode(
        x=alt.X("images:Q", scale=alt.Scale(type="log", base=2),
                axis=alt.Axis(title="images with random labels (log scale)", values=list(options.images))),
        y=alt.Y("mean(train_accuracy):Q", axis=alt.Axis(title="training accuracy, mean over seeds"),
                scale=alt.Scale(domain=[0, 1])), **by_kind("model", options.models))
    border = alt.Chart(alt.InlineData([{"y": options.threshold}])).mark_rule(
        strokeDash=[2, 3], color=QUIET).encode(y="y:Q")
    return alt.layer(lines, border).properties(width=WIDTH, height=280)


def _summary(rows: list[dict[str, Any]], options: Options) -> str:
    largest = {row["model"]: row["largest"] for row in rows}
    told = "; ".join(f"{model} {most}{' (the most tried)' if most == options.images[-1] else ''}"
                     for model, most in largest.items())
    return (f"Images with random labels learned by heart in {options.steps} steps of {options.batch_size} "
            f"({options.threshold:.0%} of the labels, {len(options.seeds)} seeds): {told}.")
