"""What a number of seeds can show."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.known_answers import agrees, known
from vitbench.stats import sign_flip_p
from vitbench.stats.power import (
    paired_t_power,
    sd_upper,
    seeds_needed,
    smallest_detectable,
    smallest_detectable_sign_flip,
)


@pytest.mark.parametrize("vector", known("smallest_detectable"))
def test_smallest_detectable_is_the_known_answer(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    found = smallest_detectable(given["n"], given["sd"], alpha=given["alpha"], power=given["power"])
    assert agrees(found, vector, "difference")
    assert agrees(found / given["sd"], vector, "d")


@pytest.mark.parametrize("vector", known("seeds_needed"))
def test_seeds_needed_are_the_known_answer(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    assert agrees(sd_upper(given["sd"], given["n"]), vector, "sd_upper80")
    assert agrees(seeds_needed(given["sd"], given["n"], given["half_width"]), vector, "seeds")


def test_power_is_the_share_of_rejections_in_simulation() -> None:
    rng = np.random.default_rng(7)
    n, effect, studies = 8, 0.9, 40_000
    values = rng.normal(effect, 1.0, (studies, n))
    t = values.mean(axis=1) / (values.std(axis=1, ddof=1) / np.sqrt(n))
    rejected = float((np.abs(t) >= 2.364624252).mean())  # t(.975, 7)
    assert abs(rejected - paired_t_power(n, effect)) < 4 * np.sqrt(0.25 / studies)


@pytest.mark.parametrize("n", [2, 3, 6, 50])
def test_power_grows_with_the_effect(n: int) -> None:
    power = [paired_t_power(n, effect) for effect in np.linspace(0, 60, 241)]
    assert power[0] == pytest.approx(0.05)
    assert power[-1] == pytest.approx(1, abs=2e-2)
    assert all(b >= a - 1e-9 for a, b in pairwise(power))


def test_more_seeds_show_less_and_no_deviation_shows_all() -> None:
    shown = [smallest_detectable(n, 0.02) for n in (2, 3, 6, 20, 200)]
    assert shown == sorted(shown, reverse=True)
    assert smallest_detectable(6, 0.0) == 0.0


@pytest.mark.parametrize(("n", "sd"), [(1, 0.1), (0, 0.1), (3, -0.1), (3, float("nan"))])
def test_what_shows_nothing_is_refused(n: int, sd: float) -> None:
    with pytest.raises(ValueError, match=f"found n={n}"):
        smallest_detectable(n, sd)


def test_a_margin_that_no_study_can_reach_needs_no_number() -> None:
    assert seeds_needed(1.0, 6, 1e-6) is None


@pytest.mark.parametrize("vector", known("smallest_detectable_signflip"))
def test_what_a_sign_flip_test_detects_is_the_known_answer(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    found = smallest_detectable_sign_flip(given["n"], 1.0, alpha=given["alpha"], power=given["power"])
    assert agrees(found, vector, "d")


@pytest.mark.parametrize("n", [6, 8])
def test_a_sign_flip_test_has_the_power_asked_for_at_what_it_detects(n: int) -> None:
    rng = np.random.default_rng(n)
    shift = smallest_detectable_sign_flip(n, 0.02, rng=rng)
    rejected = np.mean([sign_flip_p(values) <= 0.05 for values in rng.normal(shift, 0.02, (2000, n))])
    assert abs(rejected - 0.8) < 0.04  # four standard errors


def test_the_sign_flip_test_detects_nothing_below_six_seeds_and_nearly_what_t_detects_from_ten_on() -> None:
    assert smallest_detectable_sign_flip(5, 0.02) == float("inf")
    assert smallest_detectable_sign_flip(6, 1.0) > 1.2 * smallest_detectable(6, 1.0)
    found = smallest_detectable_sign_flip(10, 1.0, rng=np.random.default_rng(0))
    assert found == pytest.approx(smallest_detectable(10, 1.0), rel=0.05)


@pytest.mark.parametrize(("n", "sd", "message"), [(0, 0.1, "found n=0"), (6, -1.0, "sd=-1"), (7, 0.1, "a generator")])
def test_what_a_sign_flip_test_cannot_detect_is_refused(n: int, sd: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        smallest_detectable_sign_flip(n, sd)


def test_the_upper_limit_of_a_deviation_lies_above_it_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(2).normal(0, 0.02, (4000, 6))
    above = np.mean([sd_upper(float(values.std(ddof=1)), 6) >= 0.02 for values in drawn])
    assert abs(above - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 4000)
