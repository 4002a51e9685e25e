from itertools import combinations, product
from math import floor, inf
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats import sign_flip_p
from vitbench.stats.sign_flip import SAMPLES, sign_flip_interval, sign_patterns

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
    ([], r"expected finite values of layout S >= 1; found \[\]"), ([float("nan")], r"found \[nan\]"),
    ([1.0, float("inf")], r"found \[1.0, inf\]"),
    ([1.0] * 21, "give a generator"),
])
def test_what_cannot_be_flipped_is_refused(values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sign_flip_p(values)


@given(FEW.filter(lambda values: len(values) > 1))
def test_the_p_is_scipys(values: list[float]) -> None:
    theirs = scipy.stats.permutation_test((np.array(values),), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_p(values) == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 14])
def test_the_patterns_are_all_and_their_mirror_images(n: int) -> None:
    blocks = list(sign_patterns(n, at_once=300))
    assert max(map(len, blocks)) <= 300
    signs_PS = np.concatenate(blocks)
    assert signs_PS.shape == (2 ** (n - 1), n)
    assert len(np.unique(signs_PS, axis=0)) == 2 ** (n - 1)
    assert (signs_PS[:, -1] == 1).all()
    assert np.isin(signs_PS, (-1, 1)).all()


@pytest.mark.parametrize("vector", known("signflip_interval"))
def test_the_interval_is_the_known_one(vector: dict[str, Any]) -> None:
    found = sign_flip_interval(vector["inputs"]["differences"], level=1 - vector["inputs"]["alpha"])
    assert agrees(found.low, vector, "low")
    assert agrees(found.high, vector, "high")
    assert agrees(found.confidence, vector, "achieved_confidence")


@given(st.lists(st.integers(-99, 99).map(lambda k: k / 100), min_size=6, max_size=9))
def test_the_interval_ends_where_the_test_begins_to_reject(values: list[float]) -> None:
    found, beyond = sign_flip_interval(values), 1e-6
    for inside, outside in ((found.low, found.low - beyond), (found.high, found.high + beyond)):
        assert sign_flip_p([value - inside for value in values]) > 0.05
        assert sign_flip_p([value - outside for value in values]) <= 0.05


@given(st.lists(st.integers(-99, 99).map(lambda k: k / 100), min_size=1, max_size=8), st.sampled_from([0.5, 0.8, 0.95]))
def test_the_ends_are_means_of_subsets(values: list[float], level: float) -> None:
    means = sorted(sum(c) / len(c) for size in range(1, len(values) + 1) for c in combinations(values, size))
    k = floor(round((1 - level) * (len(means) + 1) / 2, 9))
    found = sign_flip_interval(values, level=level)
    assert (found.low, found.high) == (pytest.approx((means[k - 1], means[-k])) if k else (-inf, inf))
    assert found.confidence == 1 - 2 * k / (len(means) + 1) >= level - 1e-12


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=10), st.randoms())
def test_order_sign_and_scale_move_the_interval_as_they_move_the_values(values: list[float], random: Any) -> None:
    found = sign_flip_interval(values)
    assert sign_flip_interval(random.sample(values, len(values))) == found
    mirrored = sign_flip_interval([-value for value in values])
    assert (-mirrored.high, -mirrored.low) == pytest.approx((found.low, found.high), abs=1e-12)
    scaled = sign_flip_interval([1000 * value for value in values])
    assert (scaled.low, scaled.high) == pytest.approx((1000 * found.low, 1000 * found.high), abs=1e-9)


def test_equal_values_have_an_interval_of_no_width_from_six_seeds_on() -> None:
    assert (sign_flip_interval([0.25] * 6).low, sign_flip_interval([0.25] * 6).high) == (0.25, 0.25)
    assert (sign_flip_interval([0.25] * 5).low, sign_flip_interval([0.25] * 5).high) == (-inf, inf)


def test_a_sampled_interval_is_near_the_exact_one_and_follows_its_generator() -> None:
    values = np.random.default_rng(3).normal(0.25, 1, 20)
    exact = sign_flip_interval(values)
    # One more seed at the mean hardly moves it.
    found = [sign_flip_interval([*values, values.mean()], rng=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert all(abs(i.low - exact.low) < 0.05 and abs(i.high - exact.high) < 0.05 for i in found)
    assert all(0.95 <= i.confidence < 0.951 for i in found)


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, inf], [[1.0]]], ids=str)
def test_an_interval_of_what_cannot_be_flipped_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="expected finite values of layout S >= 1; found"):
        sign_flip_interval(values)


def test_an_interval_of_many_seeds_needs_a_generator() -> None:
    with pytest.raises(ValueError, match="give a generator"):
        sign_flip_interval([1.0] * 21)
