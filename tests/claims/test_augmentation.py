"""augmentation_replaces_data: the images that augmentation is worth, and what lies beyond the measured range."""

from collections.abc import Mapping
from dataclasses import replace
from math import log2
from typing import Any

import pytest

from tests.claims.simulated import Law, study_of, verdict_on
from vitbench.claims import judge
from vitbench.claims.augmentation_replaces_data import _factors
from vitbench.row import Row
from vitbench.verdicts import Evidence, Expected, Verdict

NAME = "augmentation_replaces_data"
SIZES = [5, 10, 20, 40, 80, 160]
STUDY = {"models": ["attention:s"], "images_per_class": SIZES, "seeds": 10, "regimes": ["none", "light"]}


def error(images: float) -> float:
    """Steep, so that chance reaches no further than to the next size."""
    return float(0.45 * (images / 5) ** -0.7)


def law(worth: float) -> Law:
    """Augmentation is worth `worth` times the images."""
    return lambda cell: Expected(1 - error(cell.images * (1 if cell.regime == "none" else worth)))


def verdict(of: Law, **study: Any) -> Verdict:
    return verdict_on(NAME, of, {**STUDY, **study})


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(2), "holds", "The mean is"),
    (law(0.8), "fails", "The interval ends below the margin of 0.32"),
    (law(0.7), "fails", "The interval ends below the margin of 0.32"),
    (law(1.2), "undecided", "The mean is 0.3"),
])
def test_it_decides_by_the_images_that_augmentation_is_worth(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_its_effect_is_the_logarithm_of_that_multiple() -> None:
    for worth in (0.7, 1, 1.5, 2):
        found = verdict(law(worth))
        assert found.effect is not None
        assert found.effect.mean == pytest.approx(log2(worth), abs=0.15)


def exactly(none: list[float], light: list[float], seeds: int = 10, **study: Any) -> Evidence:
    """Errors at each size, the same in every seed."""
    by_regime: Mapping[str, dict[int, float]] = {
        regime: dict(zip(SIZES, errors, strict=True)) for regime, errors in (("none", none), ("light", light))}
    made = study_of(law(1), {**STUDY, "seeds": seeds, **study})
    of = {f"{n} a class": n for n in SIZES}
    return replace(made, rows=tuple(replace(
        row, test_accuracy=1 - by_regime.get(row.regime, by_regime["light"])[of[row.share]]) for row in made.rows))


NONE = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]


def mean(evidence: Evidence) -> float:
    effect = judge(NAME, evidence).effect
    assert effect is not None
    return effect.mean


@pytest.mark.parametrize(("light", "expected"), [
    (NONE, 0.0),
    ([0, *NONE[2:], 0], 1.0),  # every error one size earlier
    ([1, *NONE[:-2], 1], -1.0),
    ([0, 0.45, 0.35, 0.25, 0.15, 0], 0.5),  # straight in ln n between sizes
    ([0, 0.05, 0.4, 0.3, 0.2, 0], 4 / 4),  # none never comes so low: 160/10
    ([0, 0.7, 0.4, 0.3, 0.2, 0], -1 / 4),  # worse than none at its smallest size: 5/10
])
def test_factors_are_read_off_the_curve_at_the_inner_sizes(light: list[float], expected: float) -> None:
    assert mean(exactly(NONE, light)) == pytest.approx(expected, abs=1e-9)


def test_a_curve_that_rises_is_made_monotone_first() -> None:
    rising = [0.6, 0.5, 0.3, 0.4, 0.2, 0.1]  # 20 and 40 a class pool at .35
    (row, *_) = study_of(law(1), {**STUDY, "seeds": 1}).rows

    def at(images: int, wrong: float) -> Row:
        return replace(row, train_images=images, test_accuracy=1 - wrong)

    rows = {(0, str(n)): at(n, wrong) for n, wrong in zip(SIZES, rising, strict=True)} | {
        (1, str(n)): at(n, 0.35) for n in SIZES}
    found = list(_factors(rows, tuple(map(str, SIZES))))
    assert found == [("=", pytest.approx(20 / n)) for n in SIZES[1:-1]]


def test_one_place_beyond_the_range_rules_fails_out_and_is_counted() -> None:
    found = judge(NAME, exactly([*NONE[:-1], 0.2], [0, 0.55, 0.45, 0.35, 0.15, 0]))
    assert found.outcome == "undecided"
    assert found.sentence.startswith(
        "Of 40 places, `none` does not come so low with all its images in 10, and the regime is worse than `none` at "
        "its smallest size in 0: what was entered there rules out `fails`. Without that: ")


def test_one_place_worse_than_the_smallest_size_rules_holds_out_and_is_counted() -> None:
    found = judge(NAME, exactly(NONE, [0, 0.65, 0.2, 0.1, 0.1, 0]))
    assert found.outcome == "undecided"
    assert "worse than `none` at its smallest size in 10: what was entered there rules out `holds`" in found.sentence
    beyond = judge(NAME, exactly(NONE, [0, 0.3, 0.05, 0.05, 0.05, 0]))
    assert beyond.outcome == "holds"  # too little was entered, and still it is enough
    assert "with all its images in 30" in beyond.sentence


def both(attention: Law, convolution: Law) -> Law:
    return lambda cell: (attention if cell.family == "attention" else convolution)(cell)


TWO = {"models": ["attention:s", "convolution:s"]}


def test_models_that_disagree_make_it_depend() -> None:
    found = verdict(both(law(2), law(0.7)), **TWO)
    assert found.outcome == "depends"
    assert found.sentence.startswith(
        "Holds in attention:s in none, steps:300, default against attention:s in light, steps:300, default; fails in "
        "convolution:s in none")


def test_a_stratum_that_holds_by_what_was_entered_for_it_makes_nothing_depend() -> None:
    evidence = exactly(NONE, [0, 0.65, 0.2, 0.1, 0.1, 0], **TWO)
    worse = dict(zip([f"{n} a class" for n in SIZES], [0, 0.55, 0.45, 0.35, 0.25, 0], strict=True))
    found = judge(NAME, replace(evidence, rows=tuple(
        replace(row, test_accuracy=1 - worse[row.share])
        if row.regime == "light" and row.label == "convolution:s" else row for row in evidence.rows)))
    assert [part.shows for part in found.parts] == ["holds", "fails"]
    assert found.outcome == "undecided"
    assert "rules out `depends`" in found.sentence


def test_every_model_regime_and_budget_is_a_stratum() -> None:
    found = verdict(law(2), models=["attention:s", "linear"], regimes=["none", "light", "strong"],
                    budgets=[{"steps": 300}, {"steps": 600}])
    assert len(found.parts) == 2 * 2 * 2


@pytest.mark.parametrize(("study", "words"), [
    ({"regimes": ["light", "strong"]}, "no model both without augmentation and in a regime at all its sizes"),
    ({"regimes": ["none"]}, "no model both without augmentation and in a regime at all its sizes"),
    ({"images_per_class": [5, 160]}, "It takes sizes between the smallest and the largest; the study has 5 a class, "
                                     "160 a class alone"),
])
def test_what_cannot_be_judged_is_blocked_with_its_reason(study: dict[str, Any], words: str) -> None:
    found = verdict(law(2), **study)
    assert found.outcome == "blocked"
    assert words in found.sentence


def test_five_seeds_decide_nothing() -> None:
    assert verdict(law(3), seeds=5).outcome == verdict(law(0.5), seeds=5).outcome == "undecided"
