"""family_not_size: main effects and interaction of the 2 x 2, and each outcome."""

from typing import Any

import pytest

from tests.claims.simulated import Law, verdict_on
from tests.known_answers import agrees, known
from vitbench.claims.family_not_size import FAMILY, INTERACTION, SIZE
from vitbench.stats import t_interval
from vitbench.verdicts import Cell, Expected, Verdict

STUDY = {"models": ["attention:s", "attention:l", "convolution:s", "convolution:l"], "images_per_class": [5, 20],
         "seeds": 10}


def law(family: float = 6, size: float = 0, interaction: float = 0, **more: Any) -> Law:
    """Points of the family effect (attention minus convolution), of size (l minus s), and of their interaction."""

    def of(cell: Cell) -> Expected:
        f, s = 1 if cell.family == "attention" else -1, 1 if cell.size == "l" else -1
        return Expected(0.85 - (f * family + s * size + f * s * interaction) / 200, **more)

    return of


def verdict(of: Law, **study: Any) -> Verdict:
    return verdict_on("family_not_size", of, {**STUDY, **study})


@pytest.mark.parametrize("vector", known("factorial_2x2"))
def test_effects_are_the_known_answer(vector: dict[str, Any]) -> None:
    cells = vector["inputs"]["error_by_cell_by_seed"]
    order = [cells[name] for name in ("attention_s", "attention_l", "convolution_s", "convolution_l")]
    for name, signs in (("family", FAMILY), ("size", SIZE), ("interaction", INTERACTION)):
        found = t_interval([sum(sign * e for sign, e in zip(signs, errors, strict=True)) / 2
                            for errors in zip(*order, strict=True)])
        for value, expected in zip((found.mean, found.low, found.high), vector["expected"][name], strict=True):
            assert agrees(value, {**vector, "expected": {"x": expected}}, "x")


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(), "holds", "The mean is"),
    (law(family=-3), "fails", "The interval ends below the margin"),
    (law(family=4, size=12), "fails", "Size makes more of a difference"),
    (law(family=7, size=7.5), "undecided", "Attention has the larger error, but whether the family or the size"),
    (law(family=0, interaction=8), "depends", "Attention has the smaller error at s and the larger one at l"),
    (law(family=0, interaction=-8), "depends", "Attention has the smaller error at l and the larger one at s"),
])
def test_it_decides_by_main_effects_and_interaction(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_three_effects_on_the_error_and_one_on_the_gap_stand_beside_it() -> None:
    found = verdict(law(family=6, size=2, interaction=4))
    means = [leg.effect.mean for leg in found.legs if leg.effect]
    assert means == pytest.approx([0.06, 0.02, 0.04, 0.06], abs=0.015)
    assert all(leg.outcome is None for leg in found.legs)


def test_where_a_cell_underfits_the_gap_is_not_shown() -> None:
    assert len(verdict(law(fit_state="underfit")).legs) == 3


def test_a_study_without_both_sizes_is_blocked() -> None:
    found = verdict(law(), models=["attention:s", "convolution:s", "convolution:l"])
    assert (found.outcome, found.sentence) == (
        "blocked", "The study has no model of the family attention at the size s and l")
