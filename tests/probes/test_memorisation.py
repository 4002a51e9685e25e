"""Random labels: where they come from, how many are learned by heart, and when to stop."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitbench.datasets import load
from vitbench.models import ModelError
from vitbench.options import BadOption
from vitbench.probes import Look, ProbeError
from vitbench.probes._measure import Question
from vitbench.probes.memorisation import Options, random_labels, tasks
from vitbench.registry import UnknownName


def measured(home: Path, **options: Any) -> list[dict[str, Any]]:
    return list(Question("memorisation", options, home).measured(lambda _line: None).rows)


def test_random_labels_follow_from_their_seed_and_a_shorter_list_begins_a_longer_one() -> None:
    labels = random_labels(1000, 10, 3)
    assert (labels[:100] == random_labels(100, 10, 3)).all()
    assert (labels != random_labels(1000, 10, 4)).mean() > 0.8
    assert np.abs(np.bincount(labels, minlength=10) - 100).max() < 5 * np.sqrt(1000 * 0.1 * 0.9)


def test_every_model_is_to_learn_the_same_images_with_the_same_labels() -> None:
    look = Look(Options(seeds=(0, 1)), 0)
    linear, convnet = (list(tasks(look, model)) for model in ("linear", "convnet:xs"))
    for one, other in zip(linear, convnet, strict=True):
        assert (one.order_N == other.order_N).all()
        assert (one.arrays.train_labels == other.arrays.train_labels).all()
    assert (linear[0].order_N != linear[1].order_N).any()


def test_labels_have_nothing_to_do_with_the_images_and_no_test_image_is_there() -> None:
    (task,) = tasks(Look(Options(seeds=(0,)), 0), "linear")
    true = load("digits").train_labels
    assert (task.arrays.train_labels[task.order_N] == random_labels(len(true), 10, 0)).all()
    assert 0.05 < (task.arrays.train_labels == true).mean() < 0.15
    assert len(task.arrays.test_labels) == 0


def test_a_linear_map_learns_few_random_labels_and_not_many(tmp_path: Path) -> None:
    """65 numbers a class fit 16 images in any way; of 600 images with ten classes they fit few."""
    rows = measured(tmp_path, models=["linear"], images=[16, 600, 1000], steps=300, learning_rate=0.02, seeds=[0, 1])
    assert [(row["images"], row["seed"], row["by_heart"]) for row in rows] == [
        (16, 0, True), (16, 1, True), (600, 0, False), (600, 1, False)]  # 1000 is not tried
    assert {row["largest"] for row in rows} == {16}
    assert all(row["train_accuracy"] == 1 for row in rows if row["images"] == 16)
    assert all(row["train_accuracy"] < 0.6 for row in rows if row["images"] == 600)
    assert [row["passes"] for row in rows if row["seed"] == 0] == [300, 32]
    assert {row["parameters"] for row in rows} == {650}


def test_a_budget_that_is_too_small_for_any_says_0(tmp_path: Path) -> None:
    rows = measured(tmp_path, models=["linear"], images=[64, 128], steps=1, seeds=[0])
    assert [(row["images"], row["largest"]) for row in rows] == [(64, 0)]


@pytest.mark.parametrize(("options", "error", "says"), [
    ({"images": [64, 32]}, ProbeError, "images: should rise; found 64, 32"),
    ({"images": [5000]}, ProbeError, "images: digits has 1,437 training images; found 5,000"),
    ({"models": ["convnet"]}, ModelError, "size: 'convnet' comes in xs, s"),
    ({"models": ["convent:s"]}, UnknownName, "did you mean 'convnet'"),
    ({"images": [0]}, BadOption, "images.0: should be greater than or equal to 1"),
], ids=str)
def test_what_cannot_be_learned_is_refused_before_anything_trains(
        tmp_path: Path, options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=f"(?i){says}"):
        measured(tmp_path, **options)
