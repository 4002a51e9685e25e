import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitbench import datasets
from vitbench.datasets import (
    DATASETS,
    PARTS,
    Arrays,
    DatasetError,
    cache_folder,
    content_sha256,
    count_duplicates,
    load,
)
from vitbench.registry import UnknownName
from vitbench.spec import Duplicates


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VITBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one each time digits are built anew."""
    entry, made = DATASETS.get("digits"), []

    def build() -> Arrays:
        made.append("digits")
        arrays = entry.build()
        assert isinstance(arrays, Arrays)
        return arrays

    monkeypatch.setitem(DATASETS._entries, "digits", replace(entry, build=build))
    return made


def test_the_second_time_the_cache_is_read(cache: Path, builds: list[str]) -> None:
    first, second = load("digits"), load("digits")
    assert builds == ["digits"]
    assert content_sha256(first) == content_sha256(second)
    assert isinstance(second.train_images, np.memmap)
    assert [p.name for p in cache.iterdir()] == ["digits@1"]


def test_mapped_arrays_cannot_be_written(cache: Path) -> None:
    load("digits")
    with pytest.raises(ValueError, match="read-only"):
        load("digits").train_images[0] = 0


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("damage", ["flipped", "torn", "empty", "gone", "text"])
def test_a_damaged_cache_is_healed(cache: Path, builds: list[str], part: str, damage: str) -> None:
    load("digits")
    path = cache / "digits@1" / f"{part}.npy"
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes({"flipped": whole[:-1] + bytes([whole[-1] ^ 1]), "torn": whole[:-1], "empty": b"",
                          "text": b"no array"}[damage])
    assert content_sha256(load("digits")) == DATASETS.get("digits").meta.sha256
    assert builds == ["digits", "digits"]
    assert path.read_bytes() == whole
    load("digits")
    assert builds == ["digits", "digits"]


def test_a_flipped_bit_of_a_header_is_never_taken_for_the_data(cache: Path) -> None:
    load("digits")
    path = cache / "digits@1" / "test_labels.npy"
    whole = path.read_bytes()
    good = DATASETS.get("digits").meta.sha256
    for place in range(128):
        for bit in {place % 8, 1, 3}:  # 1 and 3 turn brackets and quotes into letters, which upsets the parser most
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            found = datasets._cached(cache / "digits@1")
            if found is not None and content_sha256(found) == good:
                assert np.array_equal(found.test_labels, np.frombuffer(whole[128:], np.uint8)), (place, bit)
                assert found.test_labels.dtype == np.uint8, (place, bit)


def test_a_cache_that_cannot_be_written_is_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    builds: list[str]) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VITBENCH_CACHE", str(tmp_path / "file" / "cache"))
    load("digits")
    load("digits")
    assert builds == ["digits", "digits"]


@pytest.mark.parametrize("fails", ["mkdir", "rename", "save"])
def test_a_disk_that_is_full_is_harmless_and_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch,
                                                           fails: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np if fails == "save" else Path, fails, full)
    assert len(load("digits").train_labels) == 1437
    assert not cache.exists() or list(cache.iterdir()) == []


def test_an_array_of_another_kind_with_the_same_bytes_is_not_taken(cache: Path, builds: list[str]) -> None:
    load("digits")
    path = cache / "digits@1" / "test_labels.npy"
    np.save(path, np.load(path).view(np.int8))
    assert load("digits").test_labels.dtype == np.uint8
    assert builds == ["digits", "digits"]


def test_data_that_differ_from_the_declared_are_refused_with_both_checksums(
        cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = DATASETS.get("digits")
    good = entry.build()
    assert isinstance(good, Arrays)
    changed = good.train_images.copy()
    changed[0, 0, 0, 0] ^= 1
    other = replace(good, train_images=changed)
    monkeypatch.setitem(DATASETS._entries, "digits", replace(entry, build=lambda: other))
    with pytest.raises(DatasetError) as caught:
        load("digits")
    assert entry.meta.sha256 in str(caught.value)
    assert content_sha256(other) in str(caught.value)
    assert not cache.exists()


@pytest.mark.parametrize(("changes", "message"), [
    ({"train_images": np.zeros((1437, 1, 8, 8))}, "train_images should be a NumPy array of uint8; found float64"),
    ({"test_images": [0]}, "test_images should be a NumPy array of uint8; found list"),
    ({"test_images": np.zeros((360, 1, 8, 7), np.uint8)}, r"shape \(360, 1, 8, 8\); found \(360, 1, 8, 7\)"),
    ({"train_labels": np.zeros(9, np.uint8)}, r"train_labels should have the shape \(1437,\); found \(9,\)"),
    ({"test_labels": np.zeros(360, np.uint8)}, r"test_counts are declared as \(36, .*labels have \(360, 0, "),
    ({"test_labels": np.full(360, 10, np.uint8)}, "labels have .*, 360\\) images of class"),
])
def test_arrays_of_another_form_than_declared_are_refused_before_anything_is_kept(
        cache: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str) -> None:
    entry = DATASETS.get("digits")
    good = entry.build()
    assert isinstance(good, Arrays)
    monkeypatch.setitem(DATASETS._entries, "digits", replace(entry, build=lambda: replace(good, **changes)))
    with pytest.raises(DatasetError, match=message):
        load("digits")
    monkeypatch.setitem(DATASETS._entries, "digits", replace(entry, build=lambda: None))
    with pytest.raises(DatasetError, match="should give Arrays; found NoneType"):
        load("digits")
    assert not cache.exists()


def test_duplicates_that_differ_from_the_declared_are_refused_before_anything_is_kept(
        cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = DATASETS.get("digits")
    meta = replace(entry.meta, duplicates=Duplicates(test_in_train=3, within_train=0))
    monkeypatch.setitem(DATASETS._entries, "digits", replace(entry, meta=meta))
    with pytest.raises(DatasetError, match=r"declares duplicates test_in_train=3 .*; found test_in_train=0 "):
        load("digits")
    assert not cache.exists()


def test_duplicates_are_counted_by_content_whatever_their_labels() -> None:
    train = np.array([0, 1, 1, 2, 1, 0], np.uint8).reshape(6, 1, 1, 1)
    test = np.array([3, 1, 1, 2, 4], np.uint8).reshape(5, 1, 1, 1)
    arrays = Arrays(train, np.arange(6, dtype=np.uint8), test, np.arange(5, dtype=np.uint8))
    assert count_duplicates(arrays) == Duplicates(test_in_train=3, within_train=3)
    assert count_duplicates(replace(arrays, test_images=test[:1])) == Duplicates(test_in_train=0, within_train=3)


def test_a_cache_of_another_version_is_left_alone(cache: Path, builds: list[str]) -> None:
    (cache / "digits@0").mkdir(parents=True)
    load("digits")
    assert sorted(p.name for p in cache.iterdir()) == ["digits@0", "digits@1"]


def test_an_unknown_dataset_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown dataset 'digit'; allowed: .*digits.*Did you mean 'digits'\?"):
        load("digit")


@pytest.mark.parametrize("part", PARTS)
def test_the_checksum_sees_every_array_its_shape_and_its_order(part: str) -> None:
    zeros = Arrays(*(np.zeros(shape, np.uint8) for shape in ((4, 1, 2, 2), (4,), (2, 1, 2, 2), (2,))))
    array = getattr(zeros, part)
    changed = array.copy()
    changed.flat[-1] = 1
    assert content_sha256(replace(zeros, **{part: changed})) != content_sha256(zeros)
    assert content_sha256(replace(zeros, **{part: array[..., None]})) != content_sha256(zeros)


def test_the_checksum_does_not_depend_on_the_layout_in_memory() -> None:
    arrays = load("digits")
    turned = replace(arrays, train_images=np.asfortranarray(arrays.train_images))
    assert content_sha256(turned) == content_sha256(arrays)


@pytest.mark.parametrize(("environment", "expected"), [
    ({"VITBENCH_CACHE": "/a/b", "XDG_CACHE_HOME": "/c", "HOME": "/d"}, "/a/b"),
    ({"XDG_CACHE_HOME": "/c", "HOME": "/d"}, "/c/vitbench"), ({"HOME": "/d"}, "/d/.cache/vitbench"),
    ({"VITBENCH_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/d"}, "/d/.cache/vitbench"),
], ids=str)
def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str],
                                          expected: str) -> None:
    for name in ("VITBENCH_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)


def test_two_processes_may_fill_the_cache_at_once(cache: Path) -> None:
    pids = []
    for _ in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fork beside threads, which this child never touches
            pid = os.fork()
        if pid == 0:
            try:
                os._exit(0 if content_sha256(load("digits")) == DATASETS.get("digits").meta.sha256 else 1)
            finally:
                os._exit(2)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 4
    assert [p.name for p in cache.iterdir()] == ["digits@1"]
