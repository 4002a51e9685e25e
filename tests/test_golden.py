import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import golden
from tests.golden import GoldenChanged, defaults, ids, merged, read
from vitbench.spec import NUMERICS, Frozen, Recipe


def test_no_default_has_changed() -> None:
    merged(read("defaults.json"), defaults())  # raises with advice


def test_every_default_is_in_the_golden_file() -> None:
    missing = sorted(set(defaults()) - set(read("defaults.json")))
    assert not missing, f"new defaults {missing}: run `python -m tests.golden` and commit what it adds"


def test_no_run_id_has_changed() -> None:
    kept = {entry["name"]: entry.get("id", "none yet: run `python -m tests.golden`") for entry in read("ids.json")}
    assert ids() == kept, ("A run id has changed: all stored results of such runs would be orphaned. Give a new field "
                           "a default that leaves old runs as they are, or take the change back (protocol rule 29).")


def test_there_are_twenty_ids_and_all_differ() -> None:
    entries = read("ids.json")
    assert len(entries) >= 20
    assert len({entry["id"] for entry in entries}) == len(entries)


def test_numerics_is_at_least_one_and_never_left_out_of_an_id() -> None:
    assert NUMERICS >= 1
    first, last = ({e["name"]: e for e in read("ids.json")}[name] for name in ("plain", "next numerics"))
    assert {**first["spec"], "numerics": 2} == last["spec"]
    assert first["id"] != last["id"]


def test_the_defaults_of_all_schemas_and_sizes_are_there() -> None:
    kept = read("defaults.json")
    for name in ("Recipe.batch_size", "StreamSeeds.init", "RunSpec.regime", "FitRule.time_harm", "Study.seeds",
                 "convnet@1:s.width", "token_transformer@1:xl.depth"):
        assert name in kept


@pytest.mark.parametrize(("found", "words"), [
    ({"a": 1, "b": [2]}, None), ({"a": 1, "b": [2], "c": 3}, None), ({"a": 2, "b": [2]}, "a: 1 -> 2"),
    ({"a": 1}, r"b: \[2\] -> gone"), ({"a": 1, "b": [2, 3]}, r"b: \[2\] -> \[2, 3\]"),
])
def test_merging_adds_and_never_changes(found: dict[str, Any], words: str | None) -> None:
    kept = {"a": 1, "b": [2]}
    if words is None:
        assert merged(kept, found) == found
    else:
        with pytest.raises(GoldenChanged, match=words):
            merged(kept, found)


def test_a_later_version_of_a_model_leaves_the_earlier_ones_defaults_in_the_file() -> None:
    kept = {"net@1:s.width": 8, "net@1.depth": 2, "other@1:s.width": 3}
    found = {"net@2:s.width": 9, "other@1:s.width": 3}
    assert merged(kept, found) == {**kept, **found}
    for gone in ({"net@2:s.width": 9}, {"other@1:s.width": 3}, {**found, "net@1:s.width": 9}):
        with pytest.raises(GoldenChanged, match="rule 29"):
            merged(kept, gone)


def test_a_changed_default_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Changed(Recipe):
        batch_size: int = 65

    Changed.__name__ = "Recipe"
    monkeypatch.setattr(golden, "Recipe", Changed)
    with pytest.raises(GoldenChanged, match=r"Recipe.batch_size: 64 -> 65"):
        merged(read("defaults.json"), defaults())


def test_a_new_field_in_a_nested_schema_changes_no_default_of_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Inner(Frozen):
        x: int = 1

    class Outer(Frozen):
        inner: Inner = Inner()
        many: tuple[Inner, ...] = (Inner(x=2),)

    monkeypatch.setattr(golden, "Study", Outer)
    before = {k: v for k, v in defaults().items() if k.startswith("Outer.")}
    assert before == {"Outer.inner": {}, "Outer.many": [{"x": 2}]}


def test_the_command_adds_what_is_new_and_refuses_to_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("defaults.json", "ids.json"):
        (tmp_path / name).write_bytes((golden.FOLDER / name).read_bytes())
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    kept, entries = read("defaults.json"), read("ids.json")
    assert golden.regenerate() == []
    golden.write("defaults.json", {k: v for k, v in kept.items() if k != "Recipe.momentum"})
    golden.write("ids.json", [*entries[:-1], {k: v for k, v in entries[-1].items() if k != "id"}])
    assert golden.regenerate() == ["Recipe.momentum", entries[-1]["name"]]
    assert read("ids.json") == entries
    assert read("defaults.json") == kept
    for name, wrong in (("defaults.json", {**kept, "Recipe.momentum": 0.8}),
                        ("ids.json", [{**entries[0], "id": "0" * 16}, *entries[1:]])):
        good = (tmp_path / name).read_text()
        golden.write(name, wrong)
        with pytest.raises(GoldenChanged):
            golden.regenerate()
        assert read(name) == wrong
        (tmp_path / name).write_text(good)


def test_the_golden_files_are_as_the_command_writes_them() -> None:
    before = {name: (golden.FOLDER / name).read_text() for name in ("defaults.json", "ids.json")}
    done = subprocess.run([sys.executable, "-m", "tests.golden"], cwd=golden.FOLDER.parents[1], capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.stdout == "nothing is new\n", done.stderr
    assert before == {name: (golden.FOLDER / name).read_text() for name in before}
    assert all(json.loads(text) for text in before.values())
