"""Simulated studies: rows and hits drawn from a law that is known, so that a rule's errors can be counted."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from vitbench.config import Study
from vitbench.config.controls import MAIN
from vitbench.expansion import expand
from vitbench.grid import ModelFacts, Resolved, Run, counts_of
from vitbench.measurement import Measurement, Value
from vitbench.registry import PluginError
from vitbench.row import Row
from vitbench.spec import sha256_json, split_version
from vitbench.verdicts.evidence import Evidence, models_of

FAMILIES = ("attention", "convolution", "hybrid")
TEST_IMAGES, TRAIN_COUNTS = 1000, (2000,) * 10
PARAMS = {"xs": 20_000, "s": 100_000, "m": 400_000, "l": 1_600_000, "xl": 6_000_000}
# Deviations in units of a probit: an image's difficulty, a model's taste in images, a seed's luck for all models of
# it, a run's own. At 90 % accuracy and 1,000 images a paired difference varies over seeds by about .015.
DIFFICULTY, TASTE, SEED, RUN = 1.0, 0.3, 0.05, 0.08
TOTAL = float(np.sqrt(1 + DIFFICULTY**2 + TASTE**2 + SEED**2 + RUN**2))


@dataclass(frozen=True)
class Cell:
    """What a law may know of a run: everything but its seed. `images` are those drawn of each class."""

    dataset: str
    family: str
    label: str
    size: str | None
    options: Mapping[str, Any]
    images: int
    regime: str
    budget: str
    setting: str


@dataclass(frozen=True)
class Expected:
    """What runs of a cell have on average; shares of images."""

    accuracy: float
    clean_train_accuracy: float = 1.0
    time_harm: float = 0.0
    fit_state: str = "fit"


Law = Callable[[Cell], Expected]
Measure = Callable[[Cell | None, np.random.Generator], Iterable[dict[str, Value]]]
"""The rows that a probe measures on a run of the cell, without the columns that name it; on None, on a mechanism."""


@dataclass(frozen=True)
class Planted:
    """Studies in which the claim is true by construction.

    `study` holds values of a study file in which a model is named by its family. `null` is the law of the studies in
    which the claim must not be found; None means that all models are alike, right for any claim about a difference.
    `probes` are what the claim looks at beside the runs, `null_probes` the same where the claim must not be found.
    `elsewhere` are datasets on which there is a second study of the same grid. An `exact` claim asks for no seeds. An
    `equivalence` is true of models that are alike: its null is an effect exactly at the margin.
    """

    effect: str  # in words
    law: Law
    power: float  # the share of such studies that give `holds`
    study: Mapping[str, Any] = field(default_factory=lambda: {
        "models": ["attention:s", "convolution:s"], "images_per_class": [5, 20, 80], "seeds": 10})
    null: Law | None = None
    probes: Mapping[str, Measure] = field(default_factory=dict)
    null_probes: Mapping[str, Measure] | None = None
    elsewhere: tuple[str, ...] = ()
    exact: bool = False
    equivalence: bool = False

    @property
    def datasets(self) -> tuple[str, ...]:
        """On which there may be another study that the claim looks at: from either of two, the claim sees the other."""
        return (str(self.study.get("dataset")), *self.elsewhere) if self.elsewhere else ()

    def __post_init__(self) -> None:
        if self.equivalence and self.null is None:
            raise PluginError("null: an equivalence needs a law of its own, an effect exactly at the margin; found "
                              "none")
        if not 0.5 <= self.power <= 1:
            raise PluginError(f"power: should be .5 to 1, the share of planted studies that give `holds`; found "
                              f"{self.power!r}")


def simulate(planted: Planted, rng: np.random.Generator, *, null: bool = False, seeds: int | None = None) -> Evidence:
    """One study of the planted effect, or of its null, drawn from `rng`; `seeds` in place of the study's own."""
    changes = {"seeds": seeds} if seeds else {}
    beside = {name: _Draw(planted, rng, null, {**changes, "dataset": name}).evidence() for name in planted.elsewhere}
    return replace(_Draw(planted, rng, null, changes).evidence(),
                   elsewhere=lambda dataset: (beside[dataset],) if dataset in beside else ())


