from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats import sign_flip_p
from vitbench.stats.sign_flip import SAMPLES

FEW = st.lists(st.integers(-9, 9).map(lambda k: k / 10), min_size=1, max_size=8)


@pytest.mark.parametrize("vector", known("signflip_p"))
def test_the_p_is_the_known_one(vector: dict[str, Any]) -> None:
    assert agrees(sign_flip_p(vector["inputs"]["differences"]), vector, "p")


@given(FEW)
def test_every_pattern_is_counted(values: list[float]) -> None:
    tenths = [round(10 * value) for value in values]  # whole numbers: no tie is missed
    patterns = product((-1, 1), repeat=len(tenths))
    sums = [abs(sum(sign * k for sign, k in zip(signs, tenths, strict=True))) for signs in patterns]
    assert sign_flip_p(values) == sum(total >= abs(sum(tenths)) for total in sums) / len(sums)


@given(FEW, st.randoms())
def test_order_sign_and_scale_are_irrelevant(values: list[float], random: Any) -> None:
    p = sign_flip_p(values)
    assert sign_flip_p(random.sample(values, len(values))) == p
    assert sign_flip_p([-value for value in values]) == p
    assert sign_flip_p([value / 7e6 for value in values]) == p


def test_a_sum_of_zero_that_rounding_hides_has_p_1() -> None:
    assert 0.1 + 0.2 - 0.3 != 0
    assert sign_flip_p([0.1, 0.2, -0.3]) == 1


def test_a_sampled_p_is_near_the_exact_one_and_follows_its_generator() -> None:
    values = np.random.default_rng(3).normal(0.25, 1, 21)
    exact = (np.abs(_sums(values)) >= abs(values.sum())).mean()
    found = [sign_flip_p(values, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert all(abs(p - exact) < 4 * np.sqrt(exact * (1 - exact) / SAMPLES) for p in found)


def _sums(values: Any) -> Any:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def test_a_sampled_p_is_never_0() -> None:
    assert sign_flip_p([1.0] * 40, rng=np.random.default_rng(0)) == 1 / (SAMPLES + 1)


@pytest.mark.parametrize(("values", "message"), [
    ([], "one value a seed"), ([float("nan")], "all finite"), ([1.0, float("inf")], "all finite"),
    ([1.0] * 21, "give a generator"),
])
def test_what_cannot_be_flipped_is_refused(values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sign_flip_p(values)
