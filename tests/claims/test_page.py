"""docs/claims.md says of every claim what its file says, and that it is told apart from its null."""

import re
from pathlib import Path

import pytest

from vitbench.claims import CLAIMS

PAGE = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
SECTIONS = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])


def test_every_claim_has_its_section_and_no_other() -> None:
    assert set(SECTIONS) == set(CLAIMS.shipped())
    assert len(SECTIONS) == 18


@pytest.mark.parametrize("name", sorted(CLAIMS.shipped()))
def test_the_section_is_that_of_the_file(name: str) -> None:
    meta, section = CLAIMS.get(name).meta, SECTIONS[name]
    rule = re.sub(r"\s+", " ", CLAIMS.get(name).build.__doc__ or "").strip().replace("|", "\\|")
    for said in (meta.sentence, meta.source, meta.null, f"{meta.margin:g}", rule):
        assert said in section
    if meta.planted is not None:
        assert f"planted: {meta.planted.effect}; stated power {meta.planted.power:g}" in section


@pytest.mark.parametrize("name", sorted(CLAIMS.shipped()))
def test_what_is_not_true_holds_in_20_of_400_studies_at_most_and_what_is_as_often_as_stated(name: str) -> None:
    planted = CLAIMS.get(name).meta.planted
    counts = re.findall(r"in (\d+) of (\d+)", SECTIONS[name])
    if planted is None or planted.exact:
        assert not counts
        return
    *false, (found, studies) = counts
    assert all(int(many) <= 20 and of == "400" for many, of in false)
    assert len(false) == (1 if planted.equivalence else 2)
    assert int(found) / int(studies) >= planted.power