@dataclass(frozen=True)
class _Draw:
    """One study as it is drawn."""

    planted: Planted
    rng: np.random.Generator
    null: bool
    changes: Mapping[str, Any]

    def evidence(self) -> Evidence:
        study, facts, runs = _grid(json.dumps({**self.planted.study, **self.changes}))
        grid = tuple(run for run in runs if run.control == MAIN)
        cells = self._cells(grid, facts)
        rows, hits = self._runs(study, facts, grid, cells)
        sha256 = sha256_json([row.test_accuracy for row in rows])
        measured = self._measured(grid, cells)
        return Evidence(
            study="simulated", rows=rows, planned=grid, correct_I=hits.get, sha256=sha256,
            models=models_of(grid, rows, {label: of.family for label, of in facts.models.items()}),
            beside=tuple(run for run in runs if run.control != MAIN),
            drawn={run.spec.share: counts_of(run, facts).drawn for run in grid},
            space=study.tuning.space if study.tuning else {},
            measured=lambda probe: (measured[probe],) if probe in measured else ())

    def _cells(self, grid: tuple[Run, ...], facts: Resolved) -> tuple[Cell, ...]:
        cells = tuple(_cell(run, facts) for run in grid)
        if self.null and self.planted.null is None:  # nothing but the images tells one from another
            return tuple(replace(cells[0], images=cell.images, dataset=cell.dataset) for cell in cells)
        return cells

    def _runs(self, study: Study, facts: Resolved, grid: tuple[Run, ...],
              cells: tuple[Cell, ...]) -> tuple[tuple[Row, ...], dict[str, npt.NDArray[np.bool_]]]:
        """The runs, and the hits of each for every test image."""
        rng, rows, hits = self.rng, [], {}
        law = self.planted.null if self.null and self.planted.null else self.planted.law
        difficulty_I = rng.normal(0, DIFFICULTY, TEST_IMAGES)
        seed_luck = {seed: rng.normal(0, SEED) for seed in study.seeds}
        taste_I: dict[str, npt.NDArray[np.float64]] = {}
        for run, cell in zip(grid, cells, strict=True):
            expected = law(cell)
            if cell.label not in taste_I:
                taste_I[cell.label] = rng.normal(0, TASTE, TEST_IMAGES)
            luck = seed_luck[run.spec.seed] + rng.normal(0, RUN) + rng.normal(0, 1, TEST_IMAGES)
            hits[run.spec.run_id] = ndtri(expected.accuracy) * TOTAL + difficulty_I + taste_I[cell.label] + luck > 0
            rows.append(_row(run, facts, expected, float(hits[run.spec.run_id].mean()), rng))
        return tuple(rows), hits

    def _measured(self, grid: tuple[Run, ...], cells: tuple[Cell, ...]) -> dict[str, Measurement]:
        """By probe what it measures on a mechanism, and on every run."""
        probes = self.planted.probes
        if self.null and self.planted.null_probes is not None:
            probes = self.planted.null_probes
        ids = tuple(sorted({run.spec.run_id for run in grid}))
        found = {}
        for name, measure in probes.items():
            rows = list(measure(None, self.rng))
            for run, cell in zip(grid, cells, strict=True):
                spec = run.spec
                rows += [{"run": spec.run_id, "label": run.label, "share": spec.share, "seed": spec.seed, **row}
                         for row in measure(cell, self.rng)]
            found[name] = Measurement(probe=name, version=1, statement="simulated", source="simulated", options={},
                                      study="simulated", run_ids=ids, columns=(), rows=tuple(rows),
                                      summary="simulated", figure={}, code_version="simulated")
        return found


@cache
def _grid(values: str) -> tuple[Study, Resolved, tuple[Run, ...]]:
    raw = {"question": "simulated", "dataset": "simulated", **json.loads(values)}
    study = Study.model_validate_json(json.dumps(raw))
    models = {entry.label: ModelFacts(versioned=f"{entry.name}@1", options=entry.options,
                                      family=entry.name if entry.name in FAMILIES else "control")
              for entry in study.models}
    facts = Resolved(dataset=f"{study.dataset.name}@1", train_counts=TRAIN_COUNTS, test_images=TEST_IMAGES, plugins={},
                     num_classes=len(TRAIN_COUNTS), models=models)
    pending = [run for run in expand(study, facts) if run.pending]
    settings = sorted({run.setting for run in pending})
    # Any recipe does, so long as each setting has its own: a law sees the setting, not the recipe.
    tuned = {(run.setting, run.condition): {"learning_rate": 0.01 / (1 + settings.index(run.setting))}
             for run in pending}
    return study, facts, tuple(expand(study, facts, tuned))


def _cell(run: Run, facts: Resolved) -> Cell:
    return Cell(dataset=split_version(facts.dataset)[0], family=facts.models[run.label].family, label=run.label,
                size=run.spec.size, options=run.spec.options, images=min(counts_of(run, facts).drawn),
                regime=run.spec.regime, budget=run.budget, setting=run.setting)


def _row(run: Run, facts: Resolved, expected: Expected, accuracy: float, rng: np.random.Generator) -> Row:
    spec, counts = run.spec, counts_of(run, facts)
    train = sum(counts.train)
    clean_train = float(rng.binomial(train, expected.clean_train_accuracy)) / train
    params = PARAMS.get(spec.size or "s")
    return Row(
        run_id=spec.run_id, study="simulated", label=run.label, dataset=spec.dataset_text, model=spec.model,
        family=facts.models[run.label].family, size=spec.size, options=spec.options, share=spec.share,
        fraction=sum(counts.drawn) / sum(TRAIN_COUNTS), drawn_images=sum(counts.drawn), train_images=train,
        val_images=sum(counts.validation), test_images=TEST_IMAGES, seed=spec.seed, regime=spec.regime,
        budget_unit=spec.budget.unit, budget_amount=spec.budget.amount, setting=run.setting, control=run.control,
        init_seed=spec.seed, order_seed=spec.seed, pixels=spec.data.pixels, label_noise=spec.data.label_noise,
        refit=spec.refit, precision=spec.recipe.precision, outcome="done", reason=None, test_accuracy=accuracy,
        clean_train_accuracy=clean_train, gap=clean_train - accuracy,
        time_harm=expected.time_harm + float(rng.normal(0, 0.005)) if counts.has_validation else None,
        fit_state=expected.fit_state if counts.has_validation else "unknown",
        chance_accuracy=1 / facts.num_classes, params=params, macs=params, device="simulated", numerics=spec.numerics)
