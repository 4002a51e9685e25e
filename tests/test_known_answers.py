import pytest

from tests.known_answers import agrees, known


@pytest.mark.parametrize("kind", ["stratified_counts", "fit_state", "t_interval"])
def test_every_kind_under_test_has_vectors(kind: str) -> None:
    assert len(known(kind)) >= 3


def test_a_kind_without_vectors_is_an_error_rather_than_no_test() -> None:
    with pytest.raises(LookupError):
        known("no_such_kind")


@pytest.mark.parametrize(("found", "expected", "same"), [
    (1.0, 1.0, True), (1.0 + 5e-10, 1.0, True), (1.0 + 5e-9, 1.0, False), (1e6 + 5e-4, 1e6, True),
    (None, None, True), (None, 0.0, False), (0.0, None, False), ("fit", "fit", True), ("fit", "overfit", False),
    (True, False, False),
])
def test_agreement_is_judged_by_the_vectors_tolerance(found: object, expected: object, same: bool) -> None:
    assert agrees(found, {"expected": {"x": expected}, "tolerance": 1e-9}, "x") is same
