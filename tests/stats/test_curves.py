from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.stats.curves import FAMILIES, fit

SIZES = [14, 28, 57, 115, 230, 460, 920, 1437]
FORMULAS = {"pow3": lambda n, a, b, c: c + a * n**-b, "pow4": lambda n, a, b, c, d: c + a * (n + d) ** -b,
            "exp3": lambda n, a, b, c: c + a * np.exp(-b * n), "log2": lambda n, a, c: c - a * np.log(n),
            "mmf4": lambda n, a, b, c, d: (a * b + c * n**d) / (b + n**d)}


@pytest.mark.parametrize("vector", known("curve_fit"))
def test_a_curve_without_noise_is_found_again(vector: dict[str, Any]) -> None:
    inputs = vector["inputs"]
    found = fit(inputs["family"], inputs["sizes"], inputs["errors"])
    for value, expected in zip(found.at(inputs["predict_at"]), vector["expected"]["predictions"], strict=True):
        assert value == pytest.approx(expected, abs=vector["tolerance"])
    if len(found.parameters) < 4:
        assert found.parameters == pytest.approx(vector["expected"]["parameters"], rel=1e-5)


@pytest.mark.parametrize("vector", known("curve_fit_weighted"))
def test_weights_are_one_over_squared_standard_errors(vector: dict[str, Any]) -> None:
    inputs = vector["inputs"]
    found = fit(inputs["family"], inputs["sizes"], inputs["errors"], inputs["standard_errors"])
    for key, value in found.parameters.items():
        assert agrees(value, vector, key)


@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_are_those_of_the_formula(family: str) -> None:
    noisy = 0.05 + 0.9 * np.array(SIZES) ** -0.4 + np.random.default_rng(0).normal(0, 0.01, len(SIZES))
    found = fit(family, SIZES, noisy)
    n = np.array([20.0, 500.0])
    assert found.at(n) == pytest.approx(FORMULAS[family](n, **found.parameters), rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_other_method_finds_a_better_fit(family: str) -> None:
    """Scipy's curve_fit from many random starts, with the same bounds on what it fits."""
    from scipy.optimize import curve_fit

    rng, sizes = np.random.default_rng(1), np.array(SIZES, dtype=float)
    errors = 0.05 + 0.9 * sizes**-0.4 + rng.normal(0, 0.02, len(sizes))
    spread = rng.uniform(0.005, 0.03, len(sizes))
    mine = np.square((fit(family, sizes, errors, spread).at(sizes) - errors) / spread).sum()
    count = FORMULAS[family].__code__.co_argcount - 1
    others = []
    for _ in range(30):
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found, _covariance = curve_fit(FORMULAS[family], sizes, errors, sigma=spread, bounds=(0, np.inf),
                                               p0=np.exp(rng.uniform(-5, 1, count)), maxfev=4000)
        except (RuntimeError, ValueError):  # it does not converge, or leaves the numbers
            continue
        others.append(np.square((FORMULAS[family](sizes, *found) - errors) / spread).sum())
    assert len(others) > 3
    assert mine <= min(others) * (1 + 1e-6)


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.sampled_from(sorted(FAMILIES)))
def test_no_curve_rises_and_none_but_a_straight_line_falls_below_nothing(errors: list[float], family: str) -> None:
    along = fit(family, SIZES[:6], errors).at(np.geomspace(SIZES[0], SIZES[5], 50))
    assert (np.diff(along) <= 1e-9).all()
    assert along.min() >= 0 or family == "log2"


@pytest.mark.parametrize("family", FAMILIES)
def test_units_of_standard_errors_change_nothing(family: str) -> None:
    errors = np.linspace(0.5, 0.1, 8)
    one, other = (fit(family, SIZES, errors, np.linspace(1, 2, 8) * unit) for unit in (1e-3, 10))
    assert one.at(SIZES) == pytest.approx(other.at(SIZES), rel=1e-6)


@pytest.mark.parametrize(("family", "sizes", "errors", "match"), [
    ("pow5", SIZES, [0.1] * 8, "unknown curve family 'pow5'; it can be log2, pow3"),
    ("pow3", [1, 2], [0.1, 0.1], "pow3 needs 3 sizes"), ("log2", [], [], "log2 needs 2 sizes"),
    ("log2", [2, 1], [0.1, 0.1], "should rise"), ("log2", [1, 1], [0.1, 0.1], "should rise"),
    ("log2", [0, 1], [0.1, 0.1], "from 1 on"), ("log2", [1, 2], [0.1, np.nan], "all finite"),
    ("log2", [1, 2], [0.1, -0.1], "0 or more"), ("log2", [1, 2], [0.1], "an error and a standard error for each"),
])
def test_what_cannot_be_fitted_is_refused(family: str, sizes: list[float], errors: list[float], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        fit(family, sizes, errors)


def test_a_standard_error_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="standard errors above 0"):
        fit("log2", [1, 2], [0.2, 0.1], [0.1, 0])
