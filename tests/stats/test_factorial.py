"""Family against size."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats import t_interval
from vitbench.stats.factorial import factorial_2x2

CELLS = ("attention_s", "attention_l", "convolution_s", "convolution_l")


@pytest.mark.parametrize("vector", known("factorial_2x2"))
def test_the_contrasts_are_the_known_answer(vector: dict[str, Any]) -> None:
    cells = vector["inputs"]["error_by_cell_by_seed"]
    found = factorial_2x2(np.reshape([cells[cell] for cell in CELLS], (2, 2, -1)))
    for key in vector["expected"]:
        interval = t_interval(getattr(found, f"{key}_S"), level=vector["inputs"]["level"])
        assert agrees((interval.mean, interval.low, interval.high), vector, key), key


@given(st.lists(st.tuples(*[st.integers(0, 100)] * 4), min_size=1, max_size=6))
def test_the_contrasts_change_places_with_family_and_size(cells: list[tuple[int, ...]]) -> None:
    errors = np.transpose(cells).reshape(2, 2, -1) / 64  # exact in binary
    found, turned, mirrored = factorial_2x2(errors), factorial_2x2(errors.swapaxes(0, 1)), factorial_2x2(errors[::-1])
    assert list(mirrored.family_S) == list(-found.family_S)
    assert list(mirrored.size_S) == list(found.size_S)
    assert list(turned.family_S) == list(-found.size_S)  # size is large minus small
    assert list(turned.interaction_S) == list(found.interaction_S) == list(-mirrored.interaction_S)
    assert list(factorial_2x2(4 * errors).interaction_S) == list(4 * found.interaction_S)


def test_an_effect_of_family_alone_is_found_as_that() -> None:
    found = factorial_2x2([[[0.5], [0.5]], [[0.25], [0.25]]])
    assert (found.family_S[0], found.size_S[0], found.interaction_S[0]) == (0.25, 0, 0)


@pytest.mark.parametrize("errors", [
    np.zeros((2, 3, 6)), np.zeros((3, 2, 6)), np.zeros((2, 2, 0)), np.zeros((2, 2)), np.full((2, 2, 6), np.nan),
    [[[0.1, 0.2], [0.1]], [[0.1, 0.2], [0.1, 0.2]]]], ids=["sizes", "families", "seeds", "axes", "nan", "unequal"])
def test_another_layout_is_refused(errors: Any) -> None:
    with pytest.raises(ValueError, match="found"):
        factorial_2x2(errors)
