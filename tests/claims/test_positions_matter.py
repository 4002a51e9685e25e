"""positions_matter: pixels and patches, and nothing without its positive control."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.claims.simulated import Law
from vitbench.claims import judge
from vitbench.verdicts import Cell, Evidence, Expected, Planted, Verdict
from vitbench.verdicts.conformance import losing
from vitbench.verdicts.simulated import simulate

NAME, CONTROL = "positions_matter", "shapes_where"


def models(*tokens: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "attention", "size": "s", "label": f"{kind} {positions}", "tokens": kind, "positions": positions,
             **more} for kind in tokens for positions in ("learned", "none")]


STUDY = {"models": models("patch", "pixel"), "images_per_class": [20, 80], "seeds": 10}


def law(patch: float = 4.0, pixel: float = 4.0, control: float = 0.1) -> Law:
    """Points that positions bring patches and pixels, and the accuracy without them on shapes_where."""

    def of(cell: Cell) -> Expected:
        learned = cell.options["positions"] == "learned"
        if cell.dataset == CONTROL:
            return Expected(0.9 if learned else control)
        return Expected(0.88 + learned / 100 * {"patch": patch, "pixel": pixel}.get(cell.options["tokens"], 0))

    return of


def evidence(of: Law, elsewhere: tuple[str, ...] = (CONTROL,), **study: Any) -> Evidence:
    planted = Planted("", of, 0.9, {**STUDY, **study}, elsewhere=elsewhere)
    return simulate(planted, np.random.default_rng([31, 0]))


def verdict(of: Law, **study: Any) -> Verdict:
    return judge(NAME, evidence(of, **study))


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(), "holds", "The mean is"),
    (law(-2, -2), "fails", "The interval ends below the margin"),
    (law(4, -4), "depends", "Holds in none, steps:300, default: patch learned against patch none; fails in none, "
                            "steps:300, default: pixel learned against pixel none"),
    (law(0.9, 0.9), "undecided", "The mean is"),
    (law(control=0.16), "blocked", "On shapes_where, where only places decide, patch none is not within 0.05 of "
                                   "chance: 0.1"),
    (law(control=0.04), "blocked", "On shapes_where, where only places decide, patch none is not within 0.05 of"),
])
def test_it_decides_over_patches_and_pixels_where_its_control_is_right(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_its_control_stands_beside_it() -> None:
    found = verdict(law())
    assert [leg.name for leg in found.legs] == ["patch none on shapes_where", "pixel none on shapes_where"]
    for leg in found.legs:
        accuracy, _, rest = leg.sentence.partition(" in study simulated, none, steps:300, default ")
        assert float(accuracy) == pytest.approx(0.1, abs=0.02)
        assert rest.startswith("(chance 0.1; with positions 0.")


def test_without_a_study_of_its_control_it_is_undecided_and_says_what_to_run() -> None:
    found = judge(NAME, evidence(law(), elsewhere=()))
    assert found.outcome == "undecided"
    assert "a study of the dataset shapes_where, which is not there" in found.sentence


@pytest.mark.parametrize("strange", [models("patch"), models("patch", "pixel", num_heads=2), ["convolution:s"]])
def test_a_control_on_other_models_is_none(strange: list[Any]) -> None:
    beside = evidence(lambda _: Expected(0.1), models=strange, elsewhere=())
    found = judge(NAME, replace(evidence(law()), elsewhere=lambda _: (beside,)))
    assert found.outcome == "undecided"
    assert "Its positive control is missing: no study on shapes_where in the results folder has runs of p" in (
        found.sentence)


def test_a_control_with_other_patches_is_one() -> None:
    (beside,) = evidence(law(), models=models("patch", "pixel", patch_size=4)).on(CONTROL)
    assert judge(NAME, replace(evidence(law()), elsewhere=lambda _: (beside,))).outcome == "holds"


def test_runs_that_were_lost_are_no_control() -> None:
    whole = evidence(law(control=0.5))
    (beside,) = whole.on(CONTROL)
    lost = losing(beside, lambda row: row.label == "patch none")
    found = judge(NAME, replace(whole, elsewhere=lambda _: (lost,)))
    assert found.outcome == "undecided"
    assert found.sentence.endswith("has runs of patch none (the same model, size and options)")


def test_every_study_of_the_control_must_be_at_chance() -> None:
    (right,), (wrong,) = evidence(law()).on(CONTROL), evidence(law(control=0.4)).on(CONTROL)
    for both in ((right, wrong), (wrong, right)):
        assert judge(NAME, replace(evidence(law()), elsewhere=lambda _, both=both: both)).outcome == "blocked"


@pytest.mark.parametrize(("study", "words"), [
    ({"models": models("patch")}, "alike but for positions, one each of learned, none, tokens pixel"),
    ({"models": models("pixel")}, "alike but for positions, one each of learned, none, tokens patch"),
    ({"models": models("pixel", "conv_stem")}, "alike but for positions, one each of learned, none, tokens patch"),
])
def test_both_kinds_of_tokens_are_needed(study: dict[str, Any], words: str) -> None:
    found = verdict(law(), **study)
    assert found.outcome == "blocked"
    assert words in found.sentence


def test_features_of_a_convolutional_stem_are_left_out() -> None:
    found = verdict(law(), models=models("patch", "pixel", "conv_stem"))
    assert found.outcome == "holds"
    assert len(found.parts) == 2


def test_five_seeds_decide_nothing() -> None:
    assert verdict(law(9, 9), seeds=5).sentence.startswith("5 seeds: a verdict needs 6")
