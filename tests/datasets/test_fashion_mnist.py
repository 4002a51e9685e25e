"""The real files, where Debian's package put them; and where else they may lie."""

import gzip
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.requirements import require_dataset
from vitbench.datasets import DatasetError, load
from vitbench.datasets.fashion_mnist import META, PUBLISHED


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the published files; the cache is empty, no folder is given."""
    monkeypatch.setenv("VITBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("VITBENCH_DATA", raising=False)
    return require_dataset("fashion-mnist")


def test_what_it_is() -> None:
    assert (sum(META.train_counts), sum(META.test_counts)) == (60_000, 10_000)
    assert META.licence == "MIT"
    assert "1708.07747" in META.citation
    assert {"flip", "shift", "erase"} <= set(META.keeps_labels)


def test_the_first_images_are_an_ankle_boot_and_a_t_shirt(real: Path) -> None:
    arrays = load("fashion_mnist")
    assert [META.class_names[label] for label in arrays.train_labels[:2]] == ["Ankle boot", "T-shirt/top"]
    boot = arrays.train_images[0, 0]
    assert boot[:12, :10].mean() < 5  # the shaft is on the right ...
    assert boot[20:24].mean() > 100  # ... and the sole is below


@pytest.mark.parametrize("layout", [".", "fashion-mnist", "FashionMNIST/raw"])
@pytest.mark.parametrize("packed", [True, False])
def test_the_users_folder_is_read_in_each_layout_packed_or_not(real: Path, tmp_path: Path, layout: str, packed: bool,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data" / layout
    folder.mkdir(parents=True)
    for file in PUBLISHED.files:
        source = real / f"{file.name}.gz"
        if packed:
            (folder / source.name).symlink_to(source)
        else:
            (folder / file.name).write_bytes(gzip.decompress(source.read_bytes()))
    monkeypatch.setenv("VITBENCH_DATA", str(tmp_path / "data"))
    assert len(load("fashion_mnist").train_labels) == 60_000


def test_a_wrong_file_in_the_users_folder_is_refused_though_debian_has_the_right_one(
        real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in PUBLISHED.files:
        shutil.copy(real / f"{file.name}.gz", tmp_path)
    labels = PUBLISHED.files[3]
    content = bytearray(gzip.decompress((real / f"{labels.name}.gz").read_bytes()))
    content[-1] = 9 - content[-1]
    (tmp_path / f"{labels.name}.gz").write_bytes(gzip.compress(content))
    monkeypatch.setenv("VITBENCH_DATA", str(tmp_path))
    refused = f"{tmp_path / labels.name}.gz is not the published file: expected SHA-256 {labels.sha256} of "
    with pytest.raises(DatasetError, match=re.escape(refused)):
        load("fashion_mnist")
    assert not (tmp_path / "cache").exists()


def test_the_cache_gives_the_same_without_the_files(real: Path, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    first = load("fashion_mnist")
    monkeypatch.setenv("VITBENCH_DATA", str(tmp_path / "nowhere"))
    second = load("fashion_mnist")
    assert isinstance(second.train_images, np.memmap)
    assert np.array_equal(first.test_images, second.test_images)


def test_torchvision_downloads_it(real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                  served: list[str]) -> None:
    import torchvision

    os.symlink(real, tmp_path / "site")
    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "mirrors", served)
    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "resources", [
        (name, None) for name, _ in torchvision.datasets.FashionMNIST.resources])  # Debian packed the same bytes anew
    arrays = replace(PUBLISHED, debian_folder=tmp_path / "none").arrays()
    assert np.array_equal(arrays.test_labels, load("fashion_mnist").test_labels)
    assert [p.name for p in (tmp_path / "cache").iterdir()] == ["fashion_mnist@1"]
