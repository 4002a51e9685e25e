import hashlib

import numpy as np
import pytest

from vitbench.datasets import Arrays, content_sha256, load
from vitbench.datasets.digits import META


@pytest.fixture(scope="module")
def digits() -> Arrays:
    return load("digits")


def hashes(images: np.ndarray) -> list[str]:
    return [hashlib.sha256(np.ascontiguousarray(image).data).hexdigest() for image in images]


def test_digits_have_the_declared_counts(digits: Arrays) -> None:
    assert tuple(np.bincount(digits.train_labels)) == META.train_counts
    assert tuple(np.bincount(digits.test_labels)) == META.test_counts
    assert (sum(META.train_counts), sum(META.test_counts)) == (1437, 360)
    assert META.num_classes == 10


def test_digits_are_bytes_of_the_declared_shape(digits: Arrays) -> None:
    image = META.image
    for images, labels in ((digits.train_images, digits.train_labels), (digits.test_images, digits.test_labels)):
        assert images.dtype == labels.dtype == np.uint8
        assert images.shape == (len(labels), image.channels, image.size, image.size)
        assert (images.min(), images.max()) == (0, 255)


def test_digits_have_the_declared_checksum(digits: Arrays) -> None:
    assert content_sha256(digits) == META.sha256


def test_digits_keep_all_seventeen_grey_levels(digits: Arrays) -> None:
    assert len(np.unique(digits.train_images)) == 17


def test_train_and_test_are_disjoint_by_content(digits: Arrays) -> None:
    assert not set(hashes(digits.train_images)) & set(hashes(digits.test_images))


def test_the_disjointness_test_can_fail(digits: Arrays) -> None:
    leaked = np.concatenate([digits.train_images, digits.test_images[:1]])
    assert set(hashes(leaked)) & set(hashes(digits.test_images))


def test_the_split_is_eighty_to_twenty_in_every_class() -> None:
    for train, test in zip(META.train_counts, META.test_counts, strict=True):
        assert abs(test - 0.2 * (train + test)) < 1


def test_digits_say_where_they_are_from_and_what_was_done() -> None:
    assert "UCI" in META.source
    assert META.licence == "CC BY 4.0"
    assert "doi:" in META.citation
    assert "no official split" in META.split
    assert "writers are in both parts" in META.split


def test_a_flip_is_not_declared_to_keep_a_digits_label() -> None:
    assert not any("flip" in name for name in META.keeps_labels)
