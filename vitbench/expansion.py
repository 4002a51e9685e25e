"""From a Study to its runs: every combination, in the order in which they are done."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from vitbench.config import ModelEntry, Study
from vitbench.config.controls import ANCHOR, Control, StreamChanges
from vitbench.grid import Condition, Resolved, Run, select
from vitbench.regimes import REGIME_VERSIONS
from vitbench.spec import Budget, Recipe, RunSpec

Outcomes = Mapping[tuple[str, Condition], Mapping[str, Any]]
"""By setting and cell, the recipe values that a search found best."""


def expand(study: Study, resolved: Resolved, outcomes: Outcomes | None = None) -> list[Run]:
    """All runs: the grid seed by seed, so that a study cut short still has whole comparisons, then its controls,
    then its anchors. Raises BadSelection for a control or tuning of cells that the grid lacks."""
    default = default_runs(study, resolved)
    found = default + list(_tuned(study, default, outcomes or {}))
    for control in (variant for one in study.controls for variant in one.variants()):
        found += controlled(control, default)
    return found + list(_Grid(study, resolved).anchors())


def default_runs(study: Study, resolved: Resolved) -> list[Run]:
    """The grid itself in the default setting, in its order: what controls and tuning repeat."""
    return list(_Grid(study, resolved).default())


@dataclass(frozen=True)
class _Grid:
    study: Study
    resolved: Resolved

    @cached_property
    def entries(self) -> dict[str, ModelEntry]:
        return {entry.label: entry for entry in self.study.models}

    def default(self) -> Iterator[Run]:
        study = self.study
        shares: list[dict[str, Any]] = [{"fraction": f} for f in study.fractions or ()]
        shares += [{"images_per_class": k} for k in study.images_per_class or ()]
        recipes = {entry.label: recipe_of(study, entry) for entry in study.models}
        for seed, budget, regime, share, entry in product(study.seeds, study.budgets, study.regimes, shares,
                                                          study.models):
            yield Run(entry.label, "default", self.spec(
                entry.label, seed=seed, recipe=recipes[entry.label], regime=regime, data=study.data,
                refit=study.refit, budget=Budget(unit=budget.unit, amount=budget.amount), **share))

    def anchors(self) -> Iterator[Run]:
        """Full data under the band's own recipe, beside the grid (protocol rule 19)."""
        for label, band in self.resolved.bands.items():
            for seed in range(band.seeds):
                yield Run(label, "default", self.spec(
                    label, seed=seed, recipe=band.recipe, regime=band.regime, fraction="1", refit=True,
                    budget=Budget(unit="steps", amount=band.steps)), ANCHOR)

    def spec(self, label: str, **values: Any) -> RunSpec:
        entry, facts = self.entries[label], self.resolved.models[label]
        files = (entry.name.partition("/")[0], self.study.dataset.name)
        used = {file: self.resolved.plugins[file] for file in files if file in self.resolved.plugins}
        return RunSpec(dataset=self.resolved.dataset, dataset_options=self.resolved.dataset_options,
                       model=facts.versioned, size=entry.size, options=facts.options,
                       regime_version=REGIME_VERSIONS[values["regime"]], plugins=used, **values)


def _tuned(study: Study, default: list[Run], outcomes: Outcomes) -> Iterator[Run]:
    """The tuned setting of every default run: the same seed, so that both pair (protocol rule 11)."""
    if study.tuning is None:
        return
    for setting in tuned_settings(study):
        for run in select(default, study.tuning.only):
            found = outcomes.get((setting, run.condition))
            recipe = Recipe.model_validate(run.spec.recipe.model_dump() | dict(found or {}))
            yield Run(run.label, setting, run.spec.changed(recipe=recipe), pending=found is None)


def tuned_settings(study: Study) -> list[str]:
    """'tuned' for one search; 'tuned', 'tuned:2', ... for several; none without tuning."""
    searches = study.tuning.searches if study.tuning else 0
    return ["tuned" if i == 0 else f"tuned:{i + 1}" for i in range(searches)]


def controlled(control: Control, default: list[Run]) -> list[Run]:
    """The chosen default runs with the control's change. Raises BadSelection, or ValidationError for a wrong value."""
    chosen = select(default, control.only)
    if control.crossed is not None:
        first = min(run.spec.seed for run in chosen)
        chosen = [run for run in chosen if run.spec.seed == first]  # seeds give way to the design's own
        return [_repeated(control, run, **_crossed(streams)) for run in chosen
                for streams in control.crossed.combinations()]
    return [_repeated(control, run, **_changes(control, run.spec)) for run in chosen]


def _repeated(control: Control, run: Run, **changes: Any) -> Run:
    return Run(run.label, run.setting, run.spec.changed(**changes), control.name, origin=run.condition)


def _changes(control: Control, spec: RunSpec) -> dict[str, Any]:
    if control.data is not None:
        return {"data": spec.data.model_dump() | control.data}
    if control.recipe is not None:
        return {"recipe": spec.recipe.model_dump() | control.recipe}
    if control.streams is not None:
        return {"streams": _beside(control.streams, spec.seed)}
    assert control.budget_factor is not None
    return {"budget": {"unit": spec.budget.unit, "amount": spec.budget.amount * control.budget_factor}}


def _crossed(streams: StreamChanges) -> dict[str, Any]:
    assert streams.subset is not None
    return {"seed": streams.subset, "streams": _beside(streams, streams.subset)}


def _beside(streams: StreamChanges, seed: int) -> dict[str, int]:
    """Only what differs from the run's seed, so that a run of the grid keeps its id."""
    return {name: at for name, at in streams.model_dump().items() if at is not None and at != seed}


def recipe_of(study: Study, entry: ModelEntry) -> Recipe:
    """The study's recipe with the model's own values. Raises ValidationError for a wrong one."""
    return Recipe.model_validate({**study.recipe.model_dump(), **entry.recipe})
