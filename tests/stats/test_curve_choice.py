from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from tests.known_answers import known
from vitbench.stats.curve_band import band
from vitbench.stats.curve_choice import best_curve, learning_curve, ranked, reach, standard_errors
from vitbench.stats.curves import FAMILIES, fit

SIZES = np.array([14, 28, 57, 115, 230, 460, 920, 1437])
LAW = 0.03 + 1.2 * SIZES**-0.45


def seeds(law: Any = LAW, number: int = 6, sd: float = 0.005, start: int = 0) -> Any:
    return np.clip(law + np.random.default_rng(start).normal(0, sd, (number, len(law))), 0, 1)


@pytest.mark.parametrize("vector", known("curve_choice"))
def test_the_family_that_made_the_data_is_chosen(vector: dict[str, Any]) -> None:
    inputs = vector["inputs"]
    found = ranked(inputs["sizes"], inputs["errors"], families=inputs["candidates"])
    assert found[0] == vector["expected"]["chosen"]


@pytest.mark.parametrize(("sizes", "families"), [
    (8, set(FAMILIES)), (7, {"log2", "pow3", "exp3"}), (6, {"log2", "pow3", "exp3"}), (5, {"log2"}), (4, set()),
    (1, set())])
def test_a_family_needs_two_sizes_more_than_parameters_beside_those_held_out(sizes: int, families: set[str]) -> None:
    """Two sizes are held out of seven or more, one of fewer."""
    assert set(ranked(SIZES[:sizes], LAW[:sizes])) == families


def test_of_families_that_foretell_alike_the_one_with_fewer_parameters_is_first() -> None:
    """pow4 with d near 0 is pow3: without noise both foretell everything."""
    assert ranked(SIZES, LAW)[0] == "pow3"


def test_the_largest_sizes_alone_decide() -> None:
    """A straight line in ln n up to 460 images: those who saw only these would choose it."""
    bent = np.where(SIZES <= 460, 0.9 - 0.1 * np.log(SIZES), 0.9 - 0.1 * np.log(460))
    assert ranked(SIZES[:6], bent[:6])[0] == "log2"
    assert ranked(SIZES, bent)[0] != "log2"


def test_the_chosen_family_is_fitted_to_all_sizes() -> None:
    curve, serves = best_curve(SIZES, LAW)
    assert serves
    assert curve is not None
    assert curve.at(SIZES) == pytest.approx(fit("pow3", SIZES, LAW).at(SIZES))


def test_a_family_that_misses_a_mean_gives_way_to_the_next_that_does_not() -> None:
    order = ranked(SIZES, seeds().mean(axis=0))
    fits = {family: fit(family, SIZES, seeds().mean(axis=0)) for family in order}
    apart = {family: np.abs(curve.at(SIZES) - seeds().mean(axis=0)).max() for family, curve in fits.items()}
    tight = min(apart.values()) * 1.0001
    curve, serves = best_curve(SIZES, seeds().mean(axis=0), None, [tight] * 8)
    assert serves
    assert curve == fits[min(apart, key=lambda family: apart[family])]
    curve, serves = best_curve(SIZES, seeds().mean(axis=0), None, [tight / 2] * 8)
    assert (curve, serves) == (fits[order[0]], False)


def test_a_curve_of_a_known_law_is_fitted() -> None:
    found = learning_curve(SIZES, seeds())
    assert (found.outcome, found.reason) == ("fitted", None)
    assert found.curve is not None
    assert found.curve.at(SIZES) == pytest.approx(LAW, abs=0.01)


def test_a_rise_outside_its_interval_is_ill_behaved_and_one_inside_is_not() -> None:
    peak = LAW + np.where(SIZES == 115, 0.08, 0)
    found = learning_curve(SIZES, seeds(peak))
    assert found.outcome == "ill-behaved"
    assert found.reason == "the error rises from 57 to 115 images by 2.7 points"
    assert found.curve is None
    assert learning_curve(SIZES, seeds(peak, sd=0.06)).outcome == "fitted"
    assert learning_curve(SIZES, seeds(peak, number=1)).outcome == "fitted"  # one seed shows no rise


