"""Attention as a convolution, and how close heads come to fixed offsets: against heads whose answer is known."""

import re
from math import exp
from pathlib import Path

import numpy as np
import pytest

from vitbench.measurement import Measurement
from vitbench.probes._attention import fixed_offset
from vitbench.probes._measure import Question
from vitbench.study.folder import StudyFolder


@pytest.fixture(scope="module")
def mechanism(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    results: Path = tmp_path_factory.mktemp("results")
    return Question("attention_as_convolution", {}, results).measured(print)


def test_a_hundred_random_convolutions_are_computed_to_1e_10_borders_included(mechanism: Measurement) -> None:
    built = [row for row in mechanism.rows if row["part"] == "built from a convolution"]
    assert {row["kernel"]: row["heads"] for row in built} == {1: 1, 3: 9, 5: 25}
    assert sum(row["convolutions"] for row in built) == 100
    assert all(0 < row["border_difference"] <= row["difference"] < 1e-10 for row in built)


def test_the_difference_falls_as_exp_of_minus_the_sharpness(mechanism: Measurement) -> None:
    for kernel in (3, 5):
        of = {row["sharpness"]: row["difference"] for row in mechanism.rows
              if row["part"] == "sharpness of positions" and row["kernel"] == kernel}
        assert of[1] > 0.1
        assert of[10] / of[20] == pytest.approx(exp(10), rel=0.02)
        assert of[60] < 1e-14
    least = [float(number) for number in re.findall(r"([\d.]+) \(\d x \d\)", mechanism.summary)]
    assert all(20 < number <= 30 for number in least)
    assert len(least) == 2


def head(side: int, offset: tuple[int, int], mass: float) -> np.ndarray:
    """Looks at one offset with `mass`, at all places evenly with what is left, and evenly where the offset leaves."""
    weight_NN = np.full((side**2, side**2), 1 / side**2)
    for place in range(side**2):
        row, column = place // side + offset[0], place % side + offset[1]
        if 0 <= row < side and 0 <= column < side:
            weight_NN[place] *= 1 - mass
            weight_NN[place, row * side + column] += mass
    return weight_NN


@pytest.mark.parametrize("offset", [(0, 0), (0, 1), (-2, 1), (1, -2)])
def test_the_offset_of_a_head_and_its_mass_are_found(offset: tuple[int, int]) -> None:
    weight_NN = head(5, offset, 0.8)
    assert weight_NN.sum(axis=1) == pytest.approx(np.ones(25))
    mass, found = fixed_offset(weight_NN)
    assert found == offset
    assert mass == pytest.approx(0.8 + 0.2 / 25)


def test_a_head_without_a_preference_has_the_even_mass() -> None:
    assert fixed_offset(np.full((16, 16), 1 / 16))[0] == pytest.approx(1 / 16)


def test_an_offset_that_only_a_corner_has_is_no_offset() -> None:
    weight_NN = np.full((16, 16), 1 / 16)
    weight_NN[0] = np.eye(16)[15]  # of one place alone, to the opposite corner
    mass, offset = fixed_offset(weight_NN)
    assert mass < 0.1
    assert offset != (3, 3)


def test_every_trained_head_has_an_offset(kept: StudyFolder) -> None:
    attention = tuple(run for run in kept.runs if run.label == "token_transformer:xs")
    options = {"convolutions": 3, "images": 16}
    found = Question("attention_as_convolution", options, kept.store.folder.parent, kept, attention).measured(print)
    heads = [row for row in found.rows if row["part"] == "trained heads"]
    assert [(row["layer"], row["head"]) for row in heads] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(row["even_mass"] == 1 / 16 and 1 / 16 <= row["mass"] <= 1 for row in heads)
    assert "Of 4 trained heads 0 have at least 0.9" in found.summary
