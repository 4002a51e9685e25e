"""attention_overtakes_with_enough_data: each outcome from the differences that should give it."""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from vitbench.claims import CLAIMS, judge
from vitbench.verdicts import Cell, Evidence, Expected, Planted
from vitbench.verdicts.simulated import simulate

NAME = "attention_overtakes_with_enough_data"
claim = partial(judge, NAME)
SIZES = {"models": ["attention:s", "convolution:s"], "images_per_class": [5, 20, 80], "seeds": 10}


def evidence(behind: float, ahead: float, number: int = 0, **study: Any) -> Evidence:
    """Attention `behind` points behind at the smallest size, `ahead` points ahead at the largest."""

    def law(cell: Cell) -> Expected:
        lead = {5: -behind, 20: 0.0, 80: ahead}[cell.images] / 100 if cell.family == "attention" else 0.0
        return Expected(0.85 + lead)

    return simulate(Planted("", law, 0.9, {**SIZES, **study}), np.random.default_rng([5, number]))


@pytest.mark.parametrize(("behind", "ahead", "outcome", "words"), [
    (10, 5, "holds", "Behind at 5 a class (50 drawn images), ahead at 80 a class (800 drawn images). The mean is"),
    (10, -5, "fails", "No crossover up to 80 a class (800 drawn images). The interval ends below"),
    (-10, 5, "blocked", "Ahead from the start: attention leads at 5 a class (50 drawn images)"),
    (0, 5, "undecided", "but at 5 a class (50 drawn images) the interval of the difference holds 0"),
    (10, 1, "undecided", "would take about"),
])
def test_it_decides_by_both_ends_of_the_data(behind: float, ahead: float, outcome: str, words: str) -> None:
    found = claim(evidence(behind, ahead))
    assert found.outcome == outcome
    assert words in found.sentence


def test_it_rests_on_both_ends_and_shows_the_sizes_between_which_it_overtakes() -> None:
    whole = evidence(10, 5)
    found = claim(whole)
    start, crossing = found.legs
    assert start.effect is not None
    assert start.effect.mean == pytest.approx(-0.1, abs=0.03)
    assert crossing.name == "n* of none, steps:300, default: attention:s against convolution:s"
    assert crossing.sentence.startswith("attention overtakes the CNN at about ")
    low, high = re.findall(r"[0-9]+", crossing.sentence.partition("[")[2])
    assert 40 < int(low) < 160 < int(high) < 640  # level at 160 training images, of 40 to 640
    assert set(found.run_ids) == {row.run_id for row in whole.rows}


def test_where_an_inner_size_is_missing_the_ends_still_decide() -> None:
    whole = evidence(10, 5)
    gone = replace(whole, rows=tuple(row for row in whole.rows if row.share != "20 a class"))
    found = claim(gone)
    assert found.outcome == "holds"
    assert "20 of the 60 runs that it rests on are missing" in found.legs[1].sentence


def test_one_size_of_data_is_not_enough() -> None:
    found = claim(evidence(10, 5, images_per_class=[80]))
    assert (found.outcome, found.sentence) == ("blocked", "It takes two sizes of data; the study has 80 a class alone")


def test_a_lead_with_three_seeds_neither_blocks_nor_decides() -> None:
    assert claim(evidence(-10, 5, seeds=3)).outcome == "undecided"
    assert claim(evidence(10, 5, seeds=3)).outcome == "undecided"


def test_pairs_that_disagree_make_it_depend() -> None:
    def law(cell: Cell) -> Expected:
        leads = {("s", 5): -0.1, ("s", 80): 0.06, ("m", 5): -0.1, ("m", 80): -0.06}
        return Expected(0.85 + (leads[cell.size, cell.images] if cell.family == "attention" else 0.0))

    models = [f"{family}:{size}" for family in ("attention", "convolution") for size in "sm"]
    study = {**SIZES, "models": models, "images_per_class": [5, 80]}
    found = claim(simulate(Planted("", law, 0.9, study), np.random.default_rng(0)))
    assert found.outcome == "depends"
    assert found.sentence == ("Holds in none, steps:300, default: attention:s against convolution:s; "
                              "fails in none, steps:300, default: attention:m against convolution:m")


def test_models_that_are_level_at_the_largest_size_seldom_get_holds() -> None:
    # The null that comes closest: behind at first, and alike where it counts.
    found = [claim(evidence(10, 0, number)).outcome for number in range(100)]
    assert found.count("holds") <= 5
    assert found.count("fails") > 20


def test_its_power_is_the_one_that_it_states() -> None:
    planted = CLAIMS.get(NAME).meta.planted
    assert planted is not None
    found = [claim(simulate(planted, np.random.default_rng([6, number]))).outcome for number in range(200)]
    assert found.count("holds") / 200 >= planted.power - 0.05
