"""docs/protocol.md names a test for each rule, and each of these tests exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)
IN_FORCE = {*range(1, 20), 28, 29, 30}


@cache
def functions_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def missing(named: list[tuple[str, str]]) -> list[str]:
    return [f"{path}::{name}" for path, name in named
            if not (ROOT / path).is_file() or name not in functions_in(path)]


def test_every_test_that_the_page_names_exists() -> None:
    assert len(NAMED) > 50
    assert missing(NAMED) == []


def test_a_test_that_is_gone_is_seen() -> None:
    assert missing([("tests/test_subset.py", "test_no_such_thing"), ("tests/test_no_such_file.py", "test_x")]) != []


def test_every_rule_in_force_has_a_row_with_a_test() -> None:
    rows = dict(re.findall(r"^\| (\d+) \|(.*)$", TEXT, re.M))
    assert {int(rule) for rule in rows} == IN_FORCE
    assert all("::test_" in row for row in rows.values())
