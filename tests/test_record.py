import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.made_records import HITS, a_record
from vitbench import record as record_module
from vitbench.record import DamagedRecord, ForeignRecord, RunRecord, pack_hits
from vitbench.spec import canonical_json, sha256_json


def resealed(change: Callable[[dict[str, Any]], object]) -> bytes:
    """A record's text with a changed content and a content hash that fits it."""
    content = json.loads(a_record().to_json())
    del content["sha256"]
    change(content)
    return canonical_json({**content, "sha256": sha256_json(content)}).encode()


def without_hash(found: RunRecord) -> RunRecord:
    return found.model_copy(update={"sha256": ""})


def test_a_record_comes_back_from_its_json() -> None:
    assert without_hash(RunRecord.from_json(a_record().to_json().encode())) == a_record()


def test_a_record_read_and_written_again_has_the_same_bytes() -> None:
    text = a_record().to_json()
    assert RunRecord.from_json(text.encode()).to_json() == text


def test_a_flipped_bit_is_found_or_changes_nothing() -> None:
    text = a_record().to_json().encode()
    bits = random.Random(0)
    unnoticed = 0
    for place in range(len(text)):
        for bit in (bits.randrange(8), 5):  # bit 5 turns e into E, the only change that means the same
            damaged = bytearray(text)
            damaged[place] ^= 1 << bit
            try:
                found = RunRecord.from_json(bytes(damaged))
            except DamagedRecord:
                continue
            assert without_hash(found) == a_record(), (place, bit)
            unnoticed += 1
    assert unnoticed <= 2  # 1e-05 written 1E-05


def test_the_hash_is_what_finds_most_flipped_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    # The proof that the test above can fail: without the content hash another number passes for the record.
    monkeypatch.setattr(record_module, "sha256_json", lambda content: "e" * 64)
    text = a_record().to_json().replace('"train_loss":0.01', '"train_loss":0.02')
    assert RunRecord.from_json(text.encode()).final.train_loss == 0.02


@pytest.mark.parametrize("keep", [0, 1, 2, 100, -1, -2])
def test_a_torn_record_is_found(keep: int) -> None:
    whole = a_record().to_json().rstrip().encode()
    with pytest.raises(DamagedRecord):
        RunRecord.from_json(whole[:keep])


@given(st.binary(max_size=200))
def test_any_bytes_are_a_damaged_record(text: bytes) -> None:
    with pytest.raises(DamagedRecord):
        RunRecord.from_json(text)


@pytest.mark.parametrize("text", [
    "null", "[]", "3", '"x"', "{}", '{"sha256": 3}', "[" * 100_000, '{"sha256":"' + "0" * 64 + '","x":NaN}',
    '{"sha256":"' + "0" * 64 + '","x":"\\ud800"}', '{"sha256":"' + "0" * 64 + '","x":1e999}',
    '{"sha256":"x","x":' + "9" * 5000 + "}", '{"sha256":"x","x":' + '{"x":' * 900 + "1" + "}" * 900 + "}",
], ids=lambda text: text[:12] + text[-8:])
def test_json_that_is_no_record_is_damaged_and_nothing_else(text: str) -> None:
    with pytest.raises(DamagedRecord):
        RunRecord.from_json(text.encode())


def test_a_record_of_another_run_is_found_though_its_hash_fits() -> None:
    with pytest.raises(DamagedRecord, match="does not follow from its configuration"):
        RunRecord.from_json(resealed(lambda content: content["spec"].update(seed=4)))


def test_a_record_of_another_schema_says_which() -> None:
    with pytest.raises(ForeignRecord, match="in schema 2; this version reads schema 1"):
        RunRecord.from_json(resealed(lambda content: content.update(schema_number=2)))


def test_a_field_that_this_version_does_not_know_is_named() -> None:
    with pytest.raises(ForeignRecord, match="energy_joules"):
        RunRecord.from_json(resealed(lambda content: content["cost"].update(energy_joules=3.5)))


def test_a_record_from_before_a_field_was_added_stays_readable() -> None:
    class Later(RunRecord):
        energy_joules: float | None = None

    old = a_record().to_json()
    found = Later.from_json(old.encode())
    assert found.energy_joules is None
    assert found.run_id == a_record().run_id


@pytest.mark.parametrize("field", ["reason", "predictions_sha256", "test_correct"])
def test_a_record_without_an_optional_field_is_readable(field: str) -> None:
    found = RunRecord.from_json(resealed(lambda content: content.pop(field)))
    assert getattr(found, field) is None


@pytest.mark.parametrize("wrong", [
    {"outcome": "failed"}, {"run_id": "xyz"}, {"predictions_sha256": "c" * 63}, {"seconds": 1},
    {"card": {"stem": float("inf")}}, {"card": {"stem": [1]}},
], ids=str)
def test_a_wrong_value_makes_no_record(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_record(**wrong)


def test_numbers_that_are_not_finite_are_none_in_a_record() -> None:
    with pytest.raises(ValidationError):
        a_record(final={"test_loss": float("nan")})


@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_hits_come_back_from_their_bits(hits: list[bool]) -> None:
    data = a_record().data.model_copy(update={"test_images": len(hits)})
    found = a_record(data=data, test_correct=pack_hits(np.array(hits))).correct_I()
    assert found is not None
    assert found.tolist() == hits


def test_a_run_that_diverged_has_no_hits() -> None:
    assert a_record(outcome="diverged", reason="loss is not finite", test_correct=None).correct_I() is None


def test_hits_of_the_made_record_are_its_test_accuracy() -> None:
    assert HITS.mean() == a_record().final.test_accuracy


def test_a_record_from_before_weights_were_kept_is_read_as_it_is() -> None:
    content = json.loads(a_record().to_json())
    del content["sha256"], content["weights_sha256"]
    text = canonical_json({**content, "sha256": sha256_json(content)})
    assert RunRecord.from_json(text.encode()).weights_sha256 is None


def test_a_record_in_another_writing_is_whole_and_a_changed_digit_is_not() -> None:
    text = a_record().to_json()
    loosely = json.dumps(json.loads(text), indent=1)
    assert RunRecord.from_json(loosely.encode()) == RunRecord.from_json(text.encode())
    for changed in (text.replace("812.5", "812.6"), loosely.replace("812.5", "812.6"), text.replace(" ", "  ", 1)):
        if changed in (text, loosely):
            continue
        with pytest.raises(DamagedRecord, match="content hash"):
            RunRecord.from_json(changed.encode())
