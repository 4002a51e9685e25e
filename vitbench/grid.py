"""From a Study to its runs: every combination, in the order in which they are done."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from vitbench.config import ModelEntry, Study
from vitbench.regimes import REGIME_VERSIONS
from vitbench.registry import nearest
from vitbench.spec import Budget, Duplicates, Frozen, Recipe, RunSpec, Setting, exact_decimal, split_version


class BadSelection(ValueError):
    """A choice of runs that names no run of the study; the message lists what there is."""


@dataclass(frozen=True)
class Run:
    """A run as a study names it: its specification, and the words of the study that are no part of its numbers."""

    label: str
    setting: Setting
    spec: RunSpec

    @property
    def budget(self) -> str:
        """'steps:300'."""
        return f"{self.spec.budget.unit}:{self.spec.budget.amount}"


class ModelFacts(Frozen):
    """What a study's results must know of a model without importing it."""

    versioned: str
    family: str
    options: dict[str, Any]  # those that differ from the size's own


class Resolved(Frozen):
    """A study's names made definite, written beside its records, so that they are read without any plug-in."""

    dataset: str
    train_counts: tuple[int, ...]
    test_images: int
    num_classes: int
    models: dict[str, ModelFacts]  # by label
    plugins: dict[str, str]  # name -> SHA-256 of the source
    split: str | None = None  # how training and test were parted; None: written before it was kept
    duplicates: Duplicates | None = None


def expand(study: Study, resolved: Resolved) -> list[Run]:
    """All runs, seed by seed, so that a study cut short still has whole comparisons."""
    return list(_expand(study, resolved))


def _expand(study: Study, resolved: Resolved) -> Iterator[Run]:
    shares: list[dict[str, Any]] = [{"fraction": f} for f in study.fractions or ()]
    shares += [{"images_per_class": k} for k in study.images_per_class or ()]
    recipes = {entry.label: recipe_of(study, entry) for entry in study.models}
    for seed, budget, regime, share, entry in product(study.seeds, study.budgets, study.regimes, shares,
                                                      study.models):
        facts = resolved.models[entry.label]
        files = (entry.name.partition("/")[0], study.dataset)
        used = {file: resolved.plugins[file] for file in files if file in resolved.plugins}
        spec = RunSpec(dataset=resolved.dataset, model=facts.versioned, size=entry.size, options=facts.options,
                       seed=seed, recipe=recipes[entry.label], regime=regime, regime_version=REGIME_VERSIONS[regime],
                       budget=Budget(unit=budget.unit, amount=budget.amount), plugins=used, **share)
        yield Run(entry.label, "default", spec)


def distinct(runs: Iterable[Run]) -> list[Run]:
    """One for each run id, the first: labels of one specification share a run."""
    first: dict[str, Run] = {}
    for run in runs:
        first.setdefault(run.spec.run_id, run)
    return list(first.values())


def by_priority(runs: list[Run], priority: Iterable[str]) -> list[Run]:
    """The runs that the first selection names, then those of the next, then the rest, each in their order.

    Raises BadSelection for one that names no run.
    """
    first = [run for selection in priority for run in select(runs, selection)]
    return list({(run.label, run.setting, run.spec.run_id): run for run in [*first, *runs]}.values())


def recipe_of(study: Study, entry: ModelEntry) -> Recipe:
    """The study's recipe with the model's own values. Raises ValidationError for a wrong one."""
    return Recipe.model_validate({**study.recipe.model_dump(), **entry.recipe})


_ONLY = ("model", "fraction", "images_per_class", "seed", "regime", "budget", "setting")


def model_of(run: Run) -> tuple[str, str | None, dict[str, Any]]:
    """Name, size and options: what builds the run's model."""
    return split_version(run.spec.model)[0], run.spec.size, run.spec.options


def select(runs: list[Run], only: str | None) -> list[Run]:
    """Runs that match 'model=convnet:s,fraction=0.1'; a key given twice allows both. Raises BadSelection."""
    if not only:
        return runs
    wanted: dict[str, set[str]] = {}
    for part in only.split(","):
        key, equals, value = (text.strip() for text in part.partition("="))
        if not equals or key not in _ONLY:
            raise BadSelection(f"{part!r}: write key=value with a key of {', '.join(_ONLY)}.{nearest(key, _ONLY)}")
        if key == "fraction":
            with contextlib.suppress(ValueError):
                value = exact_decimal(value)  # so that 0.10 finds 0.1
        wanted.setdefault(key, set()).add(value)
    for key, values in wanted.items():
        known = sorted({_value(run, key) for run in runs} - {"None"})
        for value in values - set(known):
            raise BadSelection(f"{key}={value}: this study has {', '.join(known) or 'none'}.{nearest(value, known)}")
    return [run for run in runs if all(_value(run, key) in values for key, values in wanted.items())]


def _value(run: Run, key: str) -> str:
    return str({"model": run.label, "fraction": run.spec.fraction, "images_per_class": run.spec.images_per_class,
                "seed": run.spec.seed, "regime": run.spec.regime, "budget": run.budget,
                "setting": run.setting}[key])
