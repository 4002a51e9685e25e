"""receptive_field_is_learned: how much more heads differ in their distances, after training than before."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.claims.simulated import level, study_of, verdict_on
from vitbench.claims import judge
from vitbench.measurement import Value
from vitbench.verdicts import Cell, Evidence, Verdict
from vitbench.verdicts.conformance import losing

CLAIM, PROBE = "receptive_field_is_learned", "attention_distance"
Change = Callable[[Cell], float]
STUDY: dict[str, Any] = {"models": ["attention:s"], "images_per_class": [20, 40, 80], "seeds": 10}


def probe(change: Change, noise: float = 0.008) -> dict[str, Any]:
    def found(cell: Cell | None, rng: np.random.Generator) -> list[dict[str, Value]]:
        if cell is None:
            return []
        after = change(cell) + rng.normal(0, noise)
        return [{"kind": "head", "when": "trained", "deviation_change": None},
                {"kind": "all heads", "when": "untrained", "deviation_change": 0.0},
                {"kind": "all heads", "when": "in training", "deviation_change": 0.5},
                {"kind": "all heads", "when": "trained", "deviation_change": float(after)}]

    return {PROBE: found}


def verdict(change: Change, noise: float = 0.008, **more: Any) -> Verdict:
    return verdict_on(CLAIM, level, {**STUDY, **more}, probes=probe(change, noise))


@pytest.mark.parametrize(("change", "noise", "outcome", "words"), [
    (0.06, 0.008, "holds", "The mean is 0.0"), (0.0, 0.008, "fails", "The interval ends below the margin of 0.02"),
    (-0.06, 0.008, "fails", "The interval ends below"), (0.01, 0.002, "fails", "The interval ends below"),
    (0.03, 0.06, "undecided", "The interval begins at")])
def test_it_decides_by_the_change_at_the_end_of_training(change: float, noise: float, outcome: str, words: str) -> None:
    found = verdict(lambda _: change, noise)
    assert found.outcome == outcome
    assert words in found.sentence
    assert ("would take about" in found.sentence) is (outcome == "undecided")


def test_it_is_that_at_the_full_size_and_the_slope_is_on_log2_n() -> None:
    found = verdict(lambda cell: 0.03 * np.log2(cell.images / 20))
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(0.06, abs=0.01)
    (slope,) = found.legs
    assert slope.outcome is None
    assert slope.effect is not None
    assert slope.effect.mean == pytest.approx(0.03, abs=0.005)
    (none,) = verdict(lambda _: 0.06, images_per_class=[80]).legs
    assert none.sentence == "It takes two sizes of data; the study has 80 a class alone"


def test_models_that_disagree_make_it_depend() -> None:
    found = verdict(lambda cell: 0.06 if cell.size == "s" else 0.0, models=["attention:s", "attention:m"])
    assert found.outcome == "depends"
    assert found.sentence == "Holds in none, steps:300, default: attention:s; fails in none, steps:300, default: " \
                             "attention:m"


def test_models_that_do_not_see_the_whole_image_are_no_stratum() -> None:
    models = ["attention:s", "convolution:s", "hybrid:s", {"name": "attention", "size": "s", "span": "window",
                                                          "window": 3, "label": "window"}]
    found = verdict(lambda cell: 0.06 if cell.label == "attention:s" else -1.0, models=models)
    assert (found.outcome, len(found.parts)) == ("holds", 1)
    assert verdict(lambda _: 0.06, models=models[1:]).sentence == (
        "The study has no model of attention that sees the whole image and can be looked into")


def without(of: Evidence, label: str, *, asked: bool) -> Evidence:
    """As the probe leaves it that saw nothing in a model, or was not asked to."""
    (one,) = of.probe(PROBE)
    gone = {row.run_id for row in of.rows if row.label == label}
    rows = tuple(row for row in one.rows if row["run"] not in gone)
    ids = one.run_ids if asked else tuple(run_id for run_id in one.run_ids if run_id not in gone)
    return replace(of, measured=lambda _: (one.model_copy(update={"rows": rows, "run_ids": ids}),))


def test_a_model_that_cannot_be_looked_into_is_left_out_and_one_that_was_not_is_missing() -> None:
    whole = study_of(level, {**STUDY, "models": ["attention:s", "attention:m"]}, probes=probe(lambda _: 0.06))
    left = judge(CLAIM, without(whole, "attention:m", asked=True))
    assert (left.outcome, [part.name for part in left.parts]) == ("holds", ["none, steps:300, default: attention:s"])
    missing = judge(CLAIM, without(whole, "attention:m", asked=False))
    assert missing.outcome == "undecided"
    assert missing.sentence == (
        "It rests on what the probe attention_distance measures on its runs, and attention:m at 80 a class, seed 0, "
        "was not looked at as it stands on record: run `vitbench probe attention_distance simulated`")


def test_where_the_full_size_alone_was_looked_at_the_slope_says_what_is_missing() -> None:
    whole = study_of(level, STUDY, probes=probe(lambda _: 0.06))
    (one,) = whole.probe(PROBE)
    full = one.model_copy(update={"rows": tuple(row for row in one.rows if row["share"] == "80 a class")})
    found = judge(CLAIM, replace(whole, measured=lambda _: (full,)))
    assert found.outcome == "holds"
    assert "attention:s at 20 a class, seed 0, was not looked at" in found.legs[0].sentence


def test_one_head_alone_has_no_deviation() -> None:
    def found(cell: Cell | None, _: np.random.Generator) -> list[dict[str, Value]]:
        return [] if cell is None else [{"kind": "all heads", "when": "trained", "deviation_change": None}]

    alone = verdict_on(CLAIM, level, STUDY, probes={PROBE: found})
    assert (alone.outcome, alone.sentence) == (
        "blocked", "There is no deviation_change of attention:s at 80 a class, seed 0")


def test_five_seeds_decide_nothing_and_a_lost_run_has_learned_nothing() -> None:
    assert verdict(lambda _: 0.06, seeds=5).outcome == "undecided"
    whole = study_of(level, STUDY, probes=probe(lambda _: 0.06))
    found = judge(CLAIM, losing(whole, lambda row: row.seed == 0))
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(0.054, abs=0.008)
    assert "3 of its runs diverged or failed; as chance and without" in found.sentence
