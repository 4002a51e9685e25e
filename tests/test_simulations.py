"""Short forms of benchmarks/intervals.py: where the usual methods mislead."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import crossovers, intervals, pages
from vitbench.stats.sign_flip import sign_flip_interval


def test_a_percentile_bootstrap_of_six_seeds_covers_less_than_t() -> None:
    found = intervals.coverage(intervals.DRAWS["normal"], 6, 500, ("t", "percentile", "BCa", "studentised"))
    assert found["t"] > 0.92
    assert max(found["percentile"], found["BCa"]) < 0.91
    assert found["studentised"] > 0.92


def test_skew_takes_from_t() -> None:
    assert intervals.coverage(intervals.DRAWS["gamma, skewness 2"], 6, 2000, ("t",))["t"] < 0.92


@pytest.mark.parametrize("name", intervals.DRAWS)
def test_what_is_drawn_has_mean_0_and_the_skewness_it_names(name: str) -> None:
    values = intervals.DRAWS[name](np.random.default_rng(0), (100_000,))
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(values.size)
    if "skewness" in name:
        assert np.mean((values / values.std()) ** 3) == pytest.approx(float(name[-1]), rel=0.1)


@pytest.mark.parametrize("n", [3, 6, 9])
def test_all_rows_at_once_give_what_the_inverted_interval_gives(n: int) -> None:
    values_RS = np.random.default_rng(n).normal(0.5, 1, (300, n))
    ends = [sign_flip_interval(values_S) for values_S in values_RS]
    inside = [end.low <= 0 <= end.high for end in ends]
    assert list(intervals.sign_flip_holds_0(values_RS)) == inside
    assert n == 3 or 0 < np.mean(inside) < 1


def test_holm_over_sign_flips_finds_nothing_at_six_seeds_where_the_others_find_much() -> None:
    found = intervals.found_and_false(6, 3, 300)
    assert found["Holm, sign-flip"] == (0, 0)
    for name in ("Holm, paired t", "step-down max-T"):
        assert found[name][0] > 0.5
        assert found[name][1] < 0.09  # the standard error of .05 is .013


def test_mcnemar_tells_identical_architectures_apart() -> None:
    found = intervals.identical_told_apart(2000, 0.01, 300)
    assert found["McNemar, one seed"] > 0.2
    assert found["McNemar, six seeds pooled"] > 0.2
    assert found["paired t over six seeds"] < 0.1


def test_the_slope_of_a_difference_of_accuracies_says_the_opposite() -> None:
    found = intervals.said_to_catch_up(100)
    assert found["accuracy difference"] > 0.9
    assert found["log2 error ratio"] < 0.05


def test_a_section_is_written_in_its_own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n## One\n\nold\n\n## Two\n\nkept\n")
    pages.write("One", "One\n\nnew\n\n", "page.md")
    pages.write("Three", "Three\n\nadded\n", "page.md")
    assert page.read_text() == "# Page\n\n## One\n\nnew\n\n\n## Two\n\nkept\n\n## Three\n\nadded\n"


def test_planted_crossovers_lie_in_the_set_and_less_often_in_a_percentile_bootstrap() -> None:
    inside, boot, outcomes = crossovers.crossovers_covered(163, crossovers.SLOPE, 360, 6, studies=400)
    assert 0.92 <= inside <= 0.98
    assert boot < inside - 0.03
    assert outcomes["overtakes"] > 350


def test_planted_factors_lie_in_their_intervals() -> None:
    true_N, inside_N = crossovers.factors_covered(230, crossovers.SLOPE, 360, 6, studies=150)
    assert true_N[4] == pytest.approx(1, rel=1e-6)  # at the crossover itself
    assert 0.92 <= inside_N.mean() <= 0.98
