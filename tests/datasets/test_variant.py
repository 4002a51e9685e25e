"""What the controls of a study do to a dataset."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitbench import datasets
from vitbench.datasets import Arrays, DatasetError
from vitbench.datasets._variant import noisy_labels, shuffled, varied
from vitbench.spec import Budget, DataVariant, RunSpec
from vitbench.streams import Streams
from vitbench.subset import Subset

DIGITS = datasets.load("digits")
CHOSEN = Subset(np.arange(0, 100), np.arange(100, 125))


def streams(seed: int = 0) -> Streams:
    return Streams.of(RunSpec(dataset="digits@1", model="linear@1", fraction="1", seed=seed,
                              budget=Budget(unit="steps", amount=1)))


def seen(variant: DataVariant, seed: int = 0, arrays: Arrays = DIGITS,
         chosen: Subset = CHOSEN) -> tuple[Arrays, Subset]:
    return varied(arrays, chosen, variant, streams(seed), 10)


def test_without_a_control_nothing_changes() -> None:
    arrays, chosen = seen(DataVariant())
    assert arrays is DIGITS
    assert chosen is CHOSEN


def test_one_permutation_moves_the_pixels_of_every_image_alike() -> None:
    arrays, _ = seen(DataVariant(pixels="shuffled"))
    place = np.arange(64, dtype=np.uint8).reshape(1, 1, 8, 8)
    order = shuffled(place).ravel()
    assert sorted(order) == list(range(64))
    assert (order != np.arange(64)).sum() > 50
    for before, after in ((DIGITS.train_images, arrays.train_images), (DIGITS.test_images, arrays.test_images)):
        assert (after.reshape(-1, 64) == before.reshape(-1, 64)[:, order]).all()
    again, _ = seen(DataVariant(pixels="shuffled"), seed=5)
    assert (again.train_images == arrays.train_images).all()


def test_channels_are_shuffled_alike() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 1, 8, 8), dtype=np.uint8).repeat(3, axis=1)
    out = shuffled(images)
    assert (out[:, 0] == out[:, 1]).all()
    assert (out[:, 0] == out[:, 2]).all()


def test_label_noise_touches_the_training_part_only() -> None:
    arrays, _ = seen(DataVariant(label_noise="0.4"))
    changed = np.flatnonzero(arrays.train_labels != DIGITS.train_labels)
    assert 20 <= len(changed) <= 60  # of 100
    assert set(changed) <= set(CHOSEN.train)
    assert (arrays.test_labels == DIGITS.test_labels).all()
    assert (arrays.train_images == DIGITS.train_images).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 50), st.sampled_from([2, 3, 10]))
def test_wrong_labels_nest_and_are_other_classes(seed: int, classes: int) -> None:
    labels = np.random.default_rng(1).integers(0, classes, 4000).astype(np.uint8)
    few, many = (noisy_labels(labels, share, classes, np.random.default_rng(seed)) for share in (0.1, 0.4))
    wrong_few, wrong_many = few != labels, many != labels
    assert (wrong_few <= wrong_many).all()
    assert (few[wrong_few] == many[wrong_few]).all()
    assert abs(wrong_few.mean() - 0.1) < 0.025  # five deviations
    assert abs(wrong_many.mean() - 0.4) < 0.04
    if classes > 2:
        moves = Counter(((many[wrong_many].astype(int) - labels[wrong_many]) % classes).tolist())
        assert set(moves) == set(range(1, classes))
        assert max(moves.values()) < 1.5 * min(moves.values())


def test_masked_duplicates_leave_test_and_validation_without_training_images() -> None:
    images, labels = DIGITS.train_images[:10].copy(), DIGITS.train_labels[:10].copy()
    images[7] = images[1]  # of validation, and in training
    images[9] = images[8]  # both of validation: no leak into training
    test = np.concatenate([DIGITS.test_images[:3], images[2:3], images[7:8]])
    arrays = Arrays(images, labels, test, np.zeros(5, dtype=np.uint8))
    chosen = Subset(np.arange(6), np.arange(6, 10))
    kept, same = seen(DataVariant(), arrays=arrays, chosen=chosen)
    assert len(kept.test_labels) == 5
    assert len(same.validation) == 4
    masked, parts = seen(DataVariant(duplicates="masked"), arrays=arrays, chosen=chosen)
    assert (masked.test_images == DIGITS.test_images[:3]).all()
    assert len(masked.test_labels) == 3
    assert parts.validation.tolist() == [6, 8, 9]
    assert parts.train.tolist() == list(range(6))


def test_masking_every_test_image_is_an_error() -> None:
    arrays = Arrays(DIGITS.train_images[:5], DIGITS.train_labels[:5], DIGITS.train_images[:2], DIGITS.train_labels[:2])
    with pytest.raises(DatasetError, match="leaves none of the 2 test images"):
        seen(DataVariant(duplicates="masked"), arrays=arrays, chosen=Subset(np.arange(4), np.arange(4, 5)))


@pytest.mark.parametrize("share", [1, -0.1, "nan", "1.0", True])
def test_a_share_of_wrong_labels_is_below_one(share: object) -> None:
    with pytest.raises(ValueError, match="label_noise"):
        DataVariant(label_noise=share)  # type: ignore[arg-type]
