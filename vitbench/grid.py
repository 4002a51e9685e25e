"""The runs of a study: how they are named, chosen and put into order."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import Field

from vitbench import subset
from vitbench.config.bands import Band
from vitbench.config.controls import MAIN, NO_CONTROL
from vitbench.registry import nearest
from vitbench.spec import Duplicates, Frozen, RunSpec, exact_decimal, split_version, with_options


class BadSelection(ValueError):
    """A choice of runs that names no run of the study; the message lists what there is."""


@dataclass(frozen=True)
class Run:
    """A run as a study names it: its specification, and the words of the study that are no part of its numbers."""

    label: str
    setting: str  # default, or tuned; of several searches tuned, tuned:2, ...
    spec: RunSpec
    control: str = MAIN  # the control that asks for it, or `anchor`
    pending: bool = False  # its cell is not tuned yet: `spec` stands in for one that is not known
    origin: "Condition | None" = None  # of a control: the default cell that it repeats

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names the run within its study; a run id alone may stand under two labels."""
        return self.label, self.setting, self.control, self.spec.run_id

    @property
    def budget(self) -> str:
        """'steps:300'."""
        return f"{self.spec.budget.unit}:{self.spec.budget.amount}"

    @property
    def condition(self) -> "Condition":
        """What names the cell within its study, but for the control."""
        return self.label, self.spec.share, self.spec.regime, self.budget


Condition = tuple[str, str, str, str]  # label, share, regime, budget


class ModelFacts(Frozen):
    """What a study's results must know of a model without importing it."""

    versioned: str
    family: str
    options: dict[str, Any]  # those that differ from the size's own
    full_options: dict[str, Any] = Field(default_factory=dict)  # all of them; empty: written before it was kept


class Resolved(Frozen):
    """A study's names made definite, written beside its records, so that they are read without any plug-in."""

    dataset: str
    dataset_options: dict[str, Any] = Field(default_factory=dict)  # those that differ from the dataset's own
    train_counts: tuple[int, ...]
    test_images: int
    num_classes: int
    models: dict[str, ModelFacts]  # by label
    plugins: dict[str, str]  # name -> SHA-256 of the source
    bands: dict[str, Band] = Field(default_factory=dict)  # of the anchors, by label
    split: str | None = None  # how training and test were parted; None: written before it was kept
    duplicates: Duplicates | None = None

    @property
    def dataset_text(self) -> str:
        """The dataset with its options."""
        return with_options(self.dataset, self.dataset_options)


def counts_of(run: Run, resolved: Resolved) -> subset.Counts:
    """Images of each class that a run draws and how it parts them, known before it trains."""
    return carved(run, resolved).refitted() if run.spec.refit else carved(run, resolved)


def carved(run: Run, resolved: Resolved) -> subset.Counts:
    """The same with validation carved out, whether or not the run trains on it."""
    return _counts(resolved.train_counts, run.spec.fraction, run.spec.images_per_class)


@cache
def _counts(train_counts: tuple[int, ...], fraction: str | None, images_per_class: int | None) -> subset.Counts:
    return subset.counts(train_counts, fraction=fraction, images_per_class=images_per_class)


def distinct(runs: Iterable[Run]) -> list[Run]:
    """One for each run id, the first: labels of one specification share a run. Of pending ones each is its own."""
    first: dict[object, Run] = {}
    for run in runs:
        first.setdefault(run.key if run.pending else run.spec.run_id, run)
    return list(first.values())


def by_priority(runs: list[Run], priority: Iterable[str]) -> list[Run]:
    """The runs that the first selection names, then those of the next, then the rest, each in their order.

    Raises BadSelection for one that names no run.
    """
    first = [run for selection in priority for run in select(runs, selection)]
    return list({run.key: run for run in [*first, *runs]}.values())


_ONLY = ("model", "fraction", "images_per_class", "seed", "regime", "budget", "setting", "control")


def model_of(run: Run) -> tuple[str, str | None, dict[str, Any]]:
    """Name, size and options: what builds the run's model."""
    return split_version(run.spec.model)[0], run.spec.size, run.spec.options


def select(runs: list[Run], only: str | None) -> list[Run]:
    """Runs that match 'model=convnet:s,fraction=0.1'; a key given twice allows both. Raises BadSelection."""
    if not only:
        return runs
    wanted: dict[str, set[str]] = {}
    for key, value in _pairs(only, runs):
        if key == "fraction":
            with contextlib.suppress(ValueError):
                value = exact_decimal(value)  # noqa: PLW2901 - so that 0.10 finds 0.1
        wanted.setdefault(key, set()).add(value)
    for key, values in wanted.items():
        known = _known(runs, key)
        for value in values - set(known):
            raise BadSelection(f"{key}={value}: this study has {', '.join(known) or 'none'}.{nearest(value, known)}")
    found = [run for run in runs if all(_value(run, key) in values for key, values in wanted.items())]
    if runs and not found:
        raise BadSelection(f"{only!r}: runs of the study match each part of it, and none matches all of them")
    return found


def _pairs(only: str, runs: list[Run]) -> Iterator[tuple[str, str]]:
    """The keys and values of a selection. A comma may be part of a name, as in 'control=grid: warmup=0, momentum=0'."""
    parts = only.split(",")
    while parts:
        part = parts.pop(0)
        key, equals, value = (text.strip() for text in part.partition("="))
        if not equals or key not in _ONLY:
            raise BadSelection(f"{part!r}: write key=value with a key of {', '.join(_ONLY)}.{nearest(key, _ONLY)}")
        known = _known(runs, key)
        for more in range(len(parts), 0, -1):  # the longest name that there is
            if (longer := ",".join([value, *parts[:more]]).strip()) in known:
                value, parts = longer, parts[more:]
                break
        yield key, value


def _known(runs: list[Run], key: str) -> list[str]:
    return sorted({_value(run, key) for run in runs} - {"None"})


def _value(run: Run, key: str) -> str:
    return str({"model": run.label, "fraction": run.spec.fraction, "images_per_class": run.spec.images_per_class,
                "seed": run.spec.seed, "regime": run.spec.regime, "budget": run.budget,
                "setting": run.setting, "control": run.control or NO_CONTROL}[key])
