"""Simulated studies hold what their law says, and draw nothing from anywhere but their generator."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from vitbench.row import Row
from vitbench.verdicts import Cell, Evidence, Expected, Planted
from vitbench.verdicts.simulated import TEST_IMAGES, simulate


def law(cell: Cell) -> Expected:
    return Expected({"attention": 0.7, "convolution": 0.9}[cell.family], clean_train_accuracy=0.95, time_harm=0.03)


PLANTED = Planted("20 points behind", law, 0.9, {
    "models": ["attention:s", "convolution:s"], "images_per_class": [4, 20], "seeds": 40})


def study(number: int = 0, *, planted: Planted = PLANTED, null: bool = False, seeds: int | None = None) -> Evidence:
    return simulate(planted, np.random.default_rng(number), null=null, seeds=seeds)


def accuracies(of: Evidence) -> dict[str, np.ndarray]:
    found: dict[str, list[float]] = defaultdict(list)
    for row in of.rows:
        if row.share == "20 a class":
            found[row.family].append(row.test_accuracy)
    return {family: np.array(values) for family, values in found.items()}


def test_runs_have_the_accuracy_of_the_law_and_vary() -> None:
    means = [{k: v.mean() for k, v in accuracies(study(number)).items()} for number in range(20)]
    for family, expected in (("attention", 0.7), ("convolution", 0.9)):
        assert np.mean([m[family] for m in means]) == pytest.approx(expected, abs=0.01)
    nine = [accuracies(study(number)) for number in range(9)]
    deviations = [(found["attention"] - found["convolution"]).std(ddof=1) for found in nine]
    assert 0.01 < np.mean(deviations) < 0.03


def test_accuracy_is_the_share_of_hits_and_the_rest_follows_the_law() -> None:
    found = study()
    for row in found.rows:
        hits = found.correct_I(row.run_id)
        assert hits is not None
        assert len(hits) == row.test_images == TEST_IMAGES
        assert hits.mean() == row.test_accuracy
        assert row.gap == row.clean_train_accuracy - row.test_accuracy
    assert np.mean([row.clean_train_accuracy for row in found.rows]) == pytest.approx(0.95, abs=0.01)
    assert np.mean([row.time_harm for row in found.rows if row.val_images]) == pytest.approx(0.03, abs=0.003)


def test_without_validation_there_is_no_time_harm() -> None:
    by_share: dict[str, list[Row]] = defaultdict(list)
    for row in study().rows:
        by_share[row.share].append(row)
    assert {(row.time_harm, row.fit_state, row.val_images) for row in by_share["4 a class"]} == {(None, "unknown", 0)}
    assert all(row.time_harm is not None and row.val_images == 40 for row in by_share["20 a class"])


def test_under_the_null_all_models_are_alike() -> None:
    means = [{k: v.mean() for k, v in accuracies(study(number, null=True)).items()} for number in range(40)]
    for family in ("attention", "convolution"):  # as the first model
        assert np.mean([m[family] for m in means]) == pytest.approx(0.7, abs=0.01)
    # Their tastes in images are the same, too: they differ less than two models of the same accuracy do.
    assert np.std([m["attention"] - m["convolution"] for m in means]) < 0.007


def test_a_declared_null_takes_the_place_of_models_that_are_alike() -> None:
    planted = replace(PLANTED, null=lambda cell: Expected(0.8 if cell.family == "attention" else 0.6))
    found = accuracies(study(planted=planted, null=True))
    assert found["attention"].mean() - found["convolution"].mean() == pytest.approx(0.2, abs=0.05)


def test_a_generator_gives_one_study() -> None:
    assert study(3).rows == study(3).rows != study(4).rows
    assert study(3).sha256 == study(3).sha256 != study(4).sha256


def test_the_law_knows_the_whole_cell() -> None:
    seen: set[Cell] = set()

    def spy(cell: Cell) -> Expected:
        assert cell.options in ({}, {"num_heads": 1})
        seen.add((cell.family, cell.label, cell.size, cell.images, cell.regime, cell.budget, cell.setting))  # type: ignore[arg-type]
        return Expected(0.5)

    models = ["control", {"name": "attention", "size": "xs", "num_heads": 1, "label": "one head"}]
    simulate(Planted("", spy, 0.5, {"models": models, "images_per_class": [5], "seeds": 1, "budgets": [{"epochs": 3}]}),
             np.random.default_rng(0))
    assert seen == {("control", "control", None, 5, "none", "epochs:3", "default"),
                    ("attention", "one head", "xs", 5, "none", "epochs:3", "default")}


def test_fewer_seeds_can_be_asked_for() -> None:
    assert {row.seed for row in study(seeds=2).rows} == {0, 1}