def test_a_step_that_no_family_follows_is_ill_behaved() -> None:
    steps = np.array([0.9, 0.9, 0.9, 0.55, 0.5, 0.5, 0.1, 0.1]) - np.linspace(0, 0.05, 8)
    found = learning_curve(SIZES, seeds(steps, sd=0.002))
    assert found.outcome == "ill-behaved"
    assert found.reason is not None
    assert found.reason.startswith("no family fits")
    assert learning_curve(SIZES, seeds(steps, sd=0.002), margin=0.5).outcome == "fitted"


def test_too_few_sizes_are_named() -> None:
    assert learning_curve(SIZES[:4], seeds()[:, :4]).outcome == "too few sizes"


@pytest.mark.parametrize("shape", [(0, 8), (8,), (6, 0)])
def test_a_curve_without_errors_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="an error for each seed and size"):
        learning_curve(SIZES, np.zeros(shape))


def test_the_law_behind_a_curve_is_rarely_called_ill_behaved() -> None:
    """At most 5 % for each of the two reasons, were the intervals exact and the fit given."""
    outcomes = [learning_curve(SIZES, seeds(sd=0.01, start=k), margin=0).outcome for k in range(60)]
    assert outcomes.count("ill-behaved") <= 6


def test_standard_errors_of_one_seed_are_none_and_none_is_far_below_the_others() -> None:
    assert standard_errors(seeds(number=1)) is None
    assert standard_errors(np.tile(LAW, (4, 1))) is None
    errors = seeds()
    errors[:, 3] = 0.1
    found = standard_errors(errors)
    assert found is not None
    assert found[3] == pytest.approx(found.max() / 10)
    assert found[0] == pytest.approx(errors[:, 0].std(ddof=1) / np.sqrt(6))


def test_a_curve_may_lie_within_the_interval_or_the_margin() -> None:
    assert reach(seeds(number=1), 0.01) is None
    errors = seeds(sd=0.05)
    errors[:, 0] = 0.5
    found = reach(errors, 0.01)
    assert found is not None
    assert found[0] == 0.01
    assert found[1] == pytest.approx(float(stdtrit(5, 1 - 0.025 / 8)) * errors[:, 1].std(ddof=1) / np.sqrt(6))


def test_a_band_is_that_of_its_generator_and_ignores_the_order_of_seeds_but_for_the_draws() -> None:
    one, same, other = (band(SIZES, seeds(), SIZES, rng=np.random.default_rng(k), resamples=10) for k in (0, 0, 1))
    assert one is not None
    assert same is not None
    assert other is not None
    assert (one.low_M == same.low_M).all()
    assert not (one.low_M == other.low_M).all()
    assert (one.fit_M == other.fit_M).all()
    assert sum(one.families.values()) == 10


def test_where_all_seeds_move_together_the_band_is_the_t_interval() -> None:
    """Each seed is the same curve higher up: the deviation of the fit is that of the mean at every size."""
    up = np.array([0.0, 0.03, 0.01, 0.02, 0.06, 0.03])
    found = band(SIZES[:6], (LAW + up[:, None])[:, :6], SIZES[:6], rng=np.random.default_rng(0), resamples=400)
    assert found is not None
    half = 2.570582 * up.std(ddof=1) / np.sqrt(6)  # t(.975, 5)
    assert found.high_M - found.fit_M == pytest.approx(half, rel=0.1)
    assert found.fit_M - found.low_M == pytest.approx(half, rel=0.1)


@pytest.mark.parametrize(("sizes", "number"), [(8, 1), (4, 6)])
def test_one_seed_and_few_sizes_have_no_band(sizes: int, number: int) -> None:
    errors = seeds(number=number)[:, :sizes]
    assert band(SIZES[:sizes], errors, SIZES, rng=np.random.default_rng(0)) is None
