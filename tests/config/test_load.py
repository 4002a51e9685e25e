import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vitbench import grid
from vitbench.config import BadStudy, Loaded, Study, find, load
from vitbench.config.load import shipped_studies
from vitbench.config.schema import BudgetEntry
from vitbench.expansion import expand
from vitbench.spec import Budget

GOOD = """\
question: who overfits?
dataset: digits
models: [linear, "convnet:s"]
fractions: [0.1, 1]
"""
Write = Callable[..., Path]


def mistakes(loaded: Loaded) -> dict[str, str]:
    return {mistake.path: mistake.message for mistake in loaded.mistakes}


def studied(loaded: Loaded) -> Study:
    assert loaded.mistakes == ()
    assert loaded.study is not None
    return loaded.study


def refusal(path: Path, overrides: list[str] | None = None) -> str:
    with pytest.raises(BadStudy) as caught:
        load(path, overrides)
    assert str(path) in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


# What a good study means

def test_a_short_study_is_whole(study_file: Write) -> None:
    loaded = load(study_file(GOOD))
    study = studied(loaded)
    assert loaded.name == "trial"
    assert study.fractions == ("0.1", "1")
    assert study.seeds == (0, 1, 2, 3, 4, 5)
    assert study.budgets == (BudgetEntry(unit="steps", amount=300),)
    assert loaded.kept_models == (0, 1)


def test_a_study_cannot_be_changed(study_file: Write) -> None:
    with pytest.raises(ValueError, match="frozen"):
        studied(load(study_file(GOOD))).dataset = "other"


@pytest.mark.parametrize(("written", "name", "size", "options", "label"), [
    ("linear", "linear", None, {}, "linear"),
    ("'convnet:xs'", "convnet", "xs", {}, "convnet:xs"),
    ("{name: convnet, size: s}", "convnet", "s", {}, "convnet:s"),
    ("{name: convnet, size: s, width: 8, label: thin}", "convnet", "s", {"width": 8}, "thin"),
    ("{name: convnet, size: s, options: {width: 8}}", "convnet", "s", {"width": 8}, "convnet:s"),
    ("{name: convnet, size: s, options: {width: 8}, convs_per_stage: 2}", "convnet", "s",
     {"width": 8, "convs_per_stage": 2}, "convnet:s"),
])
def test_a_model_has_short_forms(study_file: Write, written: str, name: str, size: str | None,
                                 options: dict[str, Any], label: str) -> None:
    (model,) = studied(load(study_file(GOOD.replace('[linear, "convnet:s"]', f"[{written}]")))).models
    assert (model.name, model.size, model.options, model.label) == (name, size, options, label)


@pytest.mark.parametrize(("written", "name", "options"), [
    ("digits", "digits", {}), ("{name: digits}", "digits", {}), ("{name: far_pairs, options: {}}", "far_pairs", {}),
    ("{name: far_pairs, distance: 12, seed: 3}", "far_pairs", {"distance": 12, "seed": 3}),
    ("{name: far_pairs, options: {distance: 12}, seed: 3}", "far_pairs", {"distance": 12, "seed": 3}),
])
def test_a_dataset_is_a_name_or_has_options_and_is_kept_as_short_as_it_can_be(
        study_file: Write, written: str, name: str, options: dict[str, Any]) -> None:
    study = studied(load(study_file(GOOD.replace("dataset: digits", f"dataset: {written}"))))
    assert (study.dataset.name, study.dataset.options) == (name, options)
    kept = study.model_dump(mode="json")
    assert kept["dataset"] == ({"name": name, **options} if options else name)
    assert Study.model_validate_json(json.dumps(kept)) == study


def test_an_option_of_a_dataset_may_be_overridden(study_file: Write) -> None:
    text = GOOD.replace("dataset: digits", "dataset: {name: far_pairs, distance: 12}")
    assert studied(load(study_file(text), ["dataset.distance=14"])).dataset.options == {"distance": 14}
    short = load(study_file(GOOD), ["dataset={name: far_pairs, distance: 14}"])
    assert studied(short).dataset.options == {"distance": 14}


