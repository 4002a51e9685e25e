"""Pairs and contrasts: every number from the right run, and nothing dropped in silence."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitbench.row import Row
from vitbench.verdicts import (
    Blocked,
    Evidence,
    Expected,
    Planted,
    Rows,
    Side,
    accuracy_contrast,
    accuracy_difference,
    contrast_between,
    contrast_of,
)
from vitbench.verdicts.conformance import losing
from vitbench.verdicts.evidence import CellOf
from vitbench.verdicts.groups import matched_pairs
from vitbench.verdicts.simulated import simulate

MODELS = ["attention:s", "attention:m", "convolution:s", "convolution:m", "control:s"]


def evidence(**study: Any) -> Evidence:
    values = {"models": MODELS, "images_per_class": [5, 20], "seeds": 3, **study}
    return simulate(Planted("none", lambda cell: Expected(0.8), 0.5, values), np.random.default_rng(0))


def where(of: Evidence, keep: Any) -> Evidence:
    return replace(of, rows=tuple(row for row in of.rows if keep(row)))


def changed(of: Evidence, which: Any, **values: Any) -> Evidence:
    return replace(of, rows=tuple(replace(row, **values) if which(row) else row for row in of.rows))


def test_pairs_match_in_parameters_not_in_names() -> None:
    found = evidence()
    assert [s.models for s in matched_pairs(found)] == [
        ("attention:m", "convolution:m"), ("attention:s", "convolution:s")]
    facts = dict(found.models)
    facts["attention:s"] = replace(facts["attention:s"], params=450_000)
    assert [s.models for s in matched_pairs(replace(found, models=facts))] == [
        ("attention:m", "convolution:m"), ("attention:s", "convolution:m")]


def test_there_is_a_stratum_a_condition_and_pair() -> None:
    found = matched_pairs(evidence(budgets=[{"steps": 100}, {"epochs": 5}]))
    assert [s.name for s in found] == [f"none, {budget}, default: attention:{size} against convolution:{size}"
                                       for budget in ("epochs:5", "steps:100") for size in "ms"]


@pytest.mark.parametrize(("models", "message"), [
    (["attention:s", "control:s"], "no model of the family convolution"),
    (["convolution:s"], "no model of the family attention"),
    (["attention:s", "attention:xl", "convolution:m"], "the closest, attention:s and convolution:m, differ by 300%"),
])
def test_without_a_matched_pair_it_is_blocked(models: list[str], message: str) -> None:
    with pytest.raises(Blocked, match=message):
        matched_pairs(evidence(models=models))


def test_a_model_whose_runs_tell_no_parameters_is_not_dropped_in_silence() -> None:
    found = evidence()
    facts = {**found.models, "attention:m": replace(found.models["attention:m"], params=None)}
    with pytest.raises(Blocked, match="No run of attention:m tells its params"):
        matched_pairs(replace(found, models=facts))


def test_each_seed_is_paired_with_itself() -> None:
    found = evidence()
    pairs = matched_pairs(found)
    contrast = accuracy_difference(found, pairs, "20 a class")
    rows = {(row.label, row.seed): row for row in found.rows if row.share == "20 a class"}
    for k, size in enumerate("ms"):
        for seed in range(3):
            difference = rows[f"attention:{size}", seed].test_accuracy - rows[f"convolution:{size}", seed].test_accuracy
            assert contrast.y_SK[seed, k] == pytest.approx(difference)
    assert contrast.run_ids == tuple(sorted(r.run_id for r in rows.values() if r.family != "control"))


def test_image_by_image_it_is_the_same_contrast() -> None:
    found = evidence()
    weights = {(0, "5 a class"): 0.5, (0, "20 a class"): 0.5, (1, "20 a class"): -1.0}
    contrast = accuracy_contrast(found, matched_pairs(found), weights)
    for k, images_SI in enumerate(contrast.images_KSI):
        assert images_SI.mean(axis=1) == pytest.approx(contrast.y_SK[:, k])


def test_a_lost_run_counts_as_chance_image_by_image_too_and_is_left_out_with_its_seed_in_the_second_analysis() -> None:
    def lost(row: Row) -> bool:
        return row.label == "attention:s" and row.seed == 1

    whole = losing(evidence(), lost)
    pairs = matched_pairs(whole)
    first = accuracy_difference(whole, pairs, "20 a class")
    other = next(r for r in whole.rows if (r.label, r.seed, r.share) == ("convolution:s", 1, "20 a class"))
    assert first.y_SK[1, 1] == pytest.approx(0.1 - other.test_accuracy)
    assert first.images_KSI[1].mean(axis=1) == pytest.approx(first.y_SK[:, 1])
    second = accuracy_difference(whole.without_lost(), matched_pairs(whole.without_lost()), "20 a class")
    assert second.y_SK == pytest.approx(first.y_SK[[0, 2]])


def test_where_every_seed_has_a_lost_run_the_second_analysis_is_blocked() -> None:
    whole = losing(evidence(), lambda row: row.label == "attention:s")
    assert [s.models for s in matched_pairs(whole.without_lost())] == [s.models for s in matched_pairs(whole)]
    with pytest.raises(Blocked, match="Every seed has a run that diverged or failed"):
        accuracy_difference(whole.without_lost(), matched_pairs(whole), "20 a class")


def test_a_missing_run_is_named_and_blocks_even_where_others_were_lost() -> None:
    whole = losing(where(evidence(), lambda r: (r.label, r.seed, r.share) != ("convolution:m", 2, "20 a class")),
                   lambda row: row.seed == 0)
    for view in (whole, whole.without_lost()):
        with pytest.raises(Blocked, match=r"1 of the 12 runs .* \(convolution:m at 20 a class, seed 2\)"):
            accuracy_difference(view, matched_pairs(whole), "20 a class")


def test_many_missing_runs_are_counted() -> None:
    whole = evidence()
    with pytest.raises(Blocked, match=r"12 of the 12 runs .* and 9 more"):
        accuracy_difference(where(whole, lambda row: row.share == "5 a class"), matched_pairs(whole), "20 a class")


def test_a_run_that_the_contrast_does_not_need_may_be_missing() -> None:
    whole = evidence()
    part = where(whole, lambda row: row.family != "control" and row.share == "20 a class")
    accuracy_difference(part, matched_pairs(part), "20 a class")


def test_any_number_of_the_rows_can_be_contrasted_and_must_be_finite() -> None:
    whole = evidence()
    pairs, shares = matched_pairs(whole), ("5 a class", "20 a class")
    gaps = contrast_of(whole, pairs, shares, lambda rows: rows[0, "20 a class"].gap - rows[1, "5 a class"].gap)
    assert gaps.y_SK.shape == (3, 2)
    assert gaps.images_KSI == ()
    assert len(gaps.run_ids) == 2 * 2 * 2 * 3
    with pytest.raises(Blocked, match="no finite number at seed 0, none, steps:300, default: attention:m"):
        contrast_of(whole, pairs, shares, lambda rows: float("nan"))


def test_runs_without_hits_or_of_two_devices_are_no_ground_for_a_verdict() -> None:
    whole = evidence()
    pairs = matched_pairs(whole)
    with pytest.raises(Blocked, match="keeps no hits of single test images"):
        accuracy_difference(replace(whole, correct_I=lambda run_id: None), pairs, "20 a class")
    with pytest.raises(Blocked, match="computed on cuda:0, simulated"):
        accuracy_difference(changed(whole, lambda r: r.label == "convolution:s", device="cuda:0"), pairs, "20 a class")


def test_a_group_of_models_that_no_condition_has_is_blocked() -> None:
    with pytest.raises(Blocked, match="No condition of the study"):
        evidence().strata([("attention:s", "not there")], ["20 a class"])


def test_a_stratum_is_there_where_the_study_asks_for_every_size_that_the_claim_needs() -> None:
    tuned = evidence(tuning={"trials": 2, "space": {"learning_rate": [0.1, 0.2]}, "only": "images_per_class=20"})
    assert {s.condition.setting for s in matched_pairs(tuned, "20 a class")} == {"default", "tuned"}
    assert {s.condition.setting for s in matched_pairs(tuned, "5 a class", "20 a class")} == {"default"}


def test_a_tuned_cell_on_the_edge_of_its_search_blocks() -> None:
    tuned = evidence(tuning={"trials": 2, "space": {"learning_rate": [0.1, 0.2]}})
    pairs = matched_pairs(tuned)
    accuracy_difference(tuned, pairs, "20 a class")
    (stratum,) = [s for s in pairs if s.models[0] == "attention:s" and s.condition.setting == "tuned"]
    edge = replace(tuned, edges=frozenset({CellOf("attention:s", "20 a class", stratum.condition)}))
    accuracy_difference(edge, pairs, "5 a class")
    with pytest.raises(Blocked, match=r"edge of what was searched \(attention:s at 20 a class\)"):
        accuracy_difference(edge, pairs, "20 a class")


def test_a_failed_run_counts_on_as_many_images_as_the_others_saw() -> None:
    whole = changed(losing(evidence(), lambda row: row.seed == 1), lambda row: row.seed == 1, test_images=9999)
    assert accuracy_difference(whole, matched_pairs(whole), "20 a class").images_KSI[0].shape == (3, 1000)


def gained(rows: Rows) -> float:
    """What the first model of the second study is ahead of that of the first."""
    return rows[2, "5 a class"].counted_accuracy - rows[0, "5 a class"].counted_accuracy


def test_between_two_studies_each_seed_is_paired_with_itself() -> None:
    first, second = (replace(evidence(dataset=name), study=name) for name in ("one", "two"))
    sides = [Side(of, matched_pairs(of), ["5 a class"]) for of in (first, second)]
    found = contrast_between(*sides, gained)
    assert found.strata == tuple(stratum.name for stratum in matched_pairs(first))
    by = {(row.label, row.seed): row.test_accuracy for row in second.rows if row.share == "5 a class"}
    own = {(row.label, row.seed): row.test_accuracy for row in first.rows if row.share == "5 a class"}
    for k, label in enumerate(("attention:m", "attention:s")):
        assert found.y_SK[:, k] == pytest.approx([by[label, seed] - own[label, seed] for seed in range(3)])
    used = {row.run_id for row in (*first.rows, *second.rows) if row.family != "control" and row.share == "5 a class"}
    assert found.run_ids == tuple(sorted(used))
    assert contrast_between(sides[0], Side(replace(second, looks=5), *sides[1][1:]), gained).alpha == 0.01


def test_between_two_studies_seeds_of_one_alone_are_named_and_lost_ones_drop_from_both() -> None:
    first, more = replace(evidence(dataset="one"), study="one"), replace(evidence(dataset="two", seeds=5), study="two")
    sides = [Side(of, matched_pairs(of), ["5 a class"]) for of in (first, more)]
    for order in (sides, sides[::-1]):
        with pytest.raises(Blocked, match="Study one asks for no runs of the seeds 3; 4, which study two has"):
            contrast_between(*order, gained)
    second = replace(evidence(dataset="two"), study="two")
    views = [losing(of, lambda row, seed=seed: row.seed == seed).without_lost()  # type: ignore[misc]
             for of, seed in ((first, 0), (second, 2))]
    left = contrast_between(*(Side(of, matched_pairs(of), ["5 a class"]) for of in views), gained)
    assert left.n == 1
    gone = losing(second, lambda row: row.seed in (1, 2)).without_lost()
    with pytest.raises(Blocked, match="Every seed has a run that diverged or failed"):
        contrast_between(*(Side(of, matched_pairs(of), ["5 a class"]) for of in (views[0], gone)), gained)
    other = changed(second, lambda _: True, device="cuda:0")
    with pytest.raises(Blocked, match="computed on cuda:0, simulated"):
        contrast_between(sides[0], Side(other, matched_pairs(other), ["5 a class"]), gained)


def test_runs_of_two_numerics_block() -> None:
    whole = simulate(Planted("", lambda _: Expected(0.8), 0.5), np.random.default_rng(0))
    mixed = replace(whole, rows=tuple(replace(row, numerics=row.numerics + (row.seed == 3)) for row in whole.rows))
    with pytest.raises(Blocked, match=r"of numerics 1, 2; a verdict rests on one"):
        accuracy_difference(mixed, matched_pairs(mixed), mixed.full)
