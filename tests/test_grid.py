from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vitbench.config import Study
from vitbench.expansion import expand, recipe_of
from vitbench.grid import ModelFacts, Resolved, Run, by_priority, select
from vitbench.spec import Recipe

CHOICES: dict[str, Any] = {
    "question": "?", "dataset": "digits", "models": ("linear", "convnet:s"), "fractions": ("0.1", "0.29", "1"),
    "seeds": (3, 1), "budgets": ({"steps": 300}, {"epochs": 5}),
}


def study(**changes: Any) -> Study:
    return Study(**{**CHOICES, **changes})


def runs_of(chosen: Study, plugins: dict[str, str] | None = None) -> list[Run]:
    facts = {m.label: ModelFacts(versioned=f"{m.name}@1", family="control", options=m.options) for m in chosen.models}
    resolved = Resolved(dataset=f"{chosen.dataset.name}@1", train_counts=(50, 60), test_images=10, num_classes=2,
                        models=facts, plugins=plugins or {})
    return expand(chosen, resolved)


def test_every_combination_is_a_run_once() -> None:
    runs = runs_of(study())
    assert len(runs) == 2 * 3 * 2 * 2
    combinations = Counter((r.label, r.spec.share, r.spec.seed, r.budget, r.spec.regime) for r in runs)
    assert set(combinations.values()) == {1}
    assert {r.label for r in runs} == {"linear", "convnet:s"}
    assert {r.spec.share for r in runs} == {"0.1", "0.29", "1"}
    assert {r.budget for r in runs} == {"steps:300", "epochs:5"}


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(1, 3))
def test_runs_have_different_ids(models: int, shares: int, seeds: int, budgets: int) -> None:
    chosen = study(models=tuple({"name": "convnet", "size": "s", "label": str(i), "width": i} for i in range(models)),
                   fractions=tuple(f"0.{i + 1}" for i in range(shares)), seeds=seeds,
                   budgets=tuple({"steps": i + 1} for i in range(budgets)))
    runs = runs_of(chosen)
    assert len({r.spec.run_id for r in runs}) == len(runs) == models * shares * seeds * budgets


def test_seed_by_seed_so_that_a_study_cut_short_has_whole_comparisons() -> None:
    runs = runs_of(study())
    assert [r.spec.seed for r in runs] == [3] * 12 + [1] * 12
    first, second = ([(r.label, r.spec.share, r.budget) for r in part] for part in (runs[:12], runs[12:]))
    assert first == second
    assert [r.label for r in runs[:4]] == ["linear", "convnet:s"] * 2


def test_a_study_with_more_in_it_has_the_same_ids_and_more() -> None:
    before = {r.spec.run_id for r in runs_of(study())}
    after = {r.spec.run_id for r in runs_of(study(fractions=("0.1", "0.29", "0.5", "1"), seeds=5,
                                                   models=("linear", "convnet:s", "mlp:s")))}
    assert {r.spec.run_id for r in runs_of(study(seeds=(1,)))} < before
    assert {r.spec.run_id for r in runs_of(study(seeds=(1, 3, 4)))} > before
    assert before < after


@pytest.mark.parametrize("change", [{"question": "another?"}, {"claims": ("c",)}, {"fit": {"time_harm": 0.5}},
                                    {"device": "cpu"}], ids=str)
def test_what_does_not_decide_numbers_renames_no_run(change: dict[str, Any]) -> None:
    assert [r.spec.run_id for r in runs_of(study(**change))] == [r.spec.run_id for r in runs_of(study())]


def test_a_label_is_no_part_of_a_runs_id() -> None:
    (named,) = runs_of(study(models=({"name": "linear", "label": "logistic"},), fractions=("1",), seeds=1,
                             budgets=({"steps": 5},)))
    (plain,) = runs_of(study(models=("linear",), fractions=("1",), seeds=1, budgets=({"steps": 5},)))
    assert named.label == "logistic"
    assert named.spec == plain.spec


