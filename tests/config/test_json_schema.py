"""The study file's JSON Schema: what it lets through and what an editor would underline."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from vitbench.config import BadStudy, load
from vitbench.config.load import shipped_studies
from vitbench.config.strict_yaml import parse
from vitbench.models import MODELS
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder
from vitbench.study.json_schema import study_schema
from vitbench.study.meaning import resolved

COPY = shipped_studies().parent / "study.schema.json"
GOOD = {"question": "Why?", "dataset": "digits", "models": ["linear", "token_transformer:s"], "fractions": [0.1, 1]}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(study_schema())
    return Draft202012Validator(study_schema())


def test_the_copy_beside_the_shipped_studies_is_current() -> None:
    assert COPY.read_text() == json.dumps(study_schema(), indent=1) + "\n", \
        "write it again: vitbench schema > configs/study.schema.json"


@pytest.mark.parametrize("path", sorted(shipped_studies().glob("*.yaml")), ids=lambda p: p.stem)
def test_a_shipped_study_is_valid_and_its_first_line_names_the_schema(path: Path,
                                                                      validator: Draft202012Validator) -> None:
    first, *_ = path.read_text().splitlines()
    assert first == "# yaml-language-server: $schema=../study.schema.json"
    assert (path.parent / "../study.schema.json").resolve() == COPY.resolve()
    validator.validate(parse(path.read_text(), []))


def test_a_study_as_a_results_folder_keeps_it_is_valid(validator: Draft202012Validator, tmp_path: Path) -> None:
    study, names = resolved(load(shipped_studies() / "quick.yaml"), import_plugins=False)
    store = ResultStore(tmp_path / "quick")
    store.prepare()
    StudyFolder("quick", study, names, store).write({})
    validator.validate(parse((tmp_path / "quick" / "study.yaml").read_text(), []))


@pytest.mark.parametrize("change", [
    {"models": [{"name": "token_transformer", "size": "s", "num_heads": 1, "label": "one head"}]},
    {"models": [{"name": "token_transformer", "size": "s", "options": {"num_heads": 1}}]},
    {"models": [{"name": "linear", "recipe": {"learning_rate": 0.1}}]},
    {"models": ["my_net", "my_net:xs", {"name": "my_net", "width": 3, "label": "wide"}],
     "plugins": ["my_net.py"]},
    {"dataset": "my_data", "plugins": ["my_data.py"]}, {"claims": ["attention_overtakes_with_enough_data"]},
    {"claims": ["my_claim"], "plugins": ["my_claim.py"]},
    {"dataset": {"name": "my_data", "depth": 3}, "plugins": ["my_data.py"]}, {"dataset": {"name": "digits"}},
    {"dataset": {"name": "far_pairs", "distance": 12, "canvas": 32}},
    {"dataset": {"name": "far_pairs", "options": {"images": 1000}}},
    {"seeds": 3}, {"seeds": [0, 7]}, {"fractions": None, "images_per_class": [2, 5]}, {"fractions": ["0.29"]},
    {"budgets": [{"steps": 300}, {"epochs": 5}, {"flops": 10**12}, {"unit": "steps", "amount": 5}]},
    {"recipe": {"optimizer": "sgd", "warmup": 0}, "fit": {"time_harm": 0.02}, "device": "cpu", "plugins": []},
], ids=str)
def test_what_a_person_may_write_is_valid_for_both(change: dict[str, Any], validator: Draft202012Validator,
                                                   study_file: Any, tmp_path: Path) -> None:
    validator.validate(GOOD | change)
    for name in change.get("plugins", ()):
        (tmp_path / name).touch()
    assert load(study_file(json.dumps(GOOD | change))).mistakes == ()


@pytest.mark.parametrize("change", [
    {"quesiton": "?"}, {"question": ""}, {"question": 3}, {"dataset": "digit"}, {"dataset": {}},
    {"dataset": {"name": "digit"}}, {"dataset": {"name": "digits", "canvas": 32}}, {"dataset": ["digits"]},
    {"dataset": {"name": "far_pairs", "distnce": 12}}, {"dataset": {"name": "far_pairs", "canvas": 29}},
    {"dataset": {"name": "near_pairs", "options": {"distance": 12}}}, {"models": []},
    {"models": ["linear:s"]}, {"models": ["token_transformer"]}, {"models": ["convnt:s"]},
    {"models": [{"size": "s"}]}, {"models": [{"name": "convnt"}]}, {"models": [{"name": "convnet"}]},
    {"models": [{"name": "convnet", "size": "huge"}]}, {"models": [{"name": "linear", "size": "s"}]},
    {"models": [{"name": "token_transformer", "size": "s", "num_head": 1}]},
    {"models": [{"name": "token_transformer", "size": "s", "num_heads": "one"}]},
    {"models": [{"name": "token_transformer", "size": "s", "options": {"num_head": 1}}]},
    {"models": [{"name": "linear", "recipe": {"learning_rat": 0.1}}]},
    {"models": ["my_net:big"], "plugins": ["my_net.py"]}, {"plugins": "my_net.py"}, {"claims": ["attention"]},
    {"seeds": 0}, {"seeds": []}, {"seeds": [-1]}, {"seeds": "3"}, {"seeds": [10_000]},
    {"fractions": [0]}, {"fractions": [1.5]}, {"fractions": 0.1}, {"fractions": None}, {"images_per_class": [2]},
    {"budgets": [{"step": 300}]}, {"budgets": [{"steps": 300, "epochs": 2}]}, {"budgets": [{}]},
    {"budgets": [{"steps": 0}]}, {"budgets": [300]},
    {"recipe": {"learning_rate": 0}}, {"recipe": {"lr": 0.1}}, {"fit": {"harm": 1}}, {"device": "gpu"},
    {"regimes": ["weird"]},
], ids=str)
def test_a_broken_study_is_refused_by_both(change: dict[str, Any], validator: Draft202012Validator,
                                           study_file: Any) -> None:
    assert not validator.is_valid(GOOD | change)
    with pytest.raises(BadStudy):
        resolved(load(study_file(json.dumps(GOOD | change))), import_plugins=False)


def test_every_shipped_model_and_option_is_offered() -> None:
    text = json.dumps(study_schema())
    for name in MODELS.shipped():
        below = MODELS.open_names(name)
        meta = MODELS.get(f"{name}/{below[0]}" if below else name).meta
        assert all(f'"{name}:{size}"' in text for size in meta.sizes)
        assert all(f'"{option}":' in text for option in meta.options.model_fields)
