"""The second pass over a study file: what needs the dataset and the models."""

import json
from pathlib import Path

import pytest

from vitbench.config import BadStudy, load
from vitbench.datasets import DATASETS
from vitbench.grid import Resolved
from vitbench.models.timm import version as timm_version
from vitbench.spec import Duplicates
from vitbench.study.meaning import resolved

GOOD = """\
question: Who?
dataset: digits
models: [{name: token_transformer, size: s, num_heads: 8, embed_dim: 64, label: eight}, linear]
fractions: [0.1]
"""


def _mistakes(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(BadStudy) as caught:
        resolved(load(path), import_plugins=True)
    return [f"{m.path}: {m.message}" for m in caught.value.mistakes]


def test_a_good_study_has_definite_names(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(GOOD)
    _, names = resolved(load(path), import_plugins=True)
    assert names.dataset == "digits@1"
    assert names.models["eight"].options == {"num_heads": 8}  # the width is the size's own
    assert names.models["linear"].family == "control"
    assert names.split is not None
    assert names.split.startswith("no official split here")
    assert names.duplicates == Duplicates(test_in_train=0, within_train=0)


def test_a_model_with_a_convolutional_stem_is_a_hybrid(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(GOOD.replace("num_heads: 8, embed_dim: 64", "tokens: conv_stem"))
    assert resolved(load(path), import_plugins=True)[1].models["eight"].family == "hybrid"


@pytest.mark.parametrize("option", ["dropout", "stochastic_depth"])
def test_a_regulariser_of_a_model_is_refused_in_regime_none_alone(tmp_path: Path, option: str) -> None:
    """Protocol rule 8: in regime none they are off for all."""
    text = GOOD.replace("num_heads: 8, embed_dim: 64", f"{option}: 0.1")
    (mistake,) = _mistakes(tmp_path, text)
    assert mistake.startswith(f"models[0].{option}: is off in regime none")
    assert "found 0.1 with regimes none" in mistake
    (tmp_path / "s.yaml").write_text(f"{text}regimes: [light]\n")
    assert resolved(load(tmp_path / "s.yaml"), import_plugins=True)[1].models["eight"].options == {option: 0.1}


def test_names_written_before_the_split_was_kept_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(GOOD)
    names = resolved(load(path), import_plugins=True)[1].model_dump(mode="json", exclude={"split", "duplicates"})
    assert Resolved.model_validate_json(json.dumps(names)).split is None


DATASET = """
from vitbench.datasets import DATASETS, DatasetMeta
from vitbench.spec import Duplicates, ImageSpec

META = DatasetMeta(version=1, image=ImageSpec(8, 1), class_names=("a", "b"), train_counts=(9, 9), test_counts=(3, 3),
                   source="here", licence="none", citation="none", split="none", keeps_labels={keeps!r},
                   sha256="0" * 64, duplicates=Duplicates(test_in_train=0, within_train=0))

@DATASETS.add("{name}", META)
def {name}():
    raise AssertionError("nothing is read")
"""
PLACES = """\
question: Where?
dataset: {name}
models: [linear]
fractions: [1]
regimes: [none, light, strong]
plugins: [{name}.py]
"""


@pytest.mark.parametrize(("name", "keeps", "forbidden"), [
    ("nowhere", (), ["light", "strong"]), ("tones", ("contrast",), ["light"]), ("anywhere", ("shift",), []),
])
def test_a_regime_that_the_dataset_forbids_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
                                                        keeps: tuple[str, ...], forbidden: list[str]) -> None:
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS._entries))
    (tmp_path / f"{name}.py").write_text(DATASET.format(name=name, keeps=keeps))
    places = ["none", "light", "strong"]
    try:
        found = _mistakes(tmp_path, PLACES.format(name=name))
    except pytest.fail.Exception:  # no mistake at all
        found = []
    assert [line.split(" is forbidden by this dataset")[0] for line in found] == [
        f"regimes[{places.index(regime)}]: {regime!r}" for regime in forbidden]


def test_mistakes_of_both_passes_come_in_one_report(tmp_path: Path) -> None:
    text = """\
question: Who?
dataset: digits
sedes: 3
models: [token_transformer, {name: convnet, size: s, widht: 3}, {name: linear, recipe: {batch_size: 0}},
         {name: token_transformer, size: s, num_heads: 5}, {name: linear, size: x, label: other}]
fractions: [0.001, 0.1]
"""
    found = "\n".join(_mistakes(tmp_path, text))
    for expected in ("sedes: unknown key", "Did you mean 'seeds'", "models[0].size: 'token_transformer' comes in",
                     "models[1].widht", "Did you mean 'width'", "models[2].recipe.batch_size",
                     "models[3].num_heads: should divide embed_dim 64; found 5", "models[4].size",
                     "fractions[0]: class"):
        assert expected in found, expected


