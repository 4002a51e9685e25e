"""attention_sees_the_whole_image: far pairs less near pairs, in two studies that have to match."""

from collections.abc import Callable
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest

from tests.claims.simulated import Law, study_of
from vitbench.claims import judge
from vitbench.claims.attention_sees_the_whole_image import DISTANCE
from vitbench.datasets.far_pairs import Options
from vitbench.measurement import Measurement
from vitbench.verdicts import Evidence, Expected, Verdict
from vitbench.verdicts.conformance import losing

CLAIM = "attention_sees_the_whole_image"
STUDY: dict[str, Any] = {"dataset": "far_pairs", "models": ["attention:l", "convolution:l"],
                         "images_per_class": [20, 80], "seeds": 10}


def law(att_far: float = 0.9, cnn_far: float = 0.6, att_near: float = 0.9, cnn_near: float = 0.9) -> Law:
    """Accuracies at the full size."""
    near, far = {"attention": att_near, "convolution": cnn_near}, {"attention": att_far, "convolution": cnn_far}
    return lambda cell: Expected((near if cell.dataset == "near_pairs" else far)[cell.family]
                                 if cell.images == 80 else 0.3)


def both(of: Law, change: dict[str, Any] | None = None, **study: Any) -> tuple[Evidence, Evidence]:
    """The far study and the near one, which may be changed, in one folder."""
    far = replace(study_of(of, {**STUDY, **study}), study="far")
    near = study_of(of, {**STUDY, **study, "dataset": "near_pairs", **(change or {})}, number=1)
    return together(far, replace(near, study="near"))


def together(far: Evidence, *near: Evidence) -> tuple[Evidence, Evidence]:
    return (replace(far, elsewhere=lambda name: near if name == "near_pairs" else ()),
            replace(near[0], elsewhere=lambda name: (far,) if name == "far_pairs" else ()))


def verdict(of: Law, change: dict[str, Any] | None = None, **study: Any) -> Verdict:
    return judge(CLAIM, both(of, change, **study)[0])


@pytest.mark.parametrize(("of", "outcome", "words"), [
    (law(), "holds", "The mean is 1."),
    (law(0.9, 0.9), "fails", "The interval ends below the margin of 0.2"),
    (law(0.9, 0.7, 0.95, 0.8), "fails", "The interval ends below the margin of 0.2"),  # as far ahead on near pairs
    (law(0.6, 0.9), "fails", "The interval ends below the margin of 0.2"),
    (law(0.8, 0.76), "undecided", "The interval begins at"),
    (law(0.12, 0.12), "blocked", "Neither model is 0.05 above chance on far_pairs, in none, steps:300, default: att"),
    (law(0.2, 0.1), "holds", "The mean is 0."),  # one of them is
    (law(0.9, 0.6, 0.9999, 0.9999), "blocked", "Both models are right on all but 0.005 of near_pairs at most, in none"),
    (law(0.9, 0.6, 0.9999, 0.95), "fails", "The interval ends below"),  # one of them is not
])
def test_it_decides_by_the_lead_on_far_pairs_less_that_on_near_ones(of: Law, outcome: str, words: str) -> None:
    found = verdict(of)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)


def test_the_contrast_is_of_log_odds_with_half_an_image_more() -> None:
    far, near = both(law())
    z = {(row.dataset.partition("@")[0], row.family, row.seed): log(
        (row.test_accuracy * 1000 + 0.5) / (1000 - row.test_accuracy * 1000 + 0.5))
        for row in (*far.rows, *near.rows) if row.share == "80 a class"}
    leads = {name: [z[name, "attention", seed] - z[name, "convolution", seed] for seed in range(10)]
             for name in ("far_pairs", "near_pairs")}
    found = judge(CLAIM, far)
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(np.mean(leads["far_pairs"]) - np.mean(leads["near_pairs"]))
    assert found.effect.sd == pytest.approx(np.std(np.subtract(*leads.values()), ddof=1))
    means = [leg.effect.mean for leg in found.legs if leg.effect]
    assert means == pytest.approx([np.mean(lead) for lead in leads.values()])
    assert set(found.run_ids) == {row.run_id for row in (*far.rows, *near.rows) if row.share == "80 a class"}


def test_from_either_study_it_is_the_same_verdict() -> None:
    for of in (law(), law(0.9, 0.9), law(0.12, 0.12)):
        far, near = both(of)
        assert judge(CLAIM, far) == judge(CLAIM, near)


def test_pairs_that_disagree_make_it_depend() -> None:
    models = ["attention:l", "convolution:l", {"name": "attention", "size": "l", "num_heads": 1, "label": "one head"}]
    found = verdict(lambda cell: law()(cell) if cell.label != "one head" else Expected(0.6 if "far" in cell.dataset
                                                                                      else 0.9), models=models)
    assert (found.outcome, found.sentence[:60]) == (
        "depends", "Holds in none, steps:300, default: attention:l against convo")


def test_five_seeds_decide_nothing() -> None:
    assert verdict(law(), seeds=5).sentence == "5 seeds: a verdict needs 6 or more, the same for every model"


def test_a_study_of_other_images_or_of_other_sizes_is_blocked() -> None:
    assert verdict(law(), dataset="digits", change={}).sentence == (
        "It takes a study of far_pairs and one of near_pairs; this one is of digits")
    assert "no model of the family attention at the size l" in verdict(
        law(), models=["attention:s", "convolution:l"]).sentence


def test_without_the_other_study_it_says_what_to_run() -> None:
    found = judge(CLAIM, study_of(law(), STUDY))
    assert found.outcome == "undecided"
    assert "a study of the dataset near_pairs, which is not there: run one with the same models" in found.sentence


