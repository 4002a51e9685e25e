"""Datasets: one file each. `load` gives verified uint8 arrays, mapped from a cache."""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from vitbench.regimes import UnknownWord, check_words
from vitbench.registry import PluginError, Registry
from vitbench.spec import Duplicates, ImageSpec

UInt8 = npt.NDArray[np.uint8]
PARTS = ("train_images", "train_labels", "test_images", "test_labels")


class DatasetError(ValueError):
    """A dataset that cannot be had as declared; the message names what was expected and what was found."""


def _not_known() -> str | None:
    """For datasets that cannot tell before they are fetched."""
    return None


@dataclass(frozen=True)
class DatasetMeta:
    """What is known about a dataset before reading it (protocol rules 4, 5 and 6)."""

    version: int
    image: ImageSpec
    class_names: tuple[str, ...]
    train_counts: tuple[int, ...]  # images of each class in the training split
    test_counts: tuple[int, ...]
    source: str
    licence: str
    citation: str
    split: str
    keeps_labels: tuple[str, ...]  # augmentations that leave a label true, words of vitbench.regimes
    sha256: str  # of the unpacked arrays, see `content_sha256`
    duplicates: Duplicates  # of the unpacked arrays, see `count_duplicates`
    at_hand: Callable[[], str | None] = _not_known  # where its files lie on this machine; a look, nothing is checked

    def __post_init__(self) -> None:
        try:
            check_words(self.keeps_labels)
        except UnknownWord as error:
            raise PluginError(f"keeps_labels: {error}") from None

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


@dataclass(frozen=True)
class Arrays:
    """A dataset in memory or mapped: images N x channels x size x size as uint8, labels N as uint8."""

    train_images: UInt8
    train_labels: UInt8
    test_images: UInt8
    test_labels: UInt8

    def without_test(self) -> "Arrays":
        """The training split alone: what code that selects anything gets (protocol rule 12)."""
        return Arrays(self.train_images, self.train_labels, self.train_images[:0], self.train_labels[:0])


DATASETS: Registry[DatasetMeta] = Registry("dataset", "vitbench.datasets")


def content_sha256(arrays: Arrays) -> str:
    """SHA-256 over shapes and bytes of the four arrays, in the order of PARTS."""
    digest = hashlib.sha256()
    for part in PARTS:
        array: UInt8 = getattr(arrays, part)
        digest.update(f"{part}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def count_duplicates(arrays: Arrays) -> Duplicates:
    """Images that occur twice, compared byte by byte."""
    train = {image.tobytes() for image in arrays.train_images}
    return Duplicates(test_in_train=sum(image.tobytes() in train for image in arrays.test_images),
                      within_train=len(arrays.train_images) - len(train))


def cache_folder() -> Path:
    """Where unpacked datasets are kept: VITBENCH_CACHE, or vitbench under the user's cache folder."""
    chosen = os.environ.get("VITBENCH_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vitbench"


def where(name: str) -> str | None:
    """Where the dataset lies on this machine, None where it would have to be fetched. Nothing is read or checked."""
    meta = DATASETS.get(name).meta
    cached = all((_cache_of(name) / f"{part}.npy").is_file() for part in PARTS)
    return f"in the cache, {_cache_of(name)}" if cached else meta.at_hand()


def _cache_of(name: str) -> Path:
    return cache_folder() / f"{name}@{DATASETS.get(name).meta.version}"


def load(name: str) -> Arrays:
    """The dataset's arrays, checked against its declaration. Raises DatasetError on any difference.

    The checksum is computed each time (0.03 s for 55 MB), so that no changed cache is ever used; duplicates are
    counted when the cache is filled, since the checksum decides them.
    """
    entry = DATASETS.get(name)
    folder = _cache_of(name)
    arrays = _cached(folder)
    if arrays is not None and content_sha256(arrays) == entry.meta.sha256:
        return arrays
    arrays = cast(Arrays, entry.build())
    found = content_sha256(arrays)
    if found != entry.meta.sha256:
        raise DatasetError(f"dataset {name!r} is not what it should be: expected SHA-256 {entry.meta.sha256}, "
                           f"found {found}")
    duplicates = count_duplicates(arrays)
    if duplicates != entry.meta.duplicates:
        raise DatasetError(f"dataset {name!r} declares duplicates {entry.meta.duplicates}; found {duplicates}")
    _keep(folder, arrays)
    return arrays


def _cached(folder: Path) -> Arrays | None:
    try:
        arrays = [np.load(folder / f"{part}.npy", mmap_mode="r", allow_pickle=False) for part in PARTS]
    except Exception:  # a damaged header raises whatever numpy's parser does, tokenize.TokenError among it
        return None
    return Arrays(*arrays) if all(array.dtype == np.uint8 for array in arrays) else None


def _keep(folder: Path, arrays: Arrays) -> None:
    """Fill the cache; a cache that cannot be written only costs time."""
    stage = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        stage.mkdir(parents=True)
        for part in PARTS:
            np.save(stage / f"{part}.npy", getattr(arrays, part), allow_pickle=False)
        if folder.exists():  # damaged, or of a dataset that changed
            shutil.rmtree(folder)
        stage.rename(folder)
    except OSError:
        shutil.rmtree(stage, ignore_errors=True)