@pytest.mark.parametrize(("written", "path", "words"), [
    ("[digits]", "dataset", "should be a name, or a mapping with a name and options; found ['digits']"),
    ("3", "dataset", "should be a name, or a mapping"), ("{distance: 3}", "dataset.name", "missing"),
    ("{name: 3}", "dataset.name", "valid string; found 3"), ("{name: digts}", "dataset", "Did you mean 'digits'?"),
    ("{name: far_pairs, seed: 1, options: {seed: 2}}", "dataset", "'seed' stands twice: in options, and beside them"),
    ("{name: far_pairs, options: 3}", "dataset.options", "should be an object; found 3"),
])
def test_a_dataset_of_another_form_is_told(study_file: Write, written: str, path: str, words: str) -> None:
    found = mistakes(load(study_file(GOOD.replace("dataset: digits", f"dataset: {written}"))))
    assert words in found[path]
    assert list(found) == [path]


@pytest.mark.parametrize(("written", "seeds"), [("1", (0,)), ("3", (0, 1, 2)), ("[4, 2]", (4, 2)), ("[0]", (0,))])
def test_seeds_are_a_count_or_a_list(study_file: Write, written: str, seeds: tuple[int, ...]) -> None:
    assert studied(load(study_file(f"{GOOD}seeds: {written}\n"))).seeds == seeds


@pytest.mark.parametrize(("written", "unit", "amount"), [
    ("{steps: 300}", "steps", 300), ("{epochs: 50}", "epochs", 50), ("{flops: 1000000000000}", "flops", 10**12),
    ("{unit: epochs, amount: 5}", "epochs", 5),
])
def test_a_budget_is_one_key(study_file: Write, written: str, unit: Any, amount: int) -> None:
    (budget,) = studied(load(study_file(f"{GOOD}budgets: [{written}]\n"))).budgets
    assert Budget(unit=budget.unit, amount=budget.amount) == Budget(unit=unit, amount=amount)


@pytest.mark.parametrize(("written", "exact"), [("0.10", "0.1"), ("1e-1", "0.1"), ("1.0", "1"), ("'0.290'", "0.29")])
def test_fractions_are_exact_decimals(study_file: Write, written: str, exact: str) -> None:
    assert studied(load(study_file(GOOD.replace("0.1, 1", written)))).fractions == (exact,)


def test_numbers_a_class_may_stand_for_fractions(study_file: Write) -> None:
    study = studied(load(study_file(GOOD.replace("fractions: [0.1, 1]", "images_per_class: [1, 10]"))))
    assert (study.fractions, study.images_per_class) == (None, (1, 10))


def test_a_small_learning_rate_is_a_number(study_file: Write) -> None:
    # PyYAML alone reads 1e-4 as text.
    assert studied(load(study_file(f"{GOOD}recipe: {{learning_rate: 1e-4}}\n"))).recipe.learning_rate == 1e-4


