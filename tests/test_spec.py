import hashlib
import json
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from vitbench.spec import (
    Budget,
    Recipe,
    RunSpec,
    StreamSeeds,
    canonical_json,
    exact_decimal,
    named_version,
    split_version,
)

BASE: dict[str, Any] = {"dataset": "digits@1", "model": "convnet@1", "fraction": "0.1", "seed": 3,
                        "budget": {"unit": "steps", "amount": 300}}


def spec(**changes: Any) -> RunSpec:
    return RunSpec.model_validate_json(json.dumps({**BASE, **changes}))


def test_a_run_id_is_the_hash_that_the_protocol_says() -> None:
    text = ('{"budget":{"amount":300,"unit":"steps"},"dataset":"digits@1","fraction":"0.1","model":"convnet@1",'
            '"numerics":1,"seed":3}')
    assert spec(numerics=1).run_id == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_explicit_defaults_give_the_id_of_omitted_ones() -> None:
    explicit = spec(size=None, options={}, images_per_class=None, streams=StreamSeeds().model_dump(),
                    recipe=Recipe().model_dump(), regime="none", plugins={})
    assert explicit.run_id == spec().run_id


@pytest.mark.parametrize("name", Recipe.model_fields)
def test_an_explicit_default_beside_another_choice_does_not_rename(name: str) -> None:
    changed = CHANGES["recipe." + ("momentum" if name != "momentum" else "warmup")]["recipe"]
    default = Recipe.model_fields[name].default
    assert spec(recipe={**changed, name: default}).run_id == spec(recipe=changed).run_id


@given(st.permutations(list(BASE)), st.permutations(["b", "a", "c"]))
def test_the_order_of_keys_is_irrelevant(keys: list[str], options: list[str]) -> None:
    shuffled = {key: BASE[key] for key in keys}
    shuffled["budget"] = dict(reversed(BASE["budget"].items()))
    found = RunSpec.model_validate_json(json.dumps({"options": dict.fromkeys(options, 1), **shuffled}))
    assert found.run_id == spec(options={"a": 1, "b": 1, "c": 1}).run_id


@pytest.mark.parametrize("written", ["0.10", ".1", "1e-1", 0.1, " 0.1 "])
def test_one_fraction_has_one_id_however_it_is_written(written: object) -> None:
    assert spec(fraction=written).run_id == spec().run_id


def test_a_whole_number_and_a_decimal_are_one_value_of_a_recipe() -> None:
    assert spec(recipe={"learning_rate": 1}).run_id == spec(recipe={"learning_rate": 1.0}).run_id


# Every field, with a value that differs from BASE and from the default. A new field needs a row.
CHANGES: dict[str, dict[str, Any]] = {
    "numerics": {"numerics": 2}, "dataset": {"dataset": "digits@2"}, "model": {"model": "convnet@2"},
    "dataset_options": {"dataset_options": {"distance": 12}},
    "size": {"size": "s"}, "options": {"options": {"heads": 2}}, "fraction": {"fraction": "0.2"},
    "images_per_class": {"fraction": None, "images_per_class": 5}, "seed": {"seed": 4},
    "regime": {"regime": "light"}, "regime_version": {"regime_version": 2},
    "refit": {"refit": True}, "data.pixels": {"data": {"pixels": "shuffled"}},
    "data.label_noise": {"data": {"label_noise": "0.1"}}, "data.duplicates": {"data": {"duplicates": "masked"}},
    "plugins": {"plugins": {"convnet": "0" * 64}},
    **{f"streams.{name}": {"streams": {name: 3}} for name in StreamSeeds.model_fields},
    "recipe.optimizer": {"recipe": {"optimizer": "sgd"}}, "recipe.learning_rate": {"recipe": {"learning_rate": 0.002}},
    "recipe.weight_decay": {"recipe": {"weight_decay": 0.0}}, "recipe.momentum": {"recipe": {"momentum": 0.8}},
    "recipe.schedule": {"recipe": {"schedule": "one_cycle"}}, "recipe.warmup": {"recipe": {"warmup": 0.2}},
    "recipe.batch_size": {"recipe": {"batch_size": 32}}, "recipe.gradient_clip": {"recipe": {"gradient_clip": 0.0}},
    "recipe.precision": {"recipe": {"precision": "bf16"}},
    "budget.unit": {"budget": {"unit": "epochs", "amount": 300}},
    "budget.amount": {"budget": {"unit": "steps", "amount": 301}},
}