def test_an_unknown_dataset_hides_no_mistake_of_a_model(tmp_path: Path) -> None:
    found = _mistakes(tmp_path, GOOD.replace("digits", "digit").replace("num_heads", "heads"))
    assert any("unknown dataset 'digit'" in m for m in found)
    assert any(m.startswith("models[0].heads") for m in found)


def test_images_per_class_beyond_the_smallest_class_is_refused(tmp_path: Path) -> None:
    found = _mistakes(tmp_path, GOOD.replace("fractions: [0.1]", "images_per_class: [5, 140]"))
    assert found == ["images_per_class[1]: class 8 has 139 training images; at most 139 a class can be drawn; "
                     "found 140"]


def test_shares_that_draw_the_same_images_are_a_mistake(tmp_path: Path) -> None:
    found = _mistakes(tmp_path, GOOD.replace("[0.1]", "[0.1, 0.10000001]"))
    assert found == ["fractions[1]: draws the same images as 0.1; found 0.10000001"]


def test_an_unknown_key_of_a_models_recipe_is_told_with_the_allowed_ones(tmp_path: Path) -> None:
    (found,) = _mistakes(tmp_path, GOOD.replace("linear]", "{name: linear, recipe: {learning_rat: 1}}]"))
    assert found.startswith("models[1].recipe.learning_rat: unknown key; allowed: optimizer, learning_rate")
    assert found.endswith("Did you mean 'learning_rate'?")


def test_a_command_that_runs_no_plug_in_says_so_and_tells_the_other_mistakes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('this ran')\n")
    path = tmp_path / "s.yaml"
    path.write_text(GOOD.replace("[0.1]", "[0.001]") + "plugins: [mine.py]\n")
    with pytest.raises(BadStudy, match="runs no plug-in") as caught:
        resolved(load(path), import_plugins=False)
    assert any(m.path == "fractions[0]" for m in caught.value.mistakes)


def test_a_plug_in_of_another_kind_than_its_place_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "mute.py").write_text("'Registers nothing.'\n")
    plugins = "plugins: [mute.py]\n"
    assert _mistakes(tmp_path, GOOD.replace("linear]", "linear, mute]") + plugins)[0].startswith(
        "models[2].name: unknown model 'mute'; allowed: ")
    assert _mistakes(tmp_path, GOOD.replace("digits", "mute") + plugins)[0].startswith(
        "dataset: unknown dataset 'mute'; allowed: ")


def test_a_priority_that_names_no_run_is_a_mistake(tmp_path: Path) -> None:
    found = _mistakes(tmp_path, GOOD + "priority: ['model=eigt', 'fraction=0.10', 'size=s']\n")
    assert found == ["priority[0]: model=eigt: this study has eight, linear. Did you mean 'eight'?",
                     "priority[2]: 'size=s': write key=value with a key of model, fraction, images_per_class, seed, "
                     "regime, budget, setting, control. Did you mean 'seed'?"]


def test_seeds_between_declared_looks_are_a_mistake(tmp_path: Path) -> None:
    assert _mistakes(tmp_path, GOOD + "looks: [6, 8]\nseeds: 7\n") == [
        "seeds: looks are declared at 6, 8 seeds; found 7"]
    assert _mistakes(tmp_path, GOOD + "looks: [8, 6]\nseeds: 8\n")[0].startswith("looks: should rise")


def test_a_name_behind_a_slash_is_checked_by_its_file(tmp_path: Path) -> None:
    models = '["timm/resnet18", "timm/resnet19", "convnet/s", "tim/resnet18", timm, linear]'
    found = _mistakes(tmp_path, GOOD.replace(GOOD.splitlines()[2], f"models: {models}"))
    assert [m.partition(":")[0] for m in found] == ["models[3].name", "models[1].name", "models[2].name"]
    assert "Did you mean 'timm'?" in found[0]
    assert "Did you mean 'timm/resnet18'" in found[1]
    assert "unknown model 'convnet/s'" in found[2]
    assert _mistakes(tmp_path, GOOD.replace("linear]", "timm]")) == [
        "models[1].name: model 'timm' stands for many: write timm/NAME"]
    assert _mistakes(tmp_path, GOOD.replace("digits", "digits/x"))[0].startswith("dataset: unknown dataset 'digits/x'")


