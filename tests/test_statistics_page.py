"""docs/statistics.md names every public function of vitbench.stats, and what it names exists."""

import ast
import re
from pathlib import Path

import pytest

from benchmarks.intervals import DRAWS, SYMMETRIC, coverage

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`vitbench\.stats\.(\w+)\.(\w+)`", TEXT))
ROWS = [line for line in TEXT.splitlines() if line.startswith("|") and "`vitbench.stats." in line]


def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def public() -> set[tuple[str, str]]:
    return {(path.stem, name) for path in (ROOT / "vitbench" / "stats").glob("*.py") for name in functions_in(path)
            if not name.startswith("_")}


def test_every_public_function_is_on_the_page_and_every_name_there_exists() -> None:
    assert len(public()) > 30
    assert public() - NAMED == set(), "add these to docs/statistics.md"
    assert NAMED - public() == set()


def test_every_test_named_there_exists() -> None:
    files = re.findall(r"`(tests/[\w/]+\.\w+)(?:::(\w+))?`", TEXT)
    assert len(files) > 40
    for file, name in files:
        assert (ROOT / file).is_file(), file
        assert not name or name in functions_in(ROOT / file), f"{file}::{name}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_statistic_has_a_formula_a_test_and_a_simulation_or_says_why_none(row: str) -> None:
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
    assert len(cells) == 6
    statistic, formula, _source, _function, test, simulation = cells
    assert statistic
    assert formula
    assert "`tests/stats/" in test
    assert simulation


def test_every_link_within_the_page_leads_to_a_heading() -> None:
    anchors: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", TEXT, re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        anchors.append(f"{plain}-{anchors.count(plain)}" if plain in anchors else plain)
    links = set(re.findall(r"\]\(#([^)]*)\)", TEXT))
    assert len(links) >= 4
    assert links <= set(anchors)


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("n", [6, 10, 20])
def test_t_covers_93_to_97_percent_and_what_the_page_says(name: str, n: int) -> None:
    found = coverage(DRAWS[name], n, methods=("t",))["t"]
    assert 0.93 <= found <= 0.97
    assert f"| {name} | {n} | {100 * found:.1f} |" in TEXT
