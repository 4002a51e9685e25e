"""several_heads_beat_one: the mean over several heads, never the best of them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.claims.simulated import Law, study_of, verdict_on
from vitbench.claims import judge
from vitbench.verdicts import Cell, Expected, Verdict

NAME = "several_heads_beat_one"
SIZES = {"images_per_class": [20, 80], "seeds": 10}


def models(*heads: int, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "attention", "size": "s", "label": " ".join([f"heads {h}", *map(str, more.values())]),
             "num_heads": h, **more} for h in heads]


STUDY = {"models": models(1, 2, 4, 8), **SIZES}


def law(**points: float) -> Law:
    """Points above 90 % of the models with that many heads: h1=-3."""
    return lambda cell: Expected(0.9 + points.get(f"h{cell.options['num_heads']}", 0.0) / 100)


def verdict(of: Law, **study: Any) -> Verdict:
    return verdict_on(NAME, of, {**STUDY, **study}, number=1)


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(h1=-3), "holds", "The mean is"),
    (law(), "fails", "The interval ends below the margin"),
    (law(h1=3), "fails", "The interval ends below the margin"),
    (law(h1=-0.8), "undecided", "The mean is 0.00"),
])
def test_it_decides_by_the_mean_over_several_heads(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_the_best_number_of_heads_decides_nothing() -> None:
    found = verdict(law(h8=4, h2=-4))
    assert found.outcome == "fails"
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(0, abs=0.01)


def test_the_effect_is_that_of_two_four_and_eight_heads_alike() -> None:
    for h in (2, 4, 8):
        found = verdict(law(**{f"h{h}": 6}))
        assert found.effect is not None
        assert found.effect.mean == pytest.approx(0.02, abs=0.008)


def test_all_sizes_and_all_four_models_are_looked_at() -> None:
    assert len(verdict(law()).run_ids) == 4 * 2 * 10


def test_models_that_disagree_make_it_depend() -> None:
    def of(cell: Cell) -> Expected:
        lead = 4 if cell.options["positions"] == "learned" else -4
        return Expected(0.9 + lead / 100 * (cell.options["num_heads"] > 1))

    both = [*models(1, 2, 4, 8, positions="learned"), *models(1, 2, 4, 8, positions="none")]
    found = verdict(of, models=both)
    assert found.outcome == "depends"
    assert found.sentence.startswith("Holds in none, steps:300, default: heads 1 learned against heads 2 learned")


def test_parameters_that_differ_by_more_than_a_hundredth_block_it() -> None:
    evidence = study_of(law(h1=-3), STUDY)
    facts = {label: replace(of, params=100_000 + 1000 * (label == "heads 8")) for label, of in evidence.models.items()}
    assert judge(NAME, replace(evidence, models=facts)).outcome == "holds"
    facts["heads 8"] = replace(facts["heads 8"], params=101_001)
    found = judge(NAME, replace(evidence, models=facts))
    assert (found.outcome, found.sentence) == (
        "blocked", "Their parameters differ by more than 1%: heads 1 100,000, heads 2 100,000, heads 4 100,000, "
                   "heads 8 101,001")


def test_parameters_that_no_run_tells_block_it() -> None:
    evidence = study_of(law(), STUDY)
    facts = {**evidence.models, "heads 4": replace(evidence.models["heads 4"], params=None)}
    found = judge(NAME, replace(evidence, models=facts))
    assert (found.outcome, found.sentence) == (
        "blocked", "No run of heads 4 tells its parameters, so nobody knows whether they are equal")


@pytest.mark.parametrize(("study", "words"), [
    ({"models": models(1, 2, 4)}, "no models that are alike but for num_heads, one each of 1, 2, 4, 8"),
    ({"models": ["convolution:s"]}, "no models that are alike but for num_heads"),
])
def test_a_study_without_all_of_them_is_blocked(study: dict[str, Any], words: str) -> None:
    found = verdict_on(NAME, lambda _: Expected(0.9), {**STUDY, **study})
    assert found.outcome == "blocked"
    assert words in found.sentence


def test_five_seeds_decide_nothing() -> None:
    assert verdict(law(h1=-6), seeds=5).sentence.startswith("5 seeds: a verdict needs 6")