def test_a_timm_model_has_its_name_as_label_and_its_options_in_the_run(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(GOOD.replace("linear]", "timm/vit_tiny_patch16_224, {name: timm/resnet18, label: r18, "
                                            "stem: small}]"))
    _, names = resolved(load(path), import_plugins=False)
    assert names.models["timm/vit_tiny_patch16_224"].versioned == f"timm/vit_tiny_patch16_224@{timm_version()}"
    assert (names.models["r18"].family, names.models["r18"].options) == ("convolution", {"stem": "small"})


TUNED = "tuning: {trials: 4, validation: where_needed, space: {learning_rate: {low: 0.001, high: 0.01, log: true}}}\n"


@pytest.mark.parametrize(("text", "place", "message"), [
    ("controls: [{name: c, data: {pixel: shuffled}}]", "controls[0].data.pixel", "unknown key; allowed: pixels, "),
    ("controls: [{name: c, data: {pixels: mixed}}]", "controls[0].data.pixels", "should be one of: as_is, shuffled"),
    ("controls: [{name: c, data: {pixels: as_is}}]", "controls[0].data.pixels", "changes nothing"),
    ("controls: [{name: c, data: {label_noise: 1}}]", "controls[0].data.label_noise", "less than 1; found"),
    ("controls: [{name: c, recipe: {warmup: 2}}]", "controls[0].recipe.warmup", "less than 1; found 2"),
    ("controls: [{name: c, grid: {weight_decay: [0, -1]}}]", "controls[0].grid.weight_decay", "greater than or equal"),
    ("controls: [{name: c, recipe: {warmup: 0}, only: model=liner}]", "controls[0].only", "Did you mean 'linear'?"),
    ("comparisons: [[linear, convnet:s]]", "comparisons[0]", "Did you mean 'convnet:xs'?"),
    ("comparisons: [[linear, linear]]", "comparisons[0]", "linear is compared with itself"),
    ('comparisons: [[linear, "convnet:xs"], ["convnet:xs", linear]]', "comparisons[1]", "are compared twice"),
    ("comparisons: [[linear]]", "comparisons[0][1]", "missing"),
    ("controls: [{name: c, budget_factor: 2}, {name: c, budget_factor: 4}]", "controls[1].name", "stands twice"),
    ("controls: [{name: c, grid: {warmup: [0, 0]}}]", "controls[0].grid", "'c: warmup=0' stands twice"),
    ("controls: [{name: c, data: {label_noise: 0}}]", "controls[0].data.label_noise", "changes nothing"),
    ("controls: [{name: c, grid: {warmups: [0, 1], momentum: [0]}}]", "controls[0].grid.warmups", "unknown key"),
    ('controls: [{name: c, grid: {optimizer: ["a\\n"]}}]', "controls[0].grid.optimizer", "one of: adamw, sgd"),
    ("budgets: [{flops: 100000000000000000000}]\ncontrols: [{name: c, budget_factor: 2}]", "controls[0].budget_factor",
     "less than or equal to"),
    ("controls: [{name: anchor, budget_factor: 2}]", "controls[0].name", "should not be 'anchor'"),
    ("controls: [{name: c}]", "controls[0]", "exactly one of data, recipe, grid, budget_factor, streams, crossed"),
    ("controls: [{name: c, budget_factor: 2, recipe: {warmup: 0}}]", "controls[0]", "found recipe and budget_factor"),
    ("controls: [{name: c, recipe: {}}]", "controls[0]", "should change something"),
    ("controls: [{name: c, budget_factor: 1}]", "controls[0].budget_factor", "greater than or equal to 2"),
    ("controls: [{name: c, crossed: {subset: 1}}]", "controls[0].crossed.subset", "greater than or equal to 2"),
    ("controls: [{name: c, stream: {init: 0}}]", "controls[0].stream", "Did you mean 'streams'?"),
    ("controls: [{name: none, budget_factor: 2}]", "controls[0].name", "should not be 'none'"),
    ("controls: [{name: ' ', budget_factor: 2}]", "controls[0].name", "a character that shows"),
    ("controls: [{name: c, recipe: {warmup: 0.1, batch_size: 64}}]", "controls[0]", "changes nothing"),
    ("controls: [{name: c, grid: {warmup: [0.1]}}]", "controls[0]", "changes nothing"),
    ("controls: [{name: c, streams: {}}]", "controls[0].streams", "one of subset, init, order, augment; found none"),
    ("controls: [{name: c, recipe: {learning_rat: 0.1}}]", "controls[0].recipe.learning_rat",
     "Did you mean 'learning_rate'?"),
    (f"controls: [{{name: {'c' * 99}, grid: {{warmup: [0, 0.2]}}}}]", "controls[0].grid", "stands twice"),
    ("controls: [{name: c, grid: {warmup: [0]}}, {name: 'c: warmup=0', budget_factor: 2}]", "controls[1].name",
     "stands twice"),
    ("budgets: [{flops: 100000000000000000000}]\ncontrols: [{name: c, budget_factor: 2}]",
     "controls[0].budget_factor", "less than or equal to 100000000000000000000; found 200000000000000000000"),
    ("anchors: [liner]", "anchors[0]", "no model of this study has the label 'liner'"),
    (TUNED.replace("learning_rate", "learning_rat"), "tuning.space", "'learning_rat' is no key of the recipe"),
    (TUNED.replace("low: 0.001", "low: 0.01"), "tuning.space.learning_rate", "should rise from low to high"),
    (TUNED.replace("low: 0.001", "low: 0"), "tuning.space.learning_rate", "above 0 where log is true"),
    (TUNED.replace("low: 0.001, high: 0.01, log: true", "low: -1, high: 1"), "tuning.space.learning_rate",
     "greater than 0; found -1"),
    (TUNED.replace("{low: 0.001, high: 0.01, log: true}", "0.1"), "tuning.space.learning_rate", "should be a range"),
    (TUNED.replace("{low: 0.001, high: 0.01, log: true}", "[]"), "tuning.space.learning_rate", "at least 2 entries"),
    (TUNED.replace("{low: 0.001, high: 0.01, log: true}", "[0.1, 0.1]"), "tuning.space.learning_rate", "twice"),
    (TUNED.replace("{low: 0.001, high: 0.01, log: true}", "[0.1, 'x']"), "tuning.space.learning_rate", "found 'x'"),
    (TUNED.replace("{low: 0.001, high: 0.01, log: true}", "[0.1]"), "tuning.space.learning_rate",
     "at least 2 entries; found [0.1]"),
    (TUNED.replace("{low: 0.001, high: 0.01, log: true}", "[0.1, null]"), "tuning.space.learning_rate[1]",
     "should be a finite number"),
    (TUNED.replace("{low: 0.001, high: 0.01, log: true}", "[1, 1.0]"), "tuning.space.learning_rate", "twice"),
    (TUNED.replace("low: 0.001", "low: a"), "tuning.space.learning_rate.low", "should be a finite number; found 'a'"),
    (TUNED.replace("low: 0.001", "low: true"), "tuning.space.learning_rate.low", "should be a finite number"),
    (TUNED.replace("low: 0.001", "low: 0.009999999"), "tuning.space.learning_rate", "two values of 4 digits"),
    (TUNED.replace("log: true", "logs: true"), "tuning.space.learning_rate.logs",
     "unknown key; allowed: low, high, log. Did you mean 'log'?"),
    (TUNED.replace("trials: 4", "trials: 1"), "tuning.trials", "greater than or equal to 2"),
    (TUNED.replace("where_needed", "holdout"), "tuning.validation",
     "share 0.1 has 25 validation images, and holdout needs 100; use where_needed or cv"),
    (TUNED.replace("where_needed", "cv, folds: 15"), "tuning.folds",
     "share 0.1 has 14 images of its smallest class, fewer than 15 folds"),
    (TUNED.replace("where_needed", "cv, pruner: halving"), "tuning.pruner", "needs validation: "),
    (TUNED.replace("trials: 4", "trials: 4, only: fraction=0.2"), "tuning.only", "this study has 0.1, 1"),
])
def test_what_stands_beside_the_grid_is_checked_before_anything_runs(tmp_path: Path, text: str, place: str,
                                                                     message: str) -> None:
    found = _mistakes(tmp_path, GOOD_BESIDE + text)
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: ")
    assert message in found[0]


GOOD_BESIDE = """\
question: who overfits?
dataset: digits
models: [linear, "convnet:xs"]
fractions: [0.1, 1]
"""


def test_a_good_tuning_and_good_controls_are_no_mistake(tmp_path: Path) -> None:
    controls = """\
controls:
  - {name: shuffled, data: {pixels: shuffled}}
  - {name: x2, budget_factor: 2, only: 'fraction=1'}
  - {name: streams, streams: {subset: 0}}
  - {name: crossed, crossed: {}}
"""
    path = tmp_path / "s.yaml"
    path.write_text(GOOD_BESIDE + TUNED + controls)
    study, _ = resolved(load(path), import_plugins=True)
    assert len(study.controls) == 4


def test_a_claims_file_that_registers_none_is_refused_before_anything_trains(tmp_path: Path) -> None:
    (tmp_path / "no_claim_in_here.py").write_text("")
    found = _mistakes(tmp_path, GOOD + "claims: [no_claim_in_here]\nplugins: [no_claim_in_here.py]\n")
    assert found[0].startswith("claims[0]: unknown claim 'no_claim_in_here'; allowed: a_window_needs")