def test_numbers_a_class_are_shares_too() -> None:
    runs = runs_of(study(fractions=None, images_per_class=(1, 10)))
    assert {r.spec.share for r in runs} == {"1 a class", "10 a class"}
    assert {(r.spec.fraction, r.spec.images_per_class) for r in runs} == {(None, 1), (None, 10)}


def test_a_plug_ins_hash_enters_the_runs_that_use_it_and_no_others() -> None:
    runs = runs_of(study(), {"linear": "ab" * 32, "unused": "cd" * 32})
    assert all(r.spec.plugins == ({"linear": "ab" * 32} if r.label == "linear" else {}) for r in runs)
    data = runs_of(study(), {"digits": "ef" * 32})
    assert all(r.spec.plugins == {"digits": "ef" * 32} for r in data)
    assert not {r.spec.run_id for r in data} & {r.spec.run_id for r in runs_of(study())}


def test_a_model_may_differ_from_the_studys_recipe() -> None:
    chosen = study(models=("linear", {"name": "convnet", "size": "s", "recipe": {"learning_rate": 0.5}}),
                   recipe={"batch_size": 16})
    assert recipe_of(chosen, chosen.models[0]) == Recipe(batch_size=16)
    assert recipe_of(chosen, chosen.models[1]) == Recipe(batch_size=16, learning_rate=0.5)
    assert {r.spec.recipe.learning_rate for r in runs_of(chosen) if r.label == "convnet:s"} == {0.5}


@pytest.mark.parametrize("recipe", [{"lerning_rate": 1}, {"learning_rate": -1}, {"batch_size": 1.5}], ids=str)
def test_a_wrong_recipe_of_a_model_is_refused(recipe: dict[str, Any]) -> None:
    chosen = study(models=({"name": "linear", "recipe": recipe},))
    with pytest.raises(ValidationError):
        recipe_of(chosen, chosen.models[0])


@pytest.mark.parametrize(("only", "count"), [
    (None, 24), ("", 24), ("model=linear", 12), ("model=linear,model=convnet:s", 24), ("seed=1", 12),
    ("model=linear,fraction=0.1", 4), ("fraction=0.1,fraction=1,seed=3", 8), ("budget=steps:300", 12),
    ("regime=none,setting=default", 24), (" model = linear , seed = 1 ", 6), ("fraction=0.10", 8), ("fraction=1.0", 8),
])
def test_runs_can_be_selected(only: str | None, count: int) -> None:
    runs = runs_of(study())
    found = select(runs, only)
    assert len(found) == count
    assert [r for r in runs if r in found] == found


@pytest.mark.parametrize(("only", "words"), [
    ("modle=linear", r"write key=value with a key of model, .*Did you mean 'model'\?"), ("model", "write key=value"),
    ("=linear", "write key=value"), ("model=linaer", r"this study has convnet:s, linear\. Did you mean 'linear'\?"),
    ("fraction=0.3", "this study has 0.1, 0.29, 1"), ("fraction=x", "this study has 0.1, 0.29, 1"),
    ("seed=9", "this study has 1, 3"), (",", "write key=value"),
    ("images_per_class=5", "this study has none"),
])
def test_a_selection_that_selects_nothing_says_what_there_is(only: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        select(runs_of(study()), only)


def test_a_selection_whose_parts_have_no_run_in_common_is_refused() -> None:
    runs = runs_of(study(controls=({"name": "c", "recipe": {"warmup": 0}, "only": "model=linear"},)))
    with pytest.raises(ValueError, match="none matches all of them"):
        select(runs, "model=convnet:s,control=c")


def test_priority_puts_runs_first_and_loses_none() -> None:
    plain = runs_of(study())
    runs = by_priority(plain, ("model=convnet:s,fraction=1", "fraction=0.29"))
    first = [(r.label, r.spec.share) for r in runs]
    assert first[:4] == [("convnet:s", "1")] * 4
    assert {share for _, share in first[4:12]} == {"0.29"}
    assert [r.spec.seed for r in runs[:4]] == [3, 3, 1, 1]  # seed by seed within each
    assert sorted(r.spec.run_id for r in runs) == sorted(r.spec.run_id for r in plain)
