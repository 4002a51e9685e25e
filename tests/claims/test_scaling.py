"""scaling_keeps_softmax_soft: entropies of trained layers, with theory, slope and accuracy beside them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.claims.simulated import level, study_of, verdict_on
from vitbench.claims import judge
from vitbench.measurement import Value
from vitbench.verdicts import Cell, Evidence, Expected, Verdict
from vitbench.verdicts.conformance import losing

CLAIM, PROBE = "scaling_keeps_softmax_soft", "score_variance"
Softer = Callable[[Cell, int], float]


def study(*heads: int, sizes: tuple[str, ...] = ("s",)) -> dict[str, Any]:
    return {"models": [{"name": "attention", "size": size, "normaliser": "softmax", "score": score, "num_heads": number,
                        "label": f"{size} {score} {number}"}
                       for size in sizes for number in heads for score in ("scaled_dot", "dot")],
            "images_per_class": [80], "seeds": 10}


def probe(softer: Softer, theory: float = 1.0, noise: float = 0.02) -> dict[str, Any]:
    """Entropies of two layers, .1 apart in all runs; scaling makes them softer by `softer(cell, d_k)`."""

    def found(cell: Cell | None, rng: np.random.Generator) -> list[dict[str, Value]]:
        if cell is None:
            return [{"kind": "unit queries and keys", "d_k": 64, "theory": t, "variance": t * theory} for t in (64, 1)]
        d_k = 64 // cell.options["num_heads"]
        soft = 0.6 + softer(cell, d_k) * (cell.options["score"] == "scaled_dot") + rng.normal(0, noise)
        return [{"kind": kind, "d_k": d_k, "layer": layer, "entropy": 1.0 if kind == "model, untrained" else
                 float(soft + 0.1 * layer)} for kind in ("model, untrained", "model, trained") for layer in (0, 1)]

    return {PROBE: found}


def verdict(softer: Softer, *heads: int, theory: float = 1.0, noise: float = 0.02, **more: Any) -> Verdict:
    return verdict_on(CLAIM, level, study(*heads or (1,), **more), probes=probe(softer, theory, noise))


@pytest.mark.parametrize(("softer", "theory", "noise", "outcome", "words"), [
    (0.2, 1.0, 0.02, "holds", "The mean is 0."),
    (0.0, 1.0, 0.02, "depends", "Theory holds and training does not, at d_k = 64. The interval ends below the margin"),
    (0.0, 1.2, 0.02, "fails", "The interval ends below the margin"),
    (-0.2, 1.0, 0.02, "depends", "Theory holds and training does not"),
    (0.06, 1.0, 0.15, "undecided", "The interval begins at"),
])
def test_it_decides_by_the_entropy_after_training(softer: float, theory: float, noise: float, outcome: str,
                                                  words: str) -> None:
    found = verdict(lambda *_: softer, theory=theory, noise=noise)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)
    assert ("would take about" in found.sentence) is (outcome == "undecided")


def test_it_is_the_difference_at_the_largest_d_k_and_the_slope_is_that_on_log2_d_k() -> None:
    found = verdict(lambda _, d_k: 0.05 * np.log2(d_k) - 0.1, 4, 1, 2, noise=0.005)
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(0.2, abs=0.01)
    assert len(found.run_ids) == 6 * 10  # the slope is of all three
    assert [part.name.partition(": ")[2] for part in found.parts] == ["s scaled_dot 1 against s dot 1"]
    theory, slope, accuracy = found.legs
    assert (theory.outcome, slope.outcome, accuracy.outcome) == ("holds", None, None)
    assert slope.effect is not None
    assert slope.effect.mean == pytest.approx(0.05, abs=0.005)


def test_of_one_d_k_there_is_no_slope() -> None:
    slope = verdict(lambda *_: 0.2).legs[1]
    assert (slope.effect, slope.sentence) == (None, "It takes two values of d_k; the study has 64 alone")


def test_the_accuracy_stands_apart() -> None:
    found = verdict_on(CLAIM, lambda cell: Expected(0.9 if cell.options["score"] == "dot" else 0.8), study(1),
                       probes=probe(lambda *_: 0.2))
    assert found.outcome == "holds"
    assert found.legs[2].effect is not None
    assert found.legs[2].effect.mean == pytest.approx(-0.1, abs=0.02)


def test_models_that_disagree_make_it_depend() -> None:
    found = verdict(lambda cell, _: 0.2 if cell.size == "s" else 0.0, sizes=("s", "m"))
    assert found.outcome == "depends"
    assert found.sentence == ("Holds in none, steps:300, default: s scaled_dot 1 against s dot 1; fails in none, "
                              "steps:300, default: m scaled_dot 1 against m dot 1")


def test_five_seeds_decide_nothing() -> None:
    found = verdict_on(CLAIM, level, {**study(1), "seeds": 5}, probes=probe(lambda *_: 0.3))
    assert (found.outcome, found.sentence) == (
        "undecided", "5 seeds: a verdict needs 6 or more, the same for every model")


def test_without_a_pair_it_is_blocked_and_without_the_probe_it_says_what_to_run() -> None:
    alone = {**study(1), "models": study(1)["models"][:1]}
    assert verdict_on(CLAIM, level, alone, probes=probe(lambda *_: 0.2)).sentence == (
        "The study has no models that are alike but for score, one each of scaled_dot, dot, normaliser softmax")
    found = verdict_on(CLAIM, level, study(1))
    assert found.outcome == "undecided"
    assert found.sentence.endswith("run `vitbench probe score_variance simulated`")


def lost(of: Evidence, *seeds: int) -> Evidence:
    return losing(of, lambda row: row.seed in seeds and "scaled" in row.label)


def test_a_seed_that_lost_a_run_counts_as_no_difference_and_then_not_at_all() -> None:
    whole = study_of(level, study(1), probes=probe(lambda *_: 0.2))
    found = judge(CLAIM, lost(whole, 3))
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(0.9 * 0.2, abs=0.02)
    assert found.sentence.endswith("1 of its runs diverged or failed; as chance and without their seeds the outcome is "
                                   "the same")
    assert judge(CLAIM, lost(whole, *range(6))).outcome == "undecided"
    assert judge(CLAIM, lost(whole, *range(10))).sentence.startswith("10 of its runs diverged or failed")
    dead = judge(CLAIM, losing(whole, lambda _: True))
    assert dead.outcome == "blocked"
    assert "ended, so there is nothing to look at" in dead.sentence


def test_a_mechanism_measured_on_too_little_does_not_count_as_theory() -> None:
    whole = study_of(level, study(1), probes=probe(lambda *_: 0.2))
    (one,) = whole.probe(PROBE)
    few = replace(whole, measured=lambda _: (one.model_copy(update={"options": {"sequences": 8}}),))
    assert judge(CLAIM, few).sentence.endswith("run `vitbench probe score_variance`")
