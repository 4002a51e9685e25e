"""tuning_changes_the_ranking: a flip, held to the level that all comparisons share."""

from dataclasses import replace
from typing import Any

import pytest

from tests.claims.simulated import Law, study_of, verdict_on
from vitbench.claims import judge
from vitbench.verdicts import CellOf, Expected, Verdict
from vitbench.verdicts.evidence import Condition

NAME = "tuning_changes_the_ranking"
TUNING = {"trials": 2, "validation": "cv", "space": {"learning_rate": [0.001, 0.003, 0.01]}}
STUDY = {"models": ["attention:s", "convolution:s"], "images_per_class": [5, 20], "seeds": 10, "tuning": TUNING}


def law(default: float, tuned: float) -> Law:
    """Points by which attention leads at both sizes; other families are level with the CNN."""
    return lambda cell: Expected(0.88 + (cell.family == "attention") / 100 * (
        default if cell.setting == "default" else tuned))


def verdict(default: float, tuned: float, number: int = 0, **study: Any) -> Verdict:
    return verdict_on(NAME, law(default, tuned), {**STUDY, **study}, number)


@pytest.mark.parametrize(("default", "tuned", "outcome", "words"), [
    (-4, 4, "holds", "2 of 2 comparisons flip: attention:s against convolution:s at 5 a class, none, steps:300: "
                     "default, then tuned: -0.0"),
    (4, -4, "holds", "2 of 2 comparisons flip"),
    (-6, -3, "fails", "No comparison of 2 flips, and in each both intervals lie above -0.01 or both below 0.01"),
    (6, 3, "fails", "No comparison of 2 flips"),
    (6, -1, "undecided", "No comparison of 2 flips, and these are not shown to stay: attention:s against"),
    (0, 0, "undecided", "No comparison of 2 flips, and these are not shown to stay: attention:s against"),
])
def test_it_decides_by_flips(default: float, tuned: float, outcome: str, words: str) -> None:
    found = verdict(default, tuned)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_undecided_says_what_would_narrow_it() -> None:
    sentences = [verdict(0, 0, number).sentence for number in range(5)]
    assert all("would take" in one or "takes" in one for one in sentences)


def test_its_effect_is_what_tuning_adds_to_the_difference_where_that_is_most() -> None:
    found = verdict(-4, 4)
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(0.08, abs=0.015)
    assert found.level == pytest.approx(1 - 0.05 / 2)
    shifts = [leg.effect.mean for leg in found.legs if leg.effect]
    assert found.effect.mean == max(shifts)
    assert [part.name for part in found.parts] == [max(found.legs[:2], key=lambda leg: leg.effect.mean).name]


def test_each_comparison_is_a_leg_and_the_agreement_of_all_models_stands_beside() -> None:
    found = verdict(-4, 4, models=["attention:s", "convolution:s", "linear"])
    assert len(found.legs) == 3
    for leg in found.legs[:2]:
        assert leg.name.startswith("attention:s against convolution:s at ")
        assert leg.sentence.endswith("]: flips")
        assert leg.level == 1 - 0.05 / 2
    assert found.legs[2].name == "Kendall's tau-b of all models"
    assert found.legs[2].sentence.count(" of 3 models") == 2
    assert found.outcome == "holds"


def test_kendalls_tau_is_one_where_the_order_stays_and_minus_one_where_it_turns() -> None:
    for tuned, tau in ((-4, "1"), (4, "-1")):
        assert verdict(-4, tuned).legs[-1].sentence == "; ".join(
            f"{share} a class, none, steps:300: default, then tuned: {tau} of 2 models" for share in (5, 20))


def test_only_declared_pairs_are_compared_and_counted() -> None:
    models = ["attention:s", "convolution:s", "linear", "mlp"]
    evidence = study_of(law(-4, 4), {**STUDY, "models": models})
    declared = judge(NAME, replace(evidence, pairs=(("attention:s", "linear"), ("linear", "mlp"))))
    assert declared.outcome == "holds"
    assert "2 of 4 comparisons flip: attention:s against linear" in declared.sentence
    assert declared.level == pytest.approx(1 - 0.05 / 4)
    assert judge(NAME, replace(evidence, pairs=(("linear", "mlp"),))).outcome != "holds"


def test_each_search_is_compared_with_the_default_setting_and_never_with_another() -> None:
    found = verdict(-4, 4, tuning={**TUNING, "searches": 2})
    assert [leg.name.rpartition(": ")[2] for leg in found.legs[:-1]] == [
        "default, then tuned", "default, then tuned:2"] * 2


def test_five_seeds_decide_nothing() -> None:
    found = verdict(-6, 6, seeds=5)
    assert (found.outcome, found.sentence) == ("undecided", "5 seeds: a verdict needs 6 or more, the same for every "
                                                            "model")


@pytest.mark.parametrize(("study", "words"), [
    ({"tuning": None}, "The study has no pair of models both by default and tuned"),
    ({"models": ["attention:s", "linear"]}, "The study has no model of the family convolution"),
])
def test_what_cannot_be_judged_is_blocked_with_its_reason(study: dict[str, Any], words: str) -> None:
    found = verdict(-4, 4, **study)
    assert found.outcome == "blocked"
    assert words in found.sentence


def test_a_search_that_ended_on_an_edge_blocks_it() -> None:
    cell = CellOf("convolution:s", "5 a class", Condition("none", "steps:300", "tuned"))
    found = judge(NAME, replace(study_of(law(-4, 4), STUDY), edges=frozenset({cell})))
    assert found.outcome == "blocked"
    assert "lies on the edge of what was searched (convolution:s at 5 a class)" in found.sentence


def test_a_lead_that_tuning_takes_away_seldom_looks_like_a_flip() -> None:
    # The null that comes closest: far ahead by default, level when tuned.
    assert sum(verdict(5, 0, number).outcome == "holds" for number in range(100)) <= 3
