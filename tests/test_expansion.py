"""What a study runs beside its grid: controls, tuned settings, anchors."""

from typing import Any

import pytest

from vitbench.config import Study
from vitbench.config.bands import Band
from vitbench.config.controls import ANCHOR
from vitbench.expansion import expand, tuned_settings
from vitbench.grid import ModelFacts, Resolved, Run, counts_of, distinct
from vitbench.spec import Recipe
from vitbench.streams import Streams

TUNING = {"space": {"learning_rate": [0.001, 0.01]}, "trials": 2}


def study(**changes: Any) -> Study:
    given: dict[str, Any] = {"question": "?", "dataset": "digits", "models": ("linear", "convnet:s"),
                             "fractions": ("0.1", "1"), "seeds": 2, **changes}
    return Study(**given)


def expanded(chosen: Study, bands: dict[str, Band] | None = None, outcomes: Any = None) -> list[Run]:
    facts = {m.label: ModelFacts(versioned=f"{m.name}@1", family="control", options=m.options) for m in chosen.models}
    resolved = Resolved(dataset="digits@1", train_counts=(50, 60), test_images=10, num_classes=2, models=facts,
                        plugins={}, bands=bands or {})
    return expand(chosen, resolved, outcomes)


def control(**changes: Any) -> list[Run]:
    return [run for run in expanded(study(controls=({"name": "c", **changes},))) if run.control == "c"]


def test_the_grid_comes_first_and_keeps_its_ids() -> None:
    plain = expanded(study())
    more = expanded(study(controls=({"name": "c", "data": {"pixels": "shuffled"}},), tuning=TUNING))
    assert more[:8] == plain
    assert {run.control for run in plain} == {""}


@pytest.mark.parametrize(("change", "field", "value"), [
    ({"data": {"pixels": "shuffled"}}, "data.pixels", "shuffled"),
    ({"data": {"label_noise": 0.2}}, "data.label_noise", "0.2"),
    ({"recipe": {"warmup": 0}}, "recipe.warmup", 0.0),
    ({"budget_factor": 4}, "budget.amount", 1200),
])
def test_a_control_changes_one_thing(change: dict[str, Any], field: str, value: object) -> None:
    runs, grid = control(**change), expanded(study())
    assert len(runs) == len(grid) == 8
    for run, before in zip(runs, grid, strict=True):
        outer, inner = field.split(".")
        assert getattr(getattr(run.spec, outer), inner) == value
        assert run.spec.model_dump(exclude={outer}) == before.spec.model_dump(exclude={outer})
        assert run.spec.run_id != before.spec.run_id


def test_a_control_repeats_the_chosen_cells_only() -> None:
    runs = control(recipe={"warmup": 0}, only="model=linear,fraction=1")
    assert [(run.label, run.spec.share, run.spec.seed) for run in runs] == [("linear", "1", 0), ("linear", "1", 1)]


def test_a_grid_of_recipe_values_is_a_control_each() -> None:
    found = expanded(study(controls=({"name": "g", "only": "model=linear", "grid": {
        "learning_rate": [0.001, 0.01, 0.1], "weight_decay": [0, 0.05, 0.1]}},)))[8:]
    assert len({run.control for run in found}) == 9
    assert "g: learning_rate=0.001, weight_decay=0" in {run.control for run in found}
    assert {(run.spec.recipe.learning_rate, run.spec.recipe.weight_decay) for run in found} == {
        (rate, decay) for rate in (0.001, 0.01, 0.1) for decay in (0, 0.05, 0.1)}


def test_held_streams_leave_the_others_to_the_seed() -> None:
    runs = control(streams={"subset": 0}, only="model=linear,fraction=0.1")
    streams = [Streams.of(run.spec) for run in runs]
    assert [(s.subset, s.init, s.order) for s in streams] == [(0, 0, 0), (0, 1, 1)]
    # Of seed 0 nothing changed: it is the grid's own run.
    assert runs[0].spec.run_id == expanded(study())[0].spec.run_id


def test_a_crossed_design_has_every_combination_once() -> None:
    runs = control(crossed={"subset": 5, "init": 5, "order": 2}, only="model=linear,fraction=0.1")
    streams = [Streams.of(run.spec) for run in runs]
    assert {(s.subset, s.init, s.order, s.augment) for s in streams} == {
        (s, i, o, o) for s in range(5) for i in range(5) for o in range(2)}
    assert len(runs) == len({run.spec.run_id for run in runs}) == 50
    assert all(run.spec.seed == s.subset for run, s in zip(runs, streams, strict=True))


def test_a_cell_that_is_not_tuned_yet_is_pending_and_no_run_of_its_own() -> None:
    found = expanded(study(tuning=TUNING))
    tuned = [run for run in found if run.setting == "tuned"]
    assert len(tuned) == 8
    assert all(run.pending for run in tuned)
    assert len(distinct(found)) == 16


def test_tuned_runs_pair_with_default_ones_and_differ_in_the_recipe_alone() -> None:
    outcomes = {("tuned", ("linear", "0.1", "none", "steps:300")): {"learning_rate": 0.01}}
    found = expanded(study(tuning=TUNING), outcomes=outcomes)
    known = [run for run in found if run.setting == "tuned" and not run.pending]
    assert [(run.label, run.spec.share, run.spec.seed) for run in known] == [("linear", "0.1", 0), ("linear", "0.1", 1)]
    for run in known:
        assert run.spec.recipe == Recipe(learning_rate=0.01)
        before = next(one for one in found if one.setting == "default" and one.label == run.label
                      and one.spec.share == run.spec.share and one.spec.seed == run.spec.seed)
        assert run.spec.model_dump(exclude={"recipe"}) == before.spec.model_dump(exclude={"recipe"})


def test_repeated_searches_are_settings_of_their_own() -> None:
    assert tuned_settings(study()) == []
    assert tuned_settings(study(tuning=TUNING)) == ["tuned"]
    assert tuned_settings(study(tuning={**TUNING, "searches": 3})) == ["tuned", "tuned:2", "tuned:3"]


def test_controls_are_of_the_default_setting() -> None:
    found = expanded(study(tuning=TUNING, controls=({"name": "c", "recipe": {"warmup": 0}},)))
    assert {run.setting for run in found if run.control} == {"default"}


def test_an_anchor_has_the_bands_recipe_full_data_and_its_own_seeds() -> None:
    band = Band(dataset="digits@1", family="control", low=0.9, high=0.99, recipe=Recipe(learning_rate=0.02),
                regime="none", steps=700, seeds=3, source="a table", why="as printed")
    runs = [run for run in expanded(study(anchors=("linear",)), {"linear": band}) if run.control == ANCHOR]
    assert [run.spec.seed for run in runs] == [0, 1, 2]
    for run in runs:
        assert (run.label, run.spec.share, run.spec.budget.amount) == ("linear", "1", 700)
        assert run.spec.recipe == band.recipe
        assert run.spec.refit


def test_refit_trains_on_what_validation_was() -> None:
    facts = Resolved(dataset="digits@1", train_counts=(50, 60), test_images=10, num_classes=2, plugins={}, models={
        label: ModelFacts(versioned="linear@1", family="control", options={}) for label in ("linear", "convnet:s")})
    for refit, train, held in ((False, 88, 22), (True, 110, 0)):
        run = expand(study(refit=refit), facts)[2]
        counts = counts_of(run, facts)
        assert (run.spec.share, sum(counts.train), sum(counts.validation)) == ("1", train, held)
