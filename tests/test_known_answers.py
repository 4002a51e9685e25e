import re
from pathlib import Path

import pytest

from tests.known_answers import VECTORS, agrees, known

TESTS = Path(__file__).parent
# Kinds whose functions are still to be written. Take out, never add.


@pytest.mark.parametrize("kind", ["stratified_counts", "fit_state", "t_interval"])
def test_every_kind_under_test_has_vectors(kind: str) -> None:
    assert len(known(kind)) >= 3


def test_a_kind_without_vectors_is_an_error_rather_than_no_test() -> None:
    with pytest.raises(LookupError):
        known("no_such_kind")


@pytest.mark.parametrize(("found", "expected", "same"), [
    (1.0, 1.0, True), (1.0 + 5e-10, 1.0, True), (1.0 + 5e-9, 1.0, False), (1e6 + 5e-4, 1e6, True),
    (None, None, True), (None, 0.0, False), (0.0, None, False), ("fit", "fit", True), ("fit", "overfit", False),
    (True, False, False), (float("inf"), "inf", True), (float("-inf"), "inf", False), (1.0, "inf", False),
    ([1.0, 2.0], [1.0, 2.0 + 1e-12], True), ([1.0, 2.0], [1.0, 2.1], False), ([1.0], [1.0, 2.0], False),
    ([["a"], ["b"]], [["a"], ["b"]], True), ([["a"], ["b"]], [["a"], ["c"]], False),
])
def test_agreement_is_judged_by_the_vectors_tolerance(found: object, expected: object, same: bool) -> None:
    assert agrees(found, {"expected": {"x": expected}, "tolerance": 1e-9}, "x") is same


def kinds_used() -> set[str]:
    """What the test files take from vectors.json, but for this one."""
    return {kind for path in TESTS.rglob("test_*.py") if path != Path(__file__)
            for kind in re.findall(r'\bknown\("(\w+)"\)', path.read_text(encoding="utf-8"))}


def test_every_kind_of_known_answer_is_a_test() -> None:
    kinds = {vector["kind"] for vector in VECTORS}
    assert len(kinds) > 30
    assert kinds - kinds_used() == set()
