"""Who shares the first place."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import known
from vitbench.stats.ties import best_or_tied

SCORES = st.lists(st.lists(st.integers(0, 100).map(lambda k: k / 128), min_size=6, max_size=6), min_size=1, max_size=5)


@pytest.mark.parametrize("vector", known("best_or_tied"))
def test_best_and_bold_are_the_known_answer(vector: dict[str, Any]) -> None:
    given, expected = vector["inputs"], vector["expected"]
    found = best_or_tied(dict(zip(given["models"], given["score_model_by_seed"], strict=True)))
    assert (found.best, list(found.bold)) == (expected["best"], expected["bold"])
    assert found.holm_p == pytest.approx(expected["holm_p"], abs=vector["tolerance"])


@given(SCORES, st.randoms())
def test_order_of_models_and_seeds_and_scale_are_irrelevant(rows: list[list[float]], random: Any) -> None:
    scores = {f"model {m}": row for m, row in enumerate(rows)}
    found, order = best_or_tied(scores), random.sample(range(6), 6)
    moved = {name: [4 * scores[name][s] for s in order] for name in random.sample(sorted(scores), len(scores))}
    again = best_or_tied(moved)
    assert (again.best, again.bold) == (found.best, found.bold)
    assert again.holm_p == pytest.approx(found.holm_p)
    assert found.best in found.bold


def test_identical_models_share_the_first_place() -> None:
    row = [0.95, 0.94, 0.96, 0.95, 0.93, 0.97]
    assert best_or_tied({"b": row, "a": list(row)}).bold == ("a", "b")
    assert best_or_tied({"a": row}).bold == ("a",)


def test_models_that_rounding_alone_sets_apart_share_the_first_place() -> None:
    a, b = [0.1 + 0.2] * 6, [0.3] * 6
    assert a != b
    assert best_or_tied({"a": a, "b": b}).bold == ("a", "b")


def test_nothing_is_bold_below_six_seeds() -> None:
    found = best_or_tied({"a": [0.9] * 5, "b": [0.1, 0.2, 0.1, 0.2, 0.1]})
    assert (found.best, found.bold, found.holm_p) == ("a", (), {})


@pytest.mark.parametrize("scores", [
    {}, {"a": []}, {"a": [0.1] * 6, "b": [0.1] * 5}, {"a": [0.1] * 5 + [float("nan")]}], ids=str)
def test_what_is_no_table_is_refused(scores: Any) -> None:
    with pytest.raises(ValueError, match="expected finite values of layout M >= 1 x S >= 1; found"):
        best_or_tied(scores)


def test_identical_models_under_two_names_are_both_bold_in_95_of_100_studies() -> None:
    rng = np.random.default_rng(11)
    both = [len(best_or_tied(dict(zip("ab", rng.normal(0, 1, (2, 6)), strict=True))).bold) == 2 for _ in range(2000)]
    assert 0.93 <= np.mean(both) <= 0.97
