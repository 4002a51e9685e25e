"""The front of cost and accuracy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats.pareto import pareto_front

POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


@pytest.mark.parametrize("vector", known("pareto_front"))
def test_the_front_is_the_known_answer(vector: dict[str, Any]) -> None:
    assert agrees(pareto_front(vector["inputs"]["cost"], vector["inputs"]["accuracy"]), vector, "front")


@given(POINTS)
def test_the_front_is_what_none_dominates(points: list[tuple[int, int]]) -> None:
    front = [m for m, (c, a) in enumerate(points)
             if not any(d <= c and b >= a and (d, b) != (c, a) for d, b in points)]
    assert pareto_front(*zip(*points, strict=True)) == front


@given(POINTS)
def test_any_rising_scale_leaves_the_front(points: list[tuple[int, int]]) -> None:
    cost, accuracy = np.transpose(points)
    assert pareto_front(np.exp(cost), 2.0 * accuracy - 7) == pareto_front(cost, accuracy)


@pytest.mark.parametrize(("cost", "accuracy"), [([], []), ([1], [0.1, 0.2]), ([1, float("inf")], [0.1, 0.2]),
                                                ([1.0], [float("nan")])])
def test_what_is_no_set_of_models_is_refused(cost: list[float], accuracy: list[float]) -> None:
    with pytest.raises(ValueError, match="found"):
        pareto_front(cost, accuracy)