@pytest.mark.parametrize("path", sorted(shipped_studies().glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_study_is_good_and_says_how_to_run_it(path: Path) -> None:
    study = studied(load(path))
    header = path.read_text(encoding="utf-8").split("question:")[0]
    for word in ("Question", "Data", "Duration", f"vitbench run {path.stem}"):
        assert word in header
    assert study.question in " ".join(header.split()).replace(": attention", ", attention")


# Overrides

@pytest.mark.parametrize(("override", "key", "value"), [
    ("seeds=2", "seeds", (0, 1)), ("seeds=[7]", "seeds", (7,)), ("fractions=[0.5]", "fractions", ("0.5",)),
    ("question=why?", "question", "why?"), ("question=a=b", "question", "a=b"), ("question='Who: me'", "question",
                                                                                 "Who: me"),
    ("device=cpu", "device", "cpu"),
])
def test_an_override_replaces_a_value_and_a_list_whole(study_file: Write, override: str, key: str,
                                                       value: object) -> None:
    assert getattr(studied(load(study_file(GOOD + "seeds: [0, 1, 2]\n"), [override])), key) == value


def test_an_override_of_a_nested_key_leaves_the_others(study_file: Write) -> None:
    path = study_file(GOOD + "recipe: {batch_size: 32, warmup: 0.2}\n")
    recipe = studied(load(path, ["recipe.batch_size=16", "recipe.learning_rate=1e-4"])).recipe
    assert (recipe.batch_size, recipe.warmup, recipe.learning_rate) == (16, 0.2, 1e-4)


def test_an_override_of_a_whole_mapping_replaces_it(study_file: Write) -> None:
    path = study_file(GOOD + "recipe: {batch_size: 32, warmup: 0.2}\n")
    recipe = studied(load(path, ["recipe={batch_size: 16}"])).recipe
    assert (recipe.batch_size, recipe.warmup) == (16, 0.1)


def test_an_override_may_make_a_mapping_that_the_file_lacks(study_file: Write) -> None:
    assert studied(load(study_file(GOOD), ["recipe.batch_size=16"])).recipe.batch_size == 16


def test_an_override_reaches_into_a_list(study_file: Write) -> None:
    models = studied(load(study_file(GOOD), ["models[1]=convnet:xs"])).models
    assert [model.label for model in models] == ["linear", "convnet:xs"]


def test_of_two_overrides_the_last_counts(study_file: Write) -> None:
    assert studied(load(study_file(GOOD), ["seeds=2", "seeds=1"])).seeds == (0,)


@pytest.mark.parametrize("override", [
    "seeds", "=3", "", "seeds=- 1", "seeds=1\nfoo: 3", "question='", "fractions=&a [0.5]", "fractions=*a",
    "question=${oc.env:HOME}", "question=!!python/object:os.system x", "models.7=x", "models[zz]=1", "models.x=1",
    "[=3", "seeds=" + "1" * 5000, "seeds=1" + ":1" * 300 + ".0", "seeds=0x" + "f" * 5000, "seeds=010", "=", "a\0=:",
])
def test_a_bad_override_is_named(study_file: Write, override: str) -> None:
    assert f"override {override!r}: " in refusal(study_file(GOOD), [override])


@pytest.mark.parametrize(("override", "path"), [("sedes=3", "sedes"), ("recipe.lr=3", "recipe.lr"),
                                                ("question.x=3", "question"), ("seeds=???", "seeds")])
def test_an_override_is_checked_like_the_file(study_file: Write, override: str, path: str) -> None:
    assert set(mistakes(load(study_file(GOOD), [override]))) == {path}


# Mistakes

ALL_WRONG = """\
question: ""
dataset: digts
models:
  - linea
  - convnet:huge
  - {name: convnet, size: s, label: ""}
  - {size: s}
  - convnet:s
  - {name: convnet, size: s}
fractions: [0.1, 0.10, 1.5, abc]
images_per_class: [0]
seeds: [1, 1, -3, 10000]
regimes: [nne]
budgets: [{steps: 0}, {hours: 3}, {steps: 1, epochs: 2}]
recipe: {learning_rate: 0, lerning_rate: 1, batch_size: 3.5}
fit: {time_harm: .inf}
device: gpu
claims: [no_claim]
plugins: [missing.py]
sedes: 3
"""


def test_all_mistakes_are_told_at_once_with_place_value_and_what_is_allowed(study_file: Write) -> None:
    found = mistakes(load(study_file(ALL_WRONG)))
    expected = {
        "question": "at least 1 character; found ''",
        "dataset": "unknown dataset 'digts'; allowed: digits, far_pairs, fashion_mnist, near_pairs, shapes_where, "
                   "textures. Did you mean 'digits'?",
        "models[0].name": "unknown model 'linea'; allowed: convnet, convnext, hybrid, linear, mixer, mlp, resnet, "
                          "timm, token_transformer, window_fc. Did you mean 'linear'?",
        "models[1].size": "should be one of: xs, s, m, l, xl; found 'huge'",
        "models[2].label": "at least 1 character; found ''",
        "models[3].name": "missing",
        "models[5].label": "'convnet:s'; labels are unique",
        "fractions[2]": "should be greater than 0 and at most 1; found 1.5",
        "fractions[3]": "should be a number; found 'abc'",
        "images_per_class[0]": "greater than or equal to 1; found 0",
        "fractions": "give exactly one of fractions and images_per_class",
        "seeds[2]": "found -3", "seeds[3]": "less than 10000; found 10000",
        "regimes[0]": "should be one of: none, light, strong; found 'nne'. Did you mean 'none'?",
        "budgets[0].amount": "greater than or equal to 1; found 0",
        "budgets[1]": "should be one of: epochs, steps, flops; found 'hours'",
        "budgets[2]": "should have one key: steps, epochs or flops; found {'steps': 1, 'epochs': 2}",
        "recipe.learning_rate": "greater than 0; found 0",
        "recipe.lerning_rate": "unknown key; allowed: optimizer, learning_rate",
        "recipe.batch_size": "found 3.5",
        "fit.time_harm": "finite number; found inf",
        "device": "should be one of: auto, cpu, cuda; found 'gpu'",
        "claims[0]": "unknown claim 'no_claim'; allowed: a_window_needs_ever_more_parameters, ",
        "plugins[0]": "missing.py: cannot read this plug-in: No such file",
        "sedes": "unknown key; allowed: question, dataset",
    }
    for path, words in expected.items():
        assert words.replace("'convnet:s'", "convnet:s stands twice") in found.get(path, "nothing"), path
    assert set(found) == set(expected)
    assert "Did you mean 'seeds'?" in found["sedes"]
    assert "Did you mean 'learning_rate'?" in found["recipe.lerning_rate"]


@pytest.mark.parametrize(("override", "path", "words"), [
    ("seeds=[]", "seeds", "should have at least one entry; found ()"),
    ("models=[]", "models", "should have at least one entry; found []"),
    ("claims=[attention_overtakes]", "claims[0]", "Did you mean 'attention_overtakes_with_enough_data'?"),
    (f"claims=[{', '.join(['attention_overtakes_with_enough_data'] * 2)}]", "claims[1]", "stands twice"),
    ("seeds=true", "seeds", "should be a count from 1 to 10,000 or a list of seeds; found True"),
    ("seeds=1e9", "seeds", "should be a count from 1 to 10,000 or a list of seeds; found 1000000000.0"),
    ("seeds=null", "seeds", "should be a count from 1 to 10,000 or a list of seeds; found None"),
    ("models=['linear:']", "models[0].size", "should be one of: xs, s, m, l, xl; found ''"),
    ('models=[{name: linear, label: "a\\nb"}]', "models[0].label", "no control character; '\\n' is one"),
    ('models=[{name: linear, label: "a\\u202eb"}]', "models[0].label", "no control character; '\\u202e' is one"),
])
def test_a_wrong_value_is_told_in_words_of_the_study_file(study_file: Write, override: str, path: str,
                                                          words: str) -> None:
    assert words in mistakes(load(study_file(GOOD), [override]))[path]


def test_a_report_has_a_line_for_each_mistake(study_file: Write) -> None:
    loaded = load(study_file(ALL_WRONG))
    lines = str(BadStudy(loaded.source, list(loaded.mistakes))).splitlines()
    assert len(lines) == len(loaded.mistakes)
    assert all(line.startswith(f"{loaded.source}: ") for line in lines)


@pytest.mark.parametrize("missing", ["question", "dataset", "models"])
def test_a_missing_key_hides_no_other_mistake(study_file: Write, missing: str) -> None:
    text = GOOD.replace("digits", "digts").replace("linear", "linea") + "claims: [x]\nseeds: [1, 1]\n"
    lines = [line for line in text.splitlines() if not line.startswith(f"{missing}:")]
    found = mistakes(load(study_file("\n".join(lines))))
    assert found.pop(missing) == "missing; every study needs it"
    assert set(found) == {"dataset", "models[0].name", "claims[0]", "seeds[1]"} - {missing} - (
        {"models[0].name"} if missing == "models" else set())


@pytest.mark.parametrize("models", ["3", "{a: 1}", "[]", "[3]", "[[]]", "[null]", "[{}, {}]", "[{label: 3}]",
                                    "[" + "linear, " * 201 + "]", "linear", "null"])
def test_models_of_the_wrong_shape_are_mistakes_and_hide_no_other(study_file: Write, models: str) -> None:
    found = load(study_file(GOOD.replace('[linear, "convnet:s"]', models) + "claims: [x]\n"))
    assert {"claims[0]"} < set(mistakes(found))
    assert any(path.startswith("models") for path in mistakes(found))
    if found.study is not None:
        assert len(found.study.models) == len(found.kept_models)


@pytest.mark.parametrize("options", ["[1]", "null", "3", "text"])
def test_options_that_are_no_mapping_are_a_mistake(study_file: Write, options: str) -> None:
    found = load(study_file(GOOD.replace("linear", f"{{name: linear, options: {options}}}")))
    assert set(mistakes(found)) == {"models[0].options"}
    assert found.kept_models == (1,)


def test_an_option_given_twice_is_a_mistake(study_file: Write) -> None:
    text = GOOD.replace("linear", "{name: convnet, size: s, width: 8, options: {width: 9}, label: a}")
    assert "'width' stands twice" in mistakes(load(study_file(text)))["models[0]"]


def test_an_unknown_key_of_a_budget_lists_a_budgets_keys(study_file: Write) -> None:
    found = mistakes(load(study_file(GOOD + "budgets: [{unit: steps, amount: 3, amuont: 4}]\n")))
    assert found["budgets[0].amuont"] == "unknown key; allowed: unit, amount. Did you mean 'amount'?"


@pytest.mark.parametrize("value", ["1e99999999", "1e-99999999", "sNaN", "nan", "inf", "-0.1", "0", "1.0000001"])
def test_a_fraction_out_of_range_is_a_mistake(study_file: Write, value: str) -> None:
    assert set(mistakes(load(study_file(GOOD.replace("0.1", f"'{value}'"))))) == {"fractions[0]"}


@pytest.mark.parametrize(("key", "values", "second"), [
    ("fractions", "[0.1, 0.2, 0.10]", 2), ("seeds", "[3, 4, 3]", 2),
    ("budgets", "[{steps: 3}, {unit: steps, amount: 3}]", 1), ("regimes", "[none, none]", 1),
])
def test_an_entry_that_stands_twice_is_named(study_file: Write, key: str, values: str, second: int) -> None:
    text = "".join(line for line in GOOD.splitlines(keepends=True) if not line.startswith(key))
    (path, message), = mistakes(load(study_file(f"{text}{key}: {values}\n"))).items()
    assert path == f"{key}[{second}]"
    assert "stands twice" in message


def test_a_key_cannot_forge_a_line_of_the_report(study_file: Write) -> None:
    loaded = load(study_file(GOOD + '"x\\n/etc/passwd: fine\\e[2J": 3\n'))
    report = str(BadStudy(loaded.source, list(loaded.mistakes)))
    assert len(report.splitlines()) == 1
    assert report.isprintable()


# Plug-in files of a study

def test_a_plug_in_file_makes_its_name_known_and_runs_nothing(study_file: Write, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"open({os.fspath(tmp_path / 'ran')!r}, 'w')")
    loaded = load(study_file(GOOD.replace("linear", "mine") + "plugins: [mine.py]\n"))
    assert studied(loaded).models[0].name == "mine"
    assert loaded.plugin_files() == {"mine": tmp_path / "mine.py"}
    assert set(loaded.plugin_hashes()) == {"mine"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("plugins", "path", "words"), [
    ("[mine.py, missing.py]", "plugins[1]", "missing.py: cannot read this plug-in: No such file"),
    ("[mine.py, folder.py]", "plugins[1]", "a plug-in is a file, which this is not"),
    ("[mine.py, Upper.py]", "plugins[1]", "named in small letters"),
    ("[mine.py, other/mine.py]", "plugins", "two files of one name"),
    ('[mine.py, "nul\\0/x.py"]', "plugins[1]", "embedded null byte"),
    ("[mine.py, 3]", "plugins[1]", "valid string; found 3"),
    ("mine.py", "plugins", "valid array"),
])
def test_mistakes_of_plug_in_files_are_told(study_file: Write, tmp_path: Path, plugins: str, path: str,
                                            words: str) -> None:
    for place in ("mine.py", "other/mine.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("")
    (tmp_path / "folder.py").mkdir()
    assert words in mistakes(load(study_file(f"{GOOD}plugins: {plugins}\n")))[path]


# Finding a study

def test_a_study_is_found_by_file_folder_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    for place in ("configs/studies/own.yaml", "results/done/study.yaml", "elsewhere/x.yml"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(GOOD)
    assert find("own", results) == Path("configs/studies/own.yaml")
    assert find("elsewhere/x.yml", results) == Path("elsewhere/x.yml")
    assert find("done", results) == results / "done" / "study.yaml"
    assert find("results/done", tmp_path / "other") == Path("results/done/study.yaml")
    assert find("quick", results) == shipped_studies() / "quick.yaml"
    assert load(find("done", results)).name == "done"


def test_a_study_of_the_working_folder_comes_before_a_shipped_one(tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs" / "studies").mkdir(parents=True)
    (tmp_path / "configs" / "studies" / "quick.yaml").write_text(GOOD)
    assert find("quick", tmp_path) == Path("configs/studies/quick.yaml")


def test_a_study_is_named_by_its_folder_from_inside_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "done" / "sub").mkdir(parents=True)
    (tmp_path / "done" / "study.yaml").write_text(GOOD)
    monkeypatch.chdir(tmp_path / "done")
    assert load(Path("study.yaml")).name == "done"
    assert load(find(".", tmp_path)).name == "done"
    monkeypatch.chdir(tmp_path / "done" / "sub")
    assert load(find("..", tmp_path)).name == "done"


@pytest.mark.parametrize("study", ["quik", "", "no such study", "x" * 300, "a/" * 3000, "a\0b", "\udc80", "..."])
def test_a_study_that_is_nowhere_lists_the_known_ones(tmp_path: Path, study: str) -> None:
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "study.yaml").write_text(GOOD)
    with pytest.raises(BadStudy, match=r"no such study; known here: budgets_digits, digits, done, ") as caught:
        find(study, tmp_path)
    assert ("Did you mean 'quick'?" in str(caught.value)) is (study == "quik")


@pytest.mark.parametrize("name", ["a b.yaml", "ü.yaml", ".hidden.yaml", "a;b.yaml", "a\nb.yaml", "$x.yaml"])
def test_a_file_whose_name_is_no_name_of_a_study_is_refused(study_file: Write, name: str) -> None:
    assert "should hold letters, digits, ., _ and - only" in refusal(study_file(GOOD, name))


# Anything at all

PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
              st.sampled_from(["linear", "convnet:s", "digits", "steps", "none", "0.1", "???"])),
    lambda inner: st.one_of(st.lists(inner, max_size=4),
                            st.dictionaries(st.one_of(st.text(max_size=8), st.integers(), st.booleans(),
                                                      st.sampled_from(["name", "size", "options", "label", "recipe",
                                                                       "unit", "amount", "steps"])),
                                            inner, max_size=4)),
    max_leaves=12)


def outcome(path: Path, overrides: list[str] | None = None) -> Loaded | None:
    """The study or None where it is refused; any other exception than BadStudy ends the test."""
    try:
        loaded = load(path, overrides)
    except BadStudy:
        return None
    assert loaded.study is not None or loaded.mistakes
    if loaded.study is not None:
        assert len(loaded.kept_models) == len(loaded.study.models)
    return loaded


@settings(max_examples=80)
@given(st.one_of(st.text(max_size=300), st.text(alphabet="{}[]:,-?&*!|>'\"%@`# \n\tab01.~=<", max_size=80)))
@example("5")
@example("- - - -")
@example("? ? ? ?")
@example("%TAG ! x\n---\na")
@example("a: 1:" + "59:" * 500 + "1.5")
def test_any_text_is_a_study_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fuzz.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    outcome(path)


@settings(max_examples=40)
@given(st.binary(max_size=100))
def test_any_bytes_are_a_study_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "fuzz.yaml"
    path.write_bytes(content)
    outcome(path)


@settings(max_examples=80)
@given(st.dictionaries(st.one_of(st.sampled_from(sorted(Study.model_fields)), st.text(max_size=5)), PLAIN, max_size=5))
def test_any_values_are_a_study_or_mistakes(tmp_path: Path, values: dict[Any, Any]) -> None:
    path = tmp_path / "fuzz.yaml"
    good = yaml.safe_load(GOOD)
    path.write_text(yaml.safe_dump({**good, **values}), encoding="utf-8")
    outcome(path)


@settings(max_examples=40)
@given(PLAIN)
def test_any_structure_is_a_study_or_refused(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "fuzz.yaml"
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    outcome(path)


@settings(max_examples=80)
@given(st.one_of(st.text(max_size=30), st.text(alphabet="models.[]=0 12seed{}:,'\"", max_size=20),
                 st.builds("{}={}".format, st.sampled_from(["seeds", "recipe.batch_size", "models[0]", "models.0.name",
                                                            "recipe", "fractions[1]"]), st.text(max_size=20))))
def test_any_override_is_taken_or_refused(tmp_path: Path, override: str) -> None:
    path = tmp_path / "fuzz.yaml"
    path.write_text(GOOD)
    outcome(path, [override])


@pytest.mark.parametrize("text", [
    "seeds: 10000", "seeds: [" + "0," * 60_000 + "]", "claims: [" + "a," * 60_000 + "]",
    "plugins: [" + "a," * 3000 + "]", "models: [" + "linear," * 5000 + "]", "x: " + "a" * 250_000,
    "\n" * 250_000, "#" + "x" * 250_000,
    " " * 250_000,
    "".join(f"k{i}: 1\n" for i in range(20_000)), "- " * 100_000, "[" * 100_000, "{" * 100_000, "? " * 100_000,
    "x: 1" + ":1" * 100_000, "x: 0x" + "f" * 250_000, "x: " + "9" * 250_000, "x:\n" + "- \n" * 80_000,
    "".join(f"aaaa{i}: 1\n" for i in range(3900)), "!" * 250_000, "'" * 250_000, '"' + "\\" * 250_000,
    "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{c}: &{c} [{','.join('*' + p for _ in range(9))}]\n"
                                            for p, c in zip("abcdefg", "bcdefgh", strict=True)),
    "claims: [" + ",".join(f"claim_{i}" + "x" * 60 for i in range(200)) + "]",
], ids=lambda text: f"{text[:10]!r}...")
def test_no_file_takes_long(study_file: Write, text: str) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(text.partition(":")[0] + ":")]
    started = time.process_time()
    outcome(study_file("\n".join([*lines, text])))
    assert time.process_time() - started < 10  # a second alone, on a shared core more


def test_a_good_study_has_runs_whose_ids_all_differ(study_file: Write) -> None:
    study = studied(load(study_file(GOOD)))
    facts = {m.label: grid.ModelFacts(versioned=f"{m.name}@1", family="control", options={}) for m in study.models}
    resolved = grid.Resolved(dataset="digits@1", train_counts=(5, 5), test_images=3, num_classes=2, models=facts,
                             plugins={})
    runs = expand(study, resolved)
    assert len({run.spec.run_id for run in runs}) == len(runs) == 2 * 2 * 6
