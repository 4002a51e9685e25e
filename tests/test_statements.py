"""The pages of the statements: their commands can be given, their figures are there, every probe has its page."""

import re
import shlex
from pathlib import Path

import pytest

from vitbench.config import find, load
from vitbench.config.strict_yaml import parse
from vitbench.grid import select
from vitbench.options import validated
from vitbench.probes import PROBES
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder
from vitbench.study.meaning import resolved

FOLDER = Path(__file__).parents[1] / "docs" / "statements"
PAGES = sorted(FOLDER.glob("*.md"))
COMMANDS = [(page.name, line.strip()) for page in PAGES for line in page.read_text().splitlines()
            if line.startswith("    vitbench probe ")]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    loaded = load(find("mechanisms_digits", tmp_path_factory.mktemp("none")))
    of, names = resolved(loaded, import_plugins=False)
    return StudyFolder(loaded.name, of, names, ResultStore(tmp_path_factory.mktemp("results") / loaded.name))


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{page} {i}" for i, (page, _) in enumerate(COMMANDS)])
def test_the_command_on_a_page_can_be_given(page: str, command: str, study: StudyFolder) -> None:
    words = shlex.split(command)[2:]
    figure = words[words.index("--figure") + 1]
    name, *others = words[:words.index("--figure")]
    meta = PROBES.get(name).meta
    only = others.pop(others.index("--only") + 1) if "--only" in others else None
    named = [word for word in others if "=" not in word and word != "--only"]
    assert named in ([], ["mechanisms_digits"])
    assert ("mechanism" if not named else "study" if meta.looks_at == ("study",) else "runs") in meta.looks_at
    assert select(study.runs, only)
    validated(name, meta.options, {}, parse("{}", [word for word in others if "=" in word]))
    text = (FOLDER / page).read_text()
    picture = re.search(rf"!\[([^\]]+)\]\({re.escape(figure.removeprefix('docs/statements/'))}\)", text)
    assert picture is not None, "the figure of each command stands below it"
    assert (FOLDER.parents[1] / figure).read_text().startswith("<svg"), figure


def test_every_probe_has_a_page_and_every_page_stands_in_the_list() -> None:
    index = (FOLDER / "README.md").read_text()
    assert set(PROBES.shipped()) == {shlex.split(command)[2] for _, command in COMMANDS}
    assert {page.name for page in PAGES} - {"README.md"} == set(re.findall(r"\]\((\w+\.md)\)", index))


def test_nothing_on_a_page_waits_for_its_command() -> None:
    assert [page.name for page in PAGES if "not measured yet" in page.read_text()] == []
