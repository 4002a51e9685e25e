from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import known
from vitbench.stats.efficiency import data_efficiency

SIZES = [25, 50, 100, 200, 400, 800]
hits = st.lists(st.lists(st.integers(0, 360).map(lambda k: k / 360), min_size=6, max_size=6), min_size=3, max_size=3)


@pytest.mark.parametrize("vector", known("data_efficiency"))
def test_signs_and_factors_are_the_known_ones(vector: dict[str, Any]) -> None:
    inputs = vector["inputs"]
    found = data_efficiency(inputs["sizes"], np.array([inputs["error_cnn"]]), np.array([inputs["error_attention"]]))
    for one, (sign, value) in zip(found, vector["expected"]["factor"], strict=True):
        assert (one.sign, one.low, one.high) == (sign, None, None)
        assert one.value == pytest.approx(value, rel=vector["tolerance"])


@given(hits, hits)
def test_the_interval_holds_the_factor_and_is_open_where_the_range_ends(one: Any, other: Any) -> None:
    for found in data_efficiency(SIZES, np.array(one), np.array(other)):
        assert found.low is None or found.low <= found.value * (1 + 1e-9)
        assert found.high is None or found.high >= found.value * (1 - 1e-9)
        assert (found.high is None) >= (found.sign == ">")
        assert (found.low is None) >= (found.sign == "<=")
        assert SIZES[0] / found.images * (1 - 1e-9) <= found.value <= SIZES[-1] / found.images * (1 + 1e-9)


@given(hits, hits, st.permutations(range(3)))
def test_order_of_seeds_changes_nothing(one: Any, other: Any, order: list[int]) -> None:
    first = data_efficiency(SIZES, np.array(one), np.array(other))
    second = data_efficiency(SIZES, np.array(one)[order], np.array(other)[order])
    for a, b in zip(first, second, strict=True):
        assert (a.sign, a.low is None, a.high is None) == (b.sign, b.low is None, b.high is None)
        assert b.value == pytest.approx(a.value)


def test_a_model_against_itself_needs_as_many_images() -> None:
    errors = np.random.default_rng(0).normal([0.5, 0.4, 0.3, 0.2, 0.15, 0.1], 0.002, (6, 6))
    found = data_efficiency(SIZES, errors, errors)
    assert [one.sign for one in found] == ["="] * 6
    assert [one.value for one in found] == pytest.approx([1] * 6)


def test_equal_errors_at_the_smallest_size_are_reached_there() -> None:
    first, *_ = data_efficiency([10, 100], np.array([[0.5, 0.1]]), np.array([[0.5, 0.3]]))
    assert (first.sign, first.value) == ("=", 1)


def test_a_rising_curve_is_pooled_before_it_is_read() -> None:
    """By chance attention is below .3 at 50 images already; pooled with the next two sizes it is from 200 on."""
    attention = np.array([[0.5, 0.29, 0.41, 0.35, 0.2, 0.1]])
    found = data_efficiency(SIZES, np.array([[0.3, 0.29, 0.28, 0.27, 0.26, 0.25]]), attention)
    assert 200 < found[0].value * 25 < 400


def test_an_interval_of_what_was_never_reached_begins_at_the_end_of_the_range() -> None:
    errors = np.tile(np.linspace(0.2, 0.1, 6), (6, 1))
    found = data_efficiency(SIZES, errors, errors + 0.5)[2]
    assert (found.sign, found.value, found.low, found.high) == (">", 8, 8, None)
    found = data_efficiency(SIZES, errors + 0.5, errors)[2]
    assert (found.sign, found.value, found.low, found.high) == ("<=", 0.25, None, 0.25)


@pytest.mark.parametrize(("one", "other"), [((2, 6), (3, 6)), ((2, 5), (2, 5)), ((0, 6), (0, 6)), ((6,), (6,))])
def test_other_shapes_are_refused(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="for each seed and size"):
        data_efficiency(SIZES, np.zeros(one), np.zeros(other))
