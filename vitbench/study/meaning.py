"""The second pass over a study: what its names and numbers mean for this dataset and these models."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vitbench import datasets, subset
from vitbench.claims import CLAIMS
from vitbench.config import BadStudy, Loaded, Mistake, ModelEntry, Study, mistake
from vitbench.config.bands import Band, band_for, bands
from vitbench.datasets import DatasetMeta
from vitbench.expansion import expand, recipe_of
from vitbench.grid import BadSelection, ModelFacts, Resolved, select
from vitbench.models import MODELS, ModelError, resolve
from vitbench.options import BadOption
from vitbench.regimes import ForbiddenRegime, applied
from vitbench.registry import PluginError, UnknownName, load_plugin, nearest
from vitbench.spec import named_version, with_options
from vitbench.study.beside import control_mistakes
from vitbench.study.memory import allowed_bytes
from vitbench.units import byte_text


def resolved(loaded: Loaded, *, import_plugins: bool) -> tuple[Study, Resolved]:
    """The study and its definite names. Raises BadStudy with the mistakes of both passes in one report."""
    mistakes = list(loaded.mistakes)
    study = loaded.study
    if study is None:
        raise BadStudy(loaded.source, mistakes)
    if study.plugins and not import_plugins:
        mistakes.append(Mistake("plugins", "this command runs no plug-in; `vitbench run` and `vitbench plan "
                                           "--probe` do"))
    else:
        mistakes += _plugin_mistakes(loaded.plugin_files())
    told = {m.path for m in mistakes}
    data, models, second = _meaning(loaded, study)
    second = [m for m in second if m.path not in told]
    # An unknown name may be one that a plug-in should have had: what is wrong with that is told instead.
    mistakes = mistakes + [m for m in second if not m.unknown_name] or second
    if mistakes or data is None:
        raise BadStudy(loaded.source, mistakes)
    dataset, options = data
    versioned = named_version(study.dataset.name, dataset.version)
    anchors, anchor_mistakes = _bands(study, with_options(versioned, options), models)
    names = Resolved(dataset=versioned, dataset_options=options, bands=anchors, train_counts=dataset.train_counts,
                     test_images=sum(dataset.test_counts), num_classes=dataset.num_classes, models=models,
                     plugins=loaded.plugin_hashes(), split=dataset.split, duplicates=dataset.duplicates)
    mistakes = anchor_mistakes + control_mistakes(study, names)
    mistakes += [] if mistakes else _priority_mistakes(study, names)
    if mistakes:
        raise BadStudy(loaded.source, mistakes)
    return study, names


def _bands(study: Study, dataset: str, models: dict[str, ModelFacts]) -> tuple[dict[str, Band], list[Mistake]]:
    """The band of each anchor, by label."""
    found: dict[str, Band] = {}
    mistakes = []
    for position, label in enumerate(study.anchors):
        place, family = f"anchors[{position}]", models[label].family if label in models else ""
        band = band_for(dataset, family)
        known = sorted({of.family for of in bands() if of.dataset == dataset})
        if label not in models:
            mistakes.append(Mistake(place, f"no model of this study has the label {label!r}; there are: "
                                           f"{', '.join(models)}.{nearest(label, models)}"))
        elif band is None:
            mistakes.append(Mistake(place, f"there is no reference band for {family} models on {dataset}; bands of "
                                           f"this dataset: {', '.join(known) or 'none'}"))
        elif family in {models[other].family for other in found}:
            mistakes.append(Mistake(place, f"the family {family} has an anchor already; one model a family"))
        else:
            found[label] = band
    return found, mistakes


Data = tuple[DatasetMeta, dict[str, Any]]  # and the options that differ from the dataset's own


def _meaning(loaded: Loaded, study: Study) -> tuple[Data | None, dict[str, ModelFacts], list[Mistake]]:
    data, mistakes = _data(study)
    dataset, models = data[0] if data else None, {}
    for position, entry in zip(loaded.kept_models, study.models, strict=True):
        place = f"models[{position}]"
        try:
            models[entry.label] = _model_facts(study, entry, dataset)
        except UnknownName as error:
            mistakes.append(_unknown(f"{place}.name", entry.name, error))
        except ModelError as error:
            option, _, message = str(error).partition(": ")
            mistakes.append(Mistake(f"{place}.{option}", message))
        except ValidationError as error:
            mistakes += [mistake(e, ("models", position, "recipe")) for e in error.errors()]
    for position, name in enumerate(study.claims):
        try:
            CLAIMS.get(name)
        except UnknownName as error:
            mistakes.append(_unknown(f"claims[{position}]", name, error))
    return data, models, [*mistakes, *_comparison_mistakes(study)]


def _comparison_mistakes(study: Study) -> Iterator[Mistake]:
    labels = [entry.label for entry in study.models]
    for position, pair in enumerate(study.comparisons):
        place = f"comparisons[{position}]"
        unknown = next((label for label in pair if label not in labels), None)
        if unknown is not None:
            yield Mistake(place, f"no model of this study has the label {unknown!r}; there are: {', '.join(labels)}."
                                 f"{nearest(unknown, labels)}")
        elif pair[0] == pair[1]:
            yield Mistake(place, f"{pair[0]} is compared with itself")
        elif any(set(pair) == set(earlier) for earlier in study.comparisons[:position]):
            yield Mistake(place, f"{' and '.join(pair)} are compared twice")


def _data(study: Study) -> tuple[Data | None, list[Mistake]]:
    name = study.dataset.name
    try:
        dataset, options = datasets.resolve(name, study.dataset.options)
    except UnknownName as error:
        return None, [_unknown("dataset", name, error)]
    except BadOption as error:
        option, _, message = str(error).partition(": ")
        return None, [Mistake(f"dataset.{option}", message)]
    return (dataset, options), [*_size_mistakes(name, dataset), *_share_mistakes(study, dataset),
                                *_regime_mistakes(study, dataset)]


def _size_mistakes(name: str, dataset: DatasetMeta) -> list[Mistake]:
    """A dataset that has no room in memory: it is built there."""
    image, images = dataset.image, sum(dataset.train_counts) + sum(dataset.test_counts)
    needed, allowed = images * image.channels * image.size**2, allowed_bytes()
    if needed <= allowed:
        return []
    return [Mistake("dataset.images" if "images" in dataset.options.model_fields else "dataset",
                    f"{name!r} with {images:,} images of {image.size} x {image.size} x {image.channels} takes "
                    f"{byte_text(needed)}, and {byte_text(allowed)} of memory may be used")]


def _unknown(place: str, name: str, error: UnknownName) -> Mistake:
    # What stands behind a '/' only the plug-in itself knows: no other mistake explains it.
    return Mistake(place, str(error), unknown_name="/" not in name)


def _model_facts(study: Study, entry: ModelEntry, dataset: DatasetMeta | None) -> ModelFacts:
    meta = MODELS.get(entry.name).meta
    recipe_of(study, entry)
    full, options = resolve(entry.name, entry.size, entry.options)
    if dataset:
        meta.check(full, dataset.image)
    regularisers = meta.regularisers_in(full)
    if regularisers and "none" in study.regimes:
        name, amount = next(iter(regularisers.items()))
        raise ModelError(f"{name}: is off in regime none, which compares what models do by themselves (protocol rule "
                         f"8); found {amount:g} with regimes {', '.join(study.regimes)}. Leave one of them out")
    return ModelFacts(versioned=named_version(entry.name, meta.version), family=meta.family_with(full),
                      options=options, full_options=full.model_dump(mode="json"))


def _priority_mistakes(study: Study, names: Resolved) -> list[Mistake]:
    mistakes, runs = [], expand(study, names) if study.priority else []
    for position, selection in enumerate(study.priority):
        try:
            select(runs, selection)
        except BadSelection as error:
            mistakes.append(Mistake(f"priority[{position}]", str(error)))
    return mistakes


def _plugin_mistakes(files: dict[str, Path]) -> list[Mistake]:
    mistakes = []
    for position, path in enumerate(files.values()):
        try:
            load_plugin(path)
        except PluginError as error:
            mistakes.append(Mistake(f"plugins[{position}]", str(error)))
    return mistakes


def _regime_mistakes(study: Study, dataset: DatasetMeta) -> list[Mistake]:
    mistakes = []
    for position, regime in enumerate(study.regimes):
        try:
            applied(regime, dataset.keeps_labels, dataset.image)
        except ForbiddenRegime as error:
            mistakes.append(Mistake(f"regimes[{position}]", str(error)))
    return mistakes


def _share_mistakes(study: Study, dataset: DatasetMeta) -> list[Mistake]:
    """Shares that a class is too small for, and shares that draw what another one draws."""
    wanted = [("fractions", i, {"fraction": f}) for i, f in enumerate(study.fractions or ())]
    mistakes, drawn = [], dict[subset.Counts, object]()
    for key, position, share in wanted + [("images_per_class", i, {"images_per_class": k})
                                          for i, k in enumerate(study.images_per_class or ())]:
        (value,) = share.values()
        try:
            before = drawn.setdefault(subset.counts(dataset.train_counts, **share), value)
        except subset.EmptyClass as error:
            mistakes.append(Mistake(f"{key}[{position}]", str(error)))
        else:
            if before != value:  # the same value twice is the first pass's to report
                mistakes.append(Mistake(f"{key}[{position}]", f"draws the same images as {before}; found {value}"))
    return mistakes
