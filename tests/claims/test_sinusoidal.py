"""sinusoidal_positions_outgrow_their_training_size: what is lost on larger images, of learned and of sinusoidal."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.claims.simulated import level, study_of, verdict_on
from vitbench.claims import judge
from vitbench.measurement import Value
from vitbench.verdicts import Cell, Verdict
from vitbench.verdicts.conformance import losing

CLAIM, PROBE = "sinusoidal_positions_outgrow_their_training_size", "longer_sequences"
Drop = Callable[[Cell], float]


def study(sizes: str = "s", **more: Any) -> dict[str, Any]:
    return {"models": [{"name": "attention", "size": size, "positions": positions, "label": f"{size} {positions}"}
                       for size in sizes for positions in ("learned", "sinusoidal")],
            "images_per_class": [20, 80], "seeds": 10, **more}


def probe(drop: Drop, noise: float = 0.004, added: tuple[int, ...] = (1, 2, 3, 4)) -> dict[str, Any]:
    """Drops of the mean `drop(cell)` over borders of 1 to 4, and more beyond; learned positions are refused first."""

    def found(cell: Cell | None, rng: np.random.Generator) -> list[dict[str, Value]]:
        if cell is None:
            return []
        mean = drop(cell) + rng.normal(0, noise)
        refused: list[dict[str, Value]] = [{"beyond": "refused", "added": 1, "drop": None}]
        rows: list[dict[str, Value]] = [{"beyond": "interpolated", "added": n, "drop": mean * n / 2.5} for n in added]
        return [*refused, {"beyond": "interpolated", "added": 0, "drop": 0.0}, *rows,
                {"beyond": "interpolated", "added": 5, "drop": 0.9}]

    return {PROBE: found}


def of(learned: float, sinusoidal: float) -> Drop:
    return lambda cell: learned if cell.options["positions"] == "learned" else sinusoidal


def verdict(drop: Drop, noise: float = 0.004, **more: Any) -> Verdict:
    return verdict_on(CLAIM, level, study(**more), probes=probe(drop, noise))


@pytest.mark.parametrize(("drop", "noise", "outcome", "words"), [
    (of(0.2, 0.02), 0.004, "holds", "The mean is 0.18"),
    (of(0.02, 0.02), 0.004, "fails", "The interval ends below the margin of 0.01"),
    (of(0.02, 0.2), 0.004, "fails", "With sinusoidal positions themselves 0.2"),
    (of(0.6, 0.2), 0.004, "fails", "With sinusoidal positions themselves 0.2"),
    (of(0.2, 0.05), 0.03, "undecided", "More is lost with learned positions, but whether less than 0.05 is with"),
    (of(0.03, 0.01), 0.04, "undecided", "The interval begins at"),
])
def test_it_takes_a_smaller_drop_and_a_small_one(drop: Drop, noise: float, outcome: str, words: str) -> None:
    found = verdict(drop, noise)
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)
    assert ("would take about" in found.sentence) is (outcome == "undecided")


def test_both_drops_stand_beside_their_difference_mean_over_borders_of_1_to_4_and_over_all_sizes() -> None:
    found = verdict(lambda cell: of(0.2, 0.02)(cell) * (1.5 if cell.images == 80 else 0.5))
    assert [leg.effect.mean for leg in found.legs if leg.effect] == pytest.approx([0.2, 0.02], abs=0.005)
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(0.18, abs=0.005)
    assert len(found.run_ids) == 2 * 2 * 10


def test_the_p_that_it_carries_is_the_larger_of_the_two_that_it_takes() -> None:
    clear, close = verdict(of(0.2, 0.02)), verdict(of(0.2, 0.045), 0.006)
    assert close.outcome == "holds"
    assert clear.t_p is not None
    assert close.t_p is not None
    assert clear.t_p < 1e-6 < close.t_p < 0.05
    assert verdict(of(0.2, 0.06)).t_p == 1


def test_models_that_disagree_make_it_depend() -> None:
    found = verdict(lambda cell: of(0.2, 0.02)(cell) if cell.size == "s" else 0.02, sizes="sm")
    assert (found.outcome, found.sentence[:47]) == ("depends", "Holds in none, steps:300, default: s learned ag")


def test_five_seeds_decide_nothing() -> None:
    for drop in (of(0.2, 0.02), of(0.6, 0.2)):
        assert verdict(drop, seeds=5).sentence == "5 seeds: a verdict needs 6 or more, the same for every model"


def test_what_is_missing_is_named() -> None:
    alone = {**study(), "models": study()["models"][:1]}
    assert verdict_on(CLAIM, level, alone, probes=probe(of(0.2, 0.02))).sentence == (
        "The study has no models that are alike but for positions, one each of learned, sinusoidal")
    assert verdict_on(CLAIM, level, study()).sentence.endswith("run `vitbench probe longer_sequences simulated`")
    short = verdict_on(CLAIM, level, study(), probes=probe(of(0.2, 0.02), added=(1, 2)))
    assert (short.outcome, short.sentence) == (
        "blocked", "s learned takes no images that are larger by 1 to 4 tokens a side")


def test_a_measurement_of_narrower_borders_does_not_count() -> None:
    whole = study_of(level, study(), probes=probe(of(0.2, 0.02)))
    (one,) = whole.probe(PROBE)
    narrow = replace(whole, measured=lambda _: (one.model_copy(update={"options": {"most": 2}}),))
    assert judge(CLAIM, narrow).outcome == "undecided"
    assert judge(CLAIM, replace(whole, measured=lambda _: (
        one.model_copy(update={"options": {"most": 4}}),))).outcome == "holds"


def test_a_lost_run_drops_by_nothing() -> None:
    whole = losing(study_of(level, study(), probes=probe(of(0.2, 0.02))),
                   lambda row: row.seed == 0 and row.label == "s learned")
    found = judge(CLAIM, whole)
    assert found.outcome == "holds"
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(0.18 - 0.02, abs=0.005)