@pytest.mark.parametrize(("change", "words"), [
    ({"models": ["attention:l", {"name": "convolution", "size": "l", "width": 3}]},
     "near: differs in models, recipes or conditions"),
    ({"recipe": {"learning_rate": 0.5}}, "near: differs in models, recipes or conditions"),
    ({"budgets": [{"steps": 300}, {"steps": 600}]}, "near: differs in models, recipes or conditions"),
    ({"images_per_class": [20, 40]}, "near: differs in images drawn"),
    ({"models": ["attention:s", "convolution:s"]}, "near: The study has no model of the family attention at"),
    ({"seeds": 12}, "Study far asks for no runs of the seeds 10; 11, which study near has"),
    ({"seeds": 8}, "Study near asks for no runs of the seeds 8; 9, which study far has"),
])
def test_what_does_not_match_is_named(change: dict[str, Any], words: str) -> None:
    of = lambda cell: Expected(0.9)  # noqa: E731
    for one in both(of, change):
        found = judge(CLAIM, one)
        assert found.outcome == "blocked"
        assert words.replace("near: ", "") in found.sentence
    assert words in judge(CLAIM, both(of, change)[0]).sentence


def test_models_are_told_by_what_they_are_not_by_their_labels() -> None:
    labelled = {"models": [{"name": family, "size": "l", "label": f"my {family}"}
                           for family in ("convolution", "attention")]}
    assert verdict(law(), labelled).outcome == "holds"


def test_of_several_studies_one_must_fit() -> None:
    far, near = both(law())
    small = replace(study_of(law(), {**STUDY, "dataset": "near_pairs", "models": ["attention:s"]}), study="small")
    assert judge(CLAIM, together(far, near, small)[0]).outcome == "holds"
    twice = judge(CLAIM, together(far, near, replace(near, study="again"), small)[0])
    assert twice.outcome == "blocked"
    assert "in this folder: near fits; again fits; small: The study has no model" in twice.sentence


def test_a_missing_run_is_named_with_its_study() -> None:
    far, near = both(law())
    gone = replace(near, rows=tuple(row for row in near.rows if row.seed != 3 or row.family == "attention"))
    found = judge(CLAIM, together(far, gone)[0])
    assert (found.outcome, found.sentence) == (
        "blocked", "1 of the 20 runs that it rests on are missing (convolution:l at 80 a class, seed 3); `vitbench run "
                   "near` does them")


def lost_in(which: int, of: Law, seeds: int) -> Verdict:
    """Where the CNN was lost in the first seeds of the far study (0) or of the near one (1)."""
    studies = list(both(of))
    studies[which] = losing(studies[which], lambda row: row.seed < seeds and row.family == "convolution")
    found = [judge(CLAIM, one) for one in together(*studies)]
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(("which", "of", "as_chance", "without"), [
    (0, law(0.9, 0.9), "undecided", "fails"), (1, law(), "undecided", "holds")])
def test_lost_runs_of_either_study_count_as_chance_and_then_not_at_all(which: int, of: Law, as_chance: str,
                                                                       without: str) -> None:
    found = lost_in(which, of, 4)
    assert found.outcome == "undecided"
    assert f"4 of its runs diverged or failed. With them as chance: {as_chance}. " in found.sentence
    assert f"Without their seeds (n = 6): {without}. " in found.sentence
    assert "n = 0): blocked. Every seed has a run that diverged or failed" in lost_in(which, of, 10).sentence


def test_where_both_analyses_agree_lost_runs_are_told() -> None:
    assert lost_in(0, law(), 1).sentence.endswith(
        "1 of its runs diverged or failed; as chance and without their seeds the outcome is the same")


def test_runs_on_two_devices_are_no_ground_for_it() -> None:
    far, near = both(law())
    other = replace(near, rows=tuple(replace(row, device="cuda:0") for row in near.rows))
    assert "computed on cuda:0, simulated" in judge(CLAIM, together(far, other)[0]).sentence


def test_an_exploratory_study_makes_it_exploratory_from_either_side() -> None:
    far, near = both(law())
    for one in together(far, replace(near, exploratory="Seeds were added.")):
        found = judge(CLAIM, one)
        assert found.outcome == "exploratory"
        assert found.sentence.startswith("Seeds were added. Without that: holds. The mean is ")


def test_it_is_judged_at_the_stricter_level_of_the_two() -> None:
    far, near = both(law())
    assert judge(CLAIM, together(far, replace(near, looks=5))[0]).level == pytest.approx(0.99)


def measurement(field: int | None) -> Callable[[str], tuple[Measurement, ...]]:
    one = Measurement(probe="attention_distance", version=1, statement="", source="", options={}, columns=(), figure={},
                      rows=({"label": "convolution:l", "field": field}, {"label": "attention:l", "field": None}),
                      summary="", code_version="")
    return lambda name: (one,) if name == "attention_distance" else ()


def test_the_receptive_field_stands_beside_it_where_it_is_known() -> None:
    far, near = both(law())
    assert judge(CLAIM, far).legs[-1].sentence == (
        "that of convolution:l is told by `vitbench probe attention_distance far`; the two things stand 20 pixels "
        "apart")
    known = judge(CLAIM, together(replace(far, measured=measurement(23)), near)[0])
    assert known.legs[-1].sentence == "convolution:l sees 23 pixels a side; the two things stand 20 pixels apart"


def test_the_distance_is_that_of_the_dataset() -> None:
    assert Options().distance == DISTANCE
