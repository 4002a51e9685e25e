import numpy as np
import pytest

from vitbench.datasets import Arrays, load
from vitbench.datasets.digits import META


@pytest.fixture(scope="module")
def digits() -> Arrays:
    return load("digits")


def test_digits_keep_all_seventeen_grey_levels(digits: Arrays) -> None:
    assert len(np.unique(digits.train_images)) == 17


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
    assert {"flip", "invert", "erase", "cutmix"}.isdisjoint(META.keeps_labels)
