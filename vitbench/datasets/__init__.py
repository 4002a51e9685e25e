"""Datasets: one file each. `load` gives verified uint8 arrays, mapped from a cache."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from vitbench.options import NoOptions, validated
from vitbench.regimes import UnknownWord, check_words
from vitbench.registry import PluginError, Registry
from vitbench.spec import Duplicates, Frozen, ImageSpec, named_version, sha256_json

UInt8 = npt.NDArray[np.uint8]
PARTS = ("train_images", "train_labels", "test_images", "test_labels")
SHA256 = "sha256"  # file beside them


class DatasetError(ValueError):
    """A dataset that cannot be had as declared; the message names what was expected and what was found."""


def _not_known() -> str | None:
    """For datasets that cannot tell before they are fetched."""
    return None


@dataclass(frozen=True)
class DatasetMeta:
    """What is known about a dataset before reading it (protocol rules 4, 5 and 6).

    One with options gives what is known of it with its defaults, and `variant` the same for other options.
    """

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
    sha256: str | None  # of the unpacked arrays, see `content_sha256`; None: not known beforehand
    duplicates: Duplicates  # of the unpacked arrays, see `count_duplicates`
    at_hand: Callable[[], str | None] = _not_known  # where its files lie on this machine; a look, nothing is checked
    options: type[Frozen] = NoOptions
    variant: "Callable[[Any], DatasetMeta] | None" = None

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
    sha256: str = field(default="", kw_only=True)  # of the content, from `load`

    def without_test(self) -> "Arrays":
        """The training split alone: what code that selects anything gets (protocol rule 12)."""
        return Arrays(self.train_images, self.train_labels, self.train_images[:0], self.train_labels[:0])


DATASETS: Registry[DatasetMeta] = Registry("dataset", "vitbench.datasets")
DEFAULTS: Mapping[str, Any] = {}


def resolve(name: str, options: Mapping[str, Any]) -> tuple[DatasetMeta, dict[str, Any]]:
    """What is known of the dataset with these options, and those that differ from its defaults (they name the run).

    Raises UnknownName, or BadOption for an option that it does not have or take.
    """
    meta = DATASETS.get(name).meta
    full, changed = validated(name, meta.options, {}, options)
    return (meta.variant(full) if changed and meta.variant else meta), changed


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
    train = set(digests(arrays.train_images))
    return Duplicates(test_in_train=sum(digest in train for digest in digests(arrays.test_images)),
                      within_train=len(arrays.train_images) - len(train))


def digests(images: UInt8) -> list[bytes]:
    """What tells each image apart by its content; a million images as they are would fill memory."""
    return [hashlib.blake2b(image.tobytes(), digest_size=16).digest() for image in images]


def cache_folder() -> Path:
    """Where unpacked datasets are kept: VITBENCH_CACHE, or vitbench under the user's cache folder."""
    chosen = os.environ.get("VITBENCH_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vitbench"


def where(name: str) -> str | None:
    """Where the dataset lies on this machine, None where it would have to be fetched. Nothing is read or checked."""
    folder = _cache_of(name, {})
    cached = all((folder / f"{part}.npy").is_file() for part in PARTS)
    return f"in the cache, {folder}" if cached else DATASETS.get(name).meta.at_hand()


def _cache_of(name: str, changed: Mapping[str, Any]) -> Path:
    entry = DATASETS.get(name)
    # An edited plug-in that declares no checksum must not find what its earlier form built.
    what = {**changed, "plugin": entry.plugin_sha256} if entry.plugin_sha256 else changed
    return cache_folder() / (named_version(name, entry.meta.version) + (f"-{sha256_json(what)[:16]}" if what else ""))


def load(name: str, options: Mapping[str, Any] = DEFAULTS) -> Arrays:
    """The dataset's arrays, checked against its declaration. Raises DatasetError on any difference, and what
    `resolve` raises.

    The checksum is computed each time (0.03 s for 55 MB), so that no changed cache is ever used; duplicates are
    counted when the cache is filled, since the checksum decides them. Where none is declared, the cache holds that of
    what was built, and records and studies hold it, too.
    """
    meta, changed = resolve(name, options)
    folder = _cache_of(name, changed)
    arrays, expected = _cached(folder), meta.sha256 or _kept_sha256(folder)
    if arrays is not None and content_sha256(arrays) == expected:
        return replace(arrays, sha256=expected)
    arrays = build(name, options)
    if meta.sha256 not in (None, arrays.sha256):
        raise DatasetError(f"dataset {name!r} is not what it should be: expected SHA-256 {meta.sha256}, "
                           f"found {arrays.sha256}")
    duplicates = count_duplicates(arrays)
    if duplicates != meta.duplicates:
        raise DatasetError(f"dataset {name!r} declares duplicates {meta.duplicates}; found {duplicates}")
    _keep(folder, arrays)
    return arrays


def _contradiction(meta: DatasetMeta, arrays: object) -> str | None:
    """Where what was built is not of the declared form, number of images or classes."""
    if not isinstance(arrays, Arrays):
        return f"it should give Arrays; found {type(arrays).__name__}"
    image = meta.image.channels, meta.image.size, meta.image.size
    for split, counts in (("train", meta.train_counts), ("test", meta.test_counts)):
        images, labels = getattr(arrays, f"{split}_images"), getattr(arrays, f"{split}_labels")
        for part, array, shape in ((f"{split}_images", images, (sum(counts), *image)),
                                   (f"{split}_labels", labels, (sum(counts),))):
            if not isinstance(array, np.ndarray) or array.dtype != np.uint8:
                return f"{part} should be a NumPy array of uint8; found {getattr(array, 'dtype', type(array).__name__)}"
            if array.shape != shape:
                return f"{part} should have the shape {shape}; found {array.shape}"
        found = tuple(map(int, np.bincount(labels, minlength=len(counts))))
        if found != counts:
            return f"{split}_counts are declared as {counts}; the labels have {found} images of class 0, 1, ..."
    return None


def build(name: str, options: Mapping[str, Any] = DEFAULTS) -> Arrays:
    """The dataset as its plug-in gives it: no cache is read, and no more is checked than shapes, types and counts.

    Raises DatasetError, and what `resolve` raises.
    """
    entry, (meta, _) = DATASETS.get(name), resolve(name, options)
    full, _ = validated(name, entry.meta.options, {}, options)
    arrays = cast(Arrays, entry.build(*([] if entry.meta.options is NoOptions else [full])))
    if why := _contradiction(meta, arrays):
        raise DatasetError(f"dataset {name!r} is not what it declares: {why}")
    return replace(arrays, sha256=content_sha256(arrays))


def _cached(folder: Path) -> Arrays | None:
    try:
        arrays = [np.load(folder / f"{part}.npy", mmap_mode="r", allow_pickle=False) for part in PARTS]
    except Exception:  # a damaged header raises whatever numpy's parser does, tokenize.TokenError among it
        return None
    return Arrays(*arrays) if all(array.dtype == np.uint8 for array in arrays) else None


def _kept_sha256(folder: Path) -> str:
    try:
        return (folder / SHA256).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _keep(folder: Path, arrays: Arrays) -> None:
    """Fill the cache; a cache that cannot be written only costs time."""
    stage = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        stage.mkdir(parents=True)
        for part in PARTS:
            np.save(stage / f"{part}.npy", getattr(arrays, part), allow_pickle=False)
        (stage / SHA256).write_text(arrays.sha256)
        if folder.exists():  # damaged, or of a dataset that changed
            shutil.rmtree(folder)
        stage.rename(folder)
    except OSError:
        shutil.rmtree(stage, ignore_errors=True)
