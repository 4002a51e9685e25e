from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import known
from vitbench.stats import t_interval
from vitbench.stats.crossover import crossing, crossover_set

SIZES = [30.0, 120.0, 480.0, 1920.0]
differences = st.lists(st.lists(st.integers(-30, 30).map(lambda k: k / 360), min_size=4, max_size=4), min_size=2,
                       max_size=8)


@pytest.mark.parametrize("vector", known("crossover"))
def test_outcome_and_sizes_are_the_known_ones(vector: dict[str, Any]) -> None:
    found = crossing(vector["inputs"]["sizes"], vector["inputs"]["mean_difference_attention_minus_cnn"])
    assert found.outcome == vector["expected"]["outcome"]
    assert found.sizes == pytest.approx(vector["expected"]["n_star"], rel=vector["tolerance"])


@pytest.mark.parametrize("vector", known("crossover_set"))
def test_pieces_and_open_ends_are_the_known_ones(vector: dict[str, Any]) -> None:
    inputs, expected = vector["inputs"], vector["expected"]
    found = crossover_set(inputs["sizes"], np.array(inputs["difference_seed_by_size"]), level=inputs["level"])
    assert len(found.pieces) == len(expected["intervals"])
    for piece, ends in zip(found.pieces, expected["intervals"], strict=True):
        assert piece == pytest.approx(ends, rel=vector["tolerance"])
    assert (found.open_left, found.open_right) == (expected["open_left"], expected["open_right"])


def test_differences_that_are_all_nothing_are_tied_though_rounding_leaves_something() -> None:
    mean = float(np.mean([0.1, 0.2, -0.3]))
    assert mean != 0
    assert crossing([10, 100], [mean, -mean]).outcome == "tied_everywhere"


@given(differences)
def test_a_size_is_in_the_set_where_the_t_interval_of_the_interpolated_seeds_holds_0(rows: list[list[float]]) -> None:
    difference, logs = np.array(rows), np.log(SIZES)
    found = crossover_set(SIZES, difference)
    edges = [edge for piece in found.pieces for edge in piece]
    for n in np.geomspace(SIZES[0], SIZES[-1], 97):
        if edges and min(abs(np.log(n / edge)) for edge in edges) < 1e-6:
            continue
        interval = t_interval([float(np.interp(np.log(n), logs, row)) for row in difference])
        assert interval.low is not None
        assert interval.high is not None
        if min(abs(interval.low), abs(interval.high)) > 1e-9:
            inside = any(low <= n <= high for low, high in found.pieces)
            assert inside == (interval.low <= 0 <= interval.high), n


@given(differences)
def test_pieces_are_in_order_apart_and_in_the_range(rows: list[list[float]]) -> None:
    found = crossover_set(SIZES, np.array(rows))
    assert all(SIZES[0] <= low <= high <= SIZES[-1] for low, high in found.pieces)
    assert all(one[1] < other[0] for one, other in pairwise(found.pieces))
    assert found.open_left == any(low == SIZES[0] for low, _ in found.pieces)
    assert found.open_right == any(high == SIZES[-1] for _, high in found.pieces)


@given(differences, st.randoms(use_true_random=False), st.sampled_from([0.5, 3.0, 1000.0]))
def test_order_of_seeds_changes_nothing_and_sizes_scale(rows: list[list[float]], random: Any, by: float) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = (crossover_set(sizes, np.array(of)) for sizes, of in (
        (SIZES, rows), ([by * n for n in SIZES], shuffled)))
    assert np.array(other.pieces) == pytest.approx(by * np.array(one.pieces), rel=1e-6)
    first, second = (crossing(sizes, np.array(of).mean(axis=0)) for sizes, of in (
        (SIZES, rows), ([by * n for n in SIZES], shuffled)))
    assert first.outcome == second.outcome
    assert second.sizes == pytest.approx([by * n for n in first.sizes], rel=1e-9)


@given(differences)
def test_every_crossing_of_the_means_lies_in_the_set(rows: list[list[float]]) -> None:
    difference = np.array(rows)
    found = crossover_set(SIZES, difference)
    for n in crossing(SIZES, difference.mean(axis=0)).sizes:
        assert any(low * (1 - 1e-9) <= n <= high * (1 + 1e-9) for low, high in found.pieces)


@given(differences)
def test_exchanged_models_exchange_the_names(rows: list[list[float]]) -> None:
    mirror = {"overtakes": "is_overtaken", "is_overtaken": "overtakes", "ahead_everywhere": "no_crossover_up_to_N",
              "no_crossover_up_to_N": "ahead_everywhere"}
    means = np.array(rows).mean(axis=0)
    one, other = crossing(SIZES, means), crossing(SIZES, -means)
    assert other.outcome == mirror.get(one.outcome, one.outcome)
    assert one.sizes == other.sizes
    assert crossover_set(SIZES, np.array(rows)).pieces == crossover_set(SIZES, -np.array(rows)).pieces


def test_a_difference_without_deviation_leaves_the_crossing_alone() -> None:
    found = crossover_set([10, 1000], np.tile([-0.1, 0.1], (6, 1)))
    assert len(found.pieces) == 1
    assert found.pieces[0] == pytest.approx((100, 100))
    assert crossover_set([10, 100, 1000], np.tile([-0.1, 0, 0.1], (6, 1))).pieces == ((100, 100),)


def test_equal_models_leave_every_size_open() -> None:
    found = crossover_set(SIZES, np.zeros((6, 4)))
    assert (found.pieces, found.open_left, found.open_right) == (((30, 1920),), True, True)


@pytest.mark.parametrize(("differences", "pieces"), [([0.1, -0.1], ((30, 30),)), ([0.1, 0.2], ((30, 30),)),
                                                    ([0.1, 0.1], ())])
def test_one_size_is_in_the_set_or_not(differences: list[float], pieces: Any) -> None:
    assert crossover_set([30], np.array([differences]).T).pieces == pieces


@pytest.mark.parametrize(("sizes", "difference", "match"), [
    ([10, 100], [[0.1, 0.1]], "two seeds"), ([10, 10], [[0.1, 0.1]] * 2, "that rise"),
    ([0, 10], [[0.1, 0.1]] * 2, "above 0"), ([10, 100], [[0.1, np.nan]] * 2, "finite"),
    ([10], [[0.1, 0.1]] * 2, "at each"), ([], [[]] * 2, "at each"),
])
def test_what_has_no_set_is_refused(sizes: list[float], difference: list[list[float]], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        crossover_set(sizes, np.array(difference))
