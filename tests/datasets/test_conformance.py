"""Every dataset of the registry keeps what its metadata promise."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.requirements import require_dataset
from vitbench.datasets import DATASETS, PARTS, Arrays, DatasetMeta, build, content_sha256, count_duplicates, load
from vitbench.regimes import WORDS
from vitbench.registry import PluginError

DEBIAN = {"fashion_mnist": "fashion-mnist"}  # datasets whose files a package must have put there


@cache
def _loaded(name: str) -> Arrays:
    return load(name)


@pytest.fixture(params=DATASETS.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def meta(name: str) -> DatasetMeta:
    return DATASETS.get(name).meta


@pytest.fixture
def arrays(name: str) -> Arrays:
    if name in DEBIAN:
        require_dataset(DEBIAN[name])
    return _loaded(name)


def test_classes_have_the_declared_counts(arrays: Arrays, meta: DatasetMeta) -> None:
    assert tuple(np.bincount(arrays.train_labels)) == meta.train_counts
    assert tuple(np.bincount(arrays.test_labels)) == meta.test_counts
    assert len(meta.train_counts) == len(meta.test_counts) == meta.num_classes == len(set(meta.class_names))


def test_images_are_bytes_of_the_declared_shape_and_use_their_range(arrays: Arrays, meta: DatasetMeta) -> None:
    image = meta.image
    for images, labels in ((arrays.train_images, arrays.train_labels), (arrays.test_images, arrays.test_labels)):
        assert images.dtype == labels.dtype == np.uint8
        assert images.shape == (len(labels), image.channels, image.size, image.size)
        assert (images.min(), images.max()) == (0, 255)


def test_the_content_has_the_declared_checksum(arrays: Arrays, meta: DatasetMeta) -> None:
    assert content_sha256(arrays) == meta.sha256


def test_duplicates_are_as_declared(arrays: Arrays, meta: DatasetMeta) -> None:
    assert count_duplicates(arrays) == meta.duplicates


def test_building_twice_gives_the_same(arrays: Arrays, name: str) -> None:
    again = build(name)
    assert all(np.array_equal(getattr(again, part), getattr(arrays, part)) for part in PARTS)


def test_source_licence_citation_and_split_are_named(meta: DatasetMeta) -> None:
    assert all(len(text) > 2 for text in (meta.source, meta.licence, meta.split))
    assert re.search(r"(19|20)\d\d", meta.citation)
    assert re.search(r"doi:|arXiv:", meta.citation)
    assert not meta.split.endswith(".")  # it stands inside a sentence


def test_augmentations_that_keep_labels_are_named_once_by_known_words(meta: DatasetMeta) -> None:
    assert set(meta.keeps_labels) <= WORDS.keys()
    assert len(set(meta.keeps_labels)) == len(meta.keeps_labels)


def test_an_unknown_augmentation_is_refused_when_a_dataset_registers() -> None:
    with pytest.raises(PluginError, match=r"keeps_labels: should hold words of shift, flip, .*; found 'flipp'. "
                                          "Did you mean 'flip'"):
        replace(DATASETS.get("digits").meta, keeps_labels=("shift", "flipp"))
