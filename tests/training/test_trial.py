"""A tuning trial: judged on held-out images of the fraction, never on test; ended early where that is asked for."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from tests.training.test_run import HERE, spec
from vitbench import datasets
from vitbench.datasets import Arrays
from vitbench.spec import Budget, Recipe
from vitbench.training import trial as module
from vitbench.training.module import Point
from vitbench.training.run import run_one
from vitbench.training.trial import Folds, Halving, Pruned, held_out, try_one

LABELS = datasets.load("digits").train_labels


def one(**changes: Any) -> Any:
    return {"number": 0, "params": {}, **changes}


def test_a_trial_on_the_validation_part_is_the_run_without_its_test() -> None:
    of = spec("mlp", fraction="1")
    found = try_one(of, HERE, **one())
    final = run_one(of, HERE).record.final
    assert (found.val_accuracy, found.val_loss) == (final.val_accuracy, final.val_loss)
    assert found.state == "done"


def test_folds_part_the_drawn_images_into_stratified_fifths() -> None:
    drawn = held_out(spec(fraction="0.1"), LABELS, None)[0].drawn
    parts = held_out(spec(fraction="0.1"), LABELS, Folds(5, 2))
    assert len(parts) == 10
    for part in parts:
        assert sorted(np.concatenate([part.train, part.validation])) == drawn.tolist()
        assert np.bincount(LABELS[part.validation], minlength=10).max() <= 3
    for repeat in (parts[:5], parts[5:]):
        assert sorted(np.concatenate([part.validation for part in repeat])) == drawn.tolist()
    assert parts[0].validation.tolist() != parts[5].validation.tolist()


def test_folds_are_the_same_for_every_model_and_recipe() -> None:
    first, second = (held_out(spec(model, "xs", recipe=Recipe(learning_rate=rate)), LABELS, Folds(5, 1))
                     for model, rate in (("mlp", 0.001), ("convnet", 0.1)))
    assert all((a.train == b.train).all() for a, b in zip(first, second, strict=True))


def test_a_cross_validated_trial_is_the_mean_over_its_folds() -> None:
    of = spec("linear", None, fraction="0.1")
    found = try_one(of, HERE, **one(folds=Folds(3, 1)))
    each = [module._train(of, datasets.load("digits").without_test(), part, torch.device("cpu"), None)
            for part in held_out(of, LABELS, Folds(3, 1))]
    assert found.val_loss == pytest.approx(np.mean([loss for loss, _ in each]))  # type: ignore[misc]
    assert found.val_accuracy == pytest.approx(np.mean([accuracy for _, accuracy in each]))  # type: ignore[misc]


def test_a_trial_that_diverges_says_so() -> None:
    found = try_one(spec("mlp", recipe=Recipe(optimizer="sgd", learning_rate=1e30, gradient_clip=0.0)), HERE, **one())
    assert found.state == "diverged"
    assert found.val_accuracy is None


def points(*accuracies: float) -> list[Point]:
    return [Point(step=step, images_seen=0, learning_rate=0.1, gradient_norm=1.0, train_loss=1.0, train_accuracy=0.5,
                  val_accuracy=accuracy, val_loss=1 - accuracy)
            for step, accuracy in zip((13, 25, 50, 100), accuracies, strict=False)]


@pytest.mark.parametrize(("own", "earlier", "rungs"), [
    ((0.5, 0.6, 0.7, 0.8), (), None),
    ((0.5, 0.6, 0.7, 0.8), ((0.4,), (0.5,), (0.6,)), None),
    ((0.5, 0.6, 0.7, 0.8), ((0.6,), (0.5,), (0.6,)), 1),  # behind the only one
    ((0.5, 0.6, 0.7, 0.8), ((0.6, 0.4), (0.7, 0.5), (0.6, 0.6)), None),  # in the middle of two
    ((0.5, 0.4, 0.7, 0.8), ((0.6, 0.4), (0.7, 0.5), (0.6, 0.6)), 2),
    ((0.5, 0.6, 0.1, 0.8), ((), (), (0.6,)), 3),
])
def test_halving_ends_a_trial_behind_more_than_half_of_those_before(own: Any, earlier: Any, rungs: int | None) -> None:
    halving = Halving("accuracy", earlier)
    ended = False
    try:
        for point in points(*own):
            halving.look(point, 100)
    except Pruned:
        ended = True
    assert ended is (rungs is not None)
    assert len(halving.reached) == (rungs or 3)


def test_a_pruned_trial_has_no_value_and_its_rungs() -> None:
    of = spec("mlp", fraction="1", budget=Budget(unit="steps", amount=40))
    found = try_one(of, HERE, **one(halving=Halving("accuracy", ((1.1,), (1.1,), (1.1,)))))
    assert (found.state, found.val_accuracy, len(found.rungs)) == ("pruned", None, 1)
    assert "behind 1 of 1" in str(found.reason)
    assert len(json.loads(found.model_dump_json())["rungs"]) == 1


def test_an_untroubled_trial_with_halving_gives_what_it_gives_without() -> None:
    of = spec("mlp", fraction="1", budget=Budget(unit="steps", amount=40))
    plain, halved = try_one(of, HERE, **one()), try_one(of, HERE, **one(halving=Halving("loss", ())))
    assert (plain.val_accuracy, plain.val_loss) == (halved.val_accuracy, halved.val_loss)
    assert len(halved.rungs) == 3


def test_the_arrays_of_a_trial_hold_no_test_image() -> None:
    whole: Arrays = datasets.load("digits")
    assert len(whole.without_test().test_images) == len(whole.without_test().test_labels) == 0
    assert (whole.without_test().train_images == whole.train_images).all()