def places(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Dotted names of all fields of a model, those of nested models in place of the model itself."""
    found: list[str] = []
    for name, info in model.model_fields.items():
        inner = info.annotation
        nested = isinstance(inner, type) and issubclass(inner, BaseModel)
        found += places(inner, f"{prefix}{name}.") if nested else [prefix + name]
    return found


def test_every_field_has_a_changed_value_below() -> None:
    assert sorted(CHANGES) == sorted(places(RunSpec))


@pytest.mark.parametrize("place", CHANGES)
def test_every_field_that_matters_changes_the_id(place: str) -> None:
    assert spec(**CHANGES[place]).run_id != spec().run_id


def test_all_these_changes_have_different_ids() -> None:
    ids = {spec(**change).run_id for change in CHANGES.values()}
    assert len(ids) == len(CHANGES)


@pytest.mark.parametrize("place", CHANGES)
def test_a_spec_comes_back_from_its_json(place: str) -> None:
    before = spec(**CHANGES[place])
    after = RunSpec.model_validate_json(before.model_dump_json())
    assert after == before
    assert after.run_id == before.run_id


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        spec().seed = 5


@pytest.mark.parametrize("wrong", [
    {"seed": -1}, {"seed": 2**32}, {"seed": True}, {"seed": "3"}, {"fraction": "0"}, {"fraction": "1.0001"},
    {"fraction": "-0.5"}, {"fraction": "inf"}, {"fraction": "a tenth"}, {"fraction": True}, {"images_per_class": 0},
    {"regime": "heavy"}, {"recipe": {"learning_rate": 0}}, {"recipe": {"lerning_rate": 1}},
    {"recipe": {"warmup": 1}}, {"recipe": {"batch_size": 0}}, {"budget": {"unit": "hours", "amount": 1}},
    {"budget": {"unit": "steps", "amount": 0}}, {"unknown": 1}, {"streams": {"subset": -1}},
    {"streams": {"order": 2**32}}, {"fraction": "1e99999999"}, {"fraction": "1e-99999999"}, {"fraction": 1e-300},
    {"fraction": f"0.{'1' * 29}"}, {"fraction": "sNaN"}, {"fraction": int("9" * 4000)}, {"fraction": "9" * 5000},
], ids=lambda wrong: str(wrong)[:60])
def test_a_wrong_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        spec(**wrong)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value="-1000", max_value="1000", places=12))
def test_an_exact_decimal_keeps_the_value(number: Decimal) -> None:
    text = exact_decimal(str(number))
    assert Decimal(text) == number
    assert exact_decimal(text) == text
    assert "E" not in text.upper()
    assert text == "0" or not ("." in text and text.endswith("0"))


@given(st.floats(min_value=1e-6, max_value=1))
def test_a_float_means_the_decimal_that_a_person_wrote(number: float) -> None:
    assert float(exact_decimal(number)) == number


@given(st.integers(1, 10**28 - 1), st.integers(0, 28))
def test_an_exact_decimal_is_never_rounded(digits: int, places: int) -> None:
    written = Decimal(digits).scaleb(-places, Context(prec=60))
    assert Fraction(exact_decimal(str(written))) == Fraction(digits, 10**places)


def test_twenty_nine_hundredths_is_exact() -> None:
    assert int(0.29 * 100) == 28  # the trap
    assert Decimal(exact_decimal(0.29)) * 100 == 29


@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False),
                                            st.text(), st.booleans(), st.none())))
def test_canonical_json_is_one_text_for_one_value(value: dict[str, Any]) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(dict(reversed(value.items()))) == text


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_canonical_json_refuses_what_is_no_json(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"x": number})


@pytest.mark.parametrize(("unit", "amount", "steps"), [
    ("steps", 300, 300), ("steps", 1, 1),
    ("epochs", 1, 4), ("epochs", 2, 7),  # 100 and 200 images in batches of 32, the last one filled
    ("flops", 6 * 1000 * 32, 1), ("flops", 6 * 1000 * 32 * 2 - 1, 1), ("flops", 6 * 1000 * 32 * 2, 2),
])
def test_a_budget_buys_whole_steps(unit: Any, amount: int, steps: int) -> None:
    assert Budget(unit=unit, amount=amount).steps(train_images=100, batch_size=32, macs=1000) == steps


def test_steps_and_epochs_ask_for_no_operations() -> None:
    assert Budget(unit="steps", amount=3).steps(100, 32, macs=0) == 3


def test_a_flops_budget_that_buys_no_step_says_what_one_costs() -> None:
    with pytest.raises(ValueError, match="192,000 flops"):
        Budget(unit="flops", amount=6 * 1000 * 32 - 1).steps(train_images=100, batch_size=32, macs=1000)


@given(st.integers(1, 10**20), st.integers(1, 10**9), st.integers(1, 65536), st.integers(1, 10**12))
def test_a_flops_budget_is_never_overdrawn_by_as_much_as_a_step(amount: int, images: int, batch: int,
                                                               macs: int) -> None:
    step = 6 * macs * batch
    if amount >= step:
        assert 0 <= amount - step * Budget(unit="flops", amount=amount).steps(images, batch, macs) < step


@given(st.text(min_size=1), st.integers(0, 10**6))
def test_a_version_comes_back_from_a_versioned_name(name: str, version: int) -> None:
    assert split_version(named_version(name, version)) == (name, version)
