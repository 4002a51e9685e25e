"""Rules G, E and D: known answers, the order of decisions, and what an undecided verdict says."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.verdicts import Contrast, Verdict, rule_d, rule_e, rule_g

DELTA = 0.01
CLEAR = [0.03, 0.025, 0.04, 0.02, 0.035, 0.03]
NOTHING = [0.001, 0.003, 0.002, 0.004, 0.001, 0.002]
AGAINST = [-0.02, -0.025, -0.018, -0.022, -0.02, -0.024]
NOISE = [0.03, -0.02, 0.05, 0.01, -0.01, 0.04]


def y(*strata: list[float], alpha: float = 0.05, images: bool = False) -> Contrast:
    """A contrast of strata with a value a seed; `images` gives it two test images of the same value each."""
    return Contrast(y_SK=np.array(strata, dtype=float).T, strata=tuple("ABCDEF"[: len(strata)]), alpha=alpha,
                    images_KSI=tuple(np.repeat(np.array(s)[:, None], 2, axis=1) for s in strata) if images else ())


def outcome(*strata: list[float], rule: Any = rule_g, **options: Any) -> str:
    return rule(y(*strata, **options), margin=DELTA).outcome


@pytest.mark.parametrize("vector", known("verdict"))
def test_rule_g_gives_the_known_verdict(vector: dict[str, Any]) -> None:
    contrast = y(*vector["inputs"]["differences_stratum_by_seed"])
    assert rule_g(contrast, margin=vector["inputs"]["margin"]).outcome == vector["expected"]["verdict"]
    for key in ("mean", "low", "high"):
        assert agrees(getattr(contrast.interval, key), vector, key), key
    assert agrees(contrast.p, vector, "signflip_p")


@pytest.mark.parametrize(("strata", "g", "e"), [
    ([CLEAR], "holds", "fails"),
    ([NOTHING], "fails", "holds"),
    ([AGAINST], "fails", "holds"),
    ([NOISE], "undecided", "undecided"),
    ([CLEAR, AGAINST], "depends", "depends"),
    ([CLEAR, NOTHING], "depends", "depends"),
    ([CLEAR, NOISE], "holds", "fails"),
    ([NOTHING, NOISE], "undecided", "undecided"),
    # The mean over strata lies below the margin, and G would say fails, did not one stratum hold.
    ([CLEAR, [-0.2, 0.1, -0.3, 0.1, -0.2, 0.0]], "undecided", "undecided"),
    # One mean is not above 0: G does not hold, whatever the mean over strata.
    ([[10 * v for v in CLEAR], [-0.01, 0.012, -0.03, 0.01, -0.01, 0.02]], "undecided", "fails"),
    ([[0.01] * 6], "holds", "fails"), ([[0.0] * 6], "fails", "holds"), ([[0.0099] * 6], "fails", "holds"),
    ([CLEAR[:5]], "undecided", "undecided"), ([[0.5]], "undecided", "undecided"),
    ([[0.5] * 5], "undecided", "undecided"),
], ids=str)
def test_decisions_come_in_their_order(strata: list[list[float]], g: str, e: str) -> None:
    assert outcome(*strata) == g
    assert outcome(*strata, rule=rule_e) == e


def test_a_margin_met_by_decimals_is_met() -> None:
    difference = 0.21 - 0.2
    assert difference < DELTA  # in binary
    assert outcome([difference] * 6) == "holds"


def test_strata_are_judged_at_a_stricter_level_than_the_whole() -> None:
    # Alone at 95 % the second stratum ends at .0099 and would fail; at 97.5 % it does not.
    second = [v * 0.0099 / 0.0123 for v in (0.002, -0.004, 0.008, 0.013, 0.009, 0.006)]
    part = y(second).alone[0].interval
    assert part.high is not None
    assert part.high < DELTA
    assert outcome(second) == "fails"
    verdict = rule_g(y(CLEAR, second), margin=DELTA)
    assert [p.shows for p in verdict.parts] == ["holds", "neither"]
    assert verdict.outcome == "holds"


def test_more_looks_ask_for_more() -> None:
    values = [0.02, 0.03, 0.001, 0.04, 0.035, 0.03]
    assert outcome(values) == "holds"
    assert outcome(values, alpha=0.05 / 3) == "undecided"
    assert rule_g(y(values, alpha=0.05 / 3), margin=DELTA).level == pytest.approx(1 - 0.05 / 3)


@given(st.lists(st.lists(st.floats(-1, 1).map(lambda v: round(v, 4)), min_size=7, max_size=7), min_size=1, max_size=4))
def test_whatever_the_numbers_there_is_one_outcome_and_a_sentence(strata: list[list[float]]) -> None:
    for rule in (rule_g, rule_e):
        verdict = rule(y(*strata), margin=DELTA)
        assert verdict.outcome in ("holds", "fails", "depends", "undecided")
        assert verdict.sentence
        assert "significant" not in verdict.sentence
        assert verdict.n == 7


@given(st.lists(st.floats(-1, 1).map(lambda v: round(v, 4)), min_size=1, max_size=5))
def test_fewer_than_six_seeds_decide_nothing(values: list[float]) -> None:
    for rule in (rule_g, rule_e):
        verdict = rule(y(values), margin=DELTA)
        assert verdict.outcome == "undecided"
        assert verdict.p is None
        assert f"{len(values)} seed" in verdict.sentence


@pytest.mark.parametrize(("strata", "words"), [
    ([NOISE], ["The interval begins at -0.0128, not above 0", "p is 0.25", "would take about"]),
    ([[0.03, 0.025, 0.04, 0.0, 0.035, 0.03]], ["The sign-flip p is 0.0625, above 0.05"]),
    ([[0.009, 0.0101, 0.0095, 0.0099, 0.009, 0.0101]], ["The mean is 0.0096, below the margin of 0.01",
                                                       "takes 6 seeds, which are there: the effect itself lies close"]),
    ([[10 * v for v in CLEAR], [-0.01, 0.012, -0.03, 0.01, -0.01, 0.02]], ["not above 0 in B"]),
    ([[1.0, -1.0] * 3], ["more than 10,000 seeds"]),
], ids=str)
def test_an_undecided_verdict_says_what_lacks_and_what_would_change_it(strata: list[list[float]],
                                                                       words: list[str]) -> None:
    verdict = rule_g(y(*strata), margin=DELTA)
    assert verdict.outcome == "undecided"
    for word in words:
        assert word in verdict.sentence


def test_where_test_images_are_few_no_number_of_seeds_is_promised() -> None:
    rng = np.random.default_rng(1)
    images = (np.ones((8, 1)) * rng.normal(0.02, 0.3, (1, 100)) + rng.normal(0, 0.01, (8, 100)))
    contrast = Contrast(y_SK=images.mean(axis=1, keepdims=True), strata=("A",), images_KSI=(images,))
    verdict = rule_g(contrast, margin=DELTA)
    assert verdict.outcome == "undecided"
    assert "No number of seeds" in verdict.sentence
    assert verdict.effect is not None
    assert verdict.effect.over == "seeds x images"


def test_where_seeds_agree_more_than_images_allow_the_images_are_named() -> None:
    # As many hits in every seed, mostly on the same images.
    images = np.array([[1.0] * 18 + list(np.random.default_rng(seed).permutation([1.0] * 2 + [0.0] * 180))
                       for seed in range(8)])
    contrast = Contrast(y_SK=images.mean(axis=1, keepdims=True), strata=("A",), images_KSI=(images,))
    verdict = rule_g(contrast, margin=0.12)
    assert verdict.outcome == "undecided"
    assert verdict.sentence.endswith("takes 6 seeds, which are there: the test images make it wider")


def test_a_verdict_carries_what_it_rests_on() -> None:
    contrast = Contrast(y_SK=np.array([CLEAR]).T, strata=("A",), run_ids=("a", "b"))
    verdict = rule_g(contrast, margin=DELTA)
    assert (verdict.run_ids, verdict.marks, verdict.level, verdict.n) == (("a", "b"), ("unanchored",), 0.95, 6)
    assert verdict.effect == contrast.interval
    few = rule_g(y(CLEAR[:3], AGAINST[:3]), margin=DELTA)
    assert [(part.name, part.shows) for part in few.parts] == [("A", None), ("B", None)]
    assert few.level_of_parts == 0.975
    assert verdict.p == 0.03125


def test_rule_d_needs_every_fact() -> None:
    assert rule_d({"rises strictly": True, "slope in [.9, 2.1]": True}) == Verdict(
        outcome="holds", sentence="Rises strictly; slope in [.9, 2.1]")
    assert rule_d({"rises": True, "doubles": False}).sentence == "Not so: doubles"
    assert rule_d({"rises": True, "doubles": False}).outcome == "fails"
    with pytest.raises(ValueError, match="a fact at least"):
        rule_d({})


@pytest.mark.parametrize("n", [6, 10])
def test_two_models_that_are_alike_get_holds_in_two_percent_of_studies_at_most(n: int) -> None:
    # Deviation .02 of paired differences, two strata: 2 % are stated; 1,000 studies have a standard error of .45 %.
    rng = np.random.default_rng(n)
    found = sum(rule_g(Contrast(y_SK=rng.normal(0, 0.02, (n, 2)), strata=("A", "B")), margin=DELTA).outcome == "holds"
                for _ in range(1000))
    assert found <= 30


def test_an_equivalence_at_its_margin_holds_in_three_percent_of_studies_at_most() -> None:
    rng = np.random.default_rng(4)
    found = sum(rule_e(Contrast(y_SK=rng.normal(DELTA, 0.02, (8, 1)), strata=("A",)), margin=DELTA).outcome == "holds"
                for _ in range(1000))
    assert 10 <= found <= 45  # 2.5 % by construction


def test_an_equivalence_needs_every_stratum() -> None:
    assert outcome(NOTHING, NOTHING, rule=rule_e) == "holds"
    wide = [0.001, -0.02, 0.02, -0.015, 0.014, 0.001]
    assert outcome(wide, rule=rule_e) == "undecided"
    assert outcome(NOTHING, wide, rule=rule_e) == "undecided"
    assert "in B" in rule_e(y(NOTHING, wide), margin=DELTA).sentence
