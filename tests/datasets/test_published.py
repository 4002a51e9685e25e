"""Where published files are looked for, and what is said where they are not, on a dataset of five images."""

import gzip
import hashlib
import os
import socket
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torchvision

from vitbench.datasets import DatasetError, _published
from vitbench.datasets._idx import IdxFile
from vitbench.datasets._published import Published

NOBODY = 65534
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
SHAPES = ((3, 2, 2), (3,), (2, 2, 2), (2,))


def content(shape: tuple[int, ...], first: int = 0) -> bytes:
    """An IDX file that counts up."""
    size = 1
    for n in shape:
        size *= n
    return struct.pack(f">{1 + len(shape)}I", 0x800 + len(shape), *shape) + bytes(range(first, first + size))


FILES = tuple(IdxFile(name, shape, hashlib.sha256(content(shape)).hexdigest())
              for name, shape in zip(NAMES, SHAPES, strict=True))


def put(folder: Path, *, first: int = 0, packed: bool = True) -> Path:
    """The four files; with another `first` they are another dataset's."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, shape in zip(NAMES, SHAPES, strict=True):
        data = content(shape, first)
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)
    return folder


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Published]:
    """Debian's folder would be debian/five, the user's is data; neither exists, and no mirror answers."""
    assert len(FILES) == 4
    monkeypatch.setenv("VITBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("VITBENCH_DATA", raising=False)
    with socket.socket() as taken:  # bound and not listening: refuses at once
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(torchvision.datasets.FashionMNIST, "mirrors", [f"http://127.0.0.1:{taken.getsockname()[1]}/"])
        yield Published("five", FILES, "dataset-five", tmp_path / "debian" / "five", "FashionMNIST")


def refusal(of: Published) -> str:
    with pytest.raises(DatasetError) as error:
        of.arrays()
    text = str(error.value)
    assert text.startswith("dataset 'five': ")
    assert "\n" not in text
    for way in ("Debian's package dataset-five", "--data-dir", "VITBENCH_DATA", "a network"):
        assert way in text
    return text


def test_images_get_a_channel_axis(small: Published) -> None:
    put(small.debian_folder)
    arrays = small.arrays()
    assert arrays.train_images.shape == (3, 1, 2, 2)
    assert arrays.test_labels.tolist() == [0, 1]


def test_the_users_folder_comes_before_debians(small: Published, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    put(small.debian_folder, first=50)
    monkeypatch.setenv("VITBENCH_DATA", str(put(tmp_path / "data")))
    assert small.arrays().train_labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("layout", ["five", "FashionMNIST/raw"])
def test_a_folder_named_like_the_dataset_comes_before_files_of_the_same_names_above_it(
        small: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    put(tmp_path / "data", first=50)  # as MNIST's would be
    put(tmp_path / "data" / layout, packed=False)
    monkeypatch.setenv("VITBENCH_DATA", str(tmp_path / "data"))
    assert small.arrays().train_labels.tolist() == [0, 1, 2]


def test_a_packed_file_comes_before_an_unpacked_one(small: Published) -> None:
    put(small.debian_folder)
    (small.debian_folder / NAMES[0]).write_bytes(b"half")
    assert len(small.arrays().train_images) == 3


def test_an_empty_setting_is_no_folder(small: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    put(small.debian_folder)
    monkeypatch.setenv("VITBENCH_DATA", "")
    assert len(small.arrays().train_images) == 3


@pytest.mark.parametrize("made", [True, False])
def test_a_given_folder_without_the_files_is_named_and_debians_not_taken(
        small: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool) -> None:
    put(small.debian_folder)
    if made:
        (tmp_path / "data").mkdir()
    monkeypatch.setenv("VITBENCH_DATA", str(tmp_path / "data"))
    text = refusal(small)
    for place in (tmp_path / "data" / "five", tmp_path / "data" / "FashionMNIST" / "raw", tmp_path / "data"):
        assert f"{place}" in text
    assert all(f"{name}[.gz]" in text for name in NAMES)


def test_a_given_folder_that_is_a_file_is_named(small: Published, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text("")
    monkeypatch.setenv("VITBENCH_DATA", str(tmp_path / "data"))
    assert "cannot be read: Not a directory" in refusal(small)


@pytest.mark.parametrize("given", [True, False])
def test_a_folder_that_lacks_one_file_is_refused(small: Published, tmp_path: Path, given: bool,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "data" if given else small.debian_folder)
    (folder / f"{NAMES[2]}.gz").unlink()
    if given:
        put(small.debian_folder)
        monkeypatch.setenv("VITBENCH_DATA", str(folder))
    assert f"{folder} lacks {NAMES[2]}[.gz]." in refusal(small)


def test_another_datasets_files_are_refused(small: Published) -> None:
    put(small.debian_folder, first=1)
    assert f"{small.debian_folder / NAMES[0]}.gz is not the published file: expected SHA-256" in refusal(small)


@contextmanager
def as_nobody(reaching: Path) -> Iterator[None]:
    """Root may read everything, and tests often run as root."""
    before = os.geteuid()
    if before == 0:
        for folder in (reaching, *reaching.parents):  # pytest closes its own to others
            if folder == Path(tempfile.gettempdir()):
                break
            folder.chmod(0o711)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111])
def test_a_folder_without_permission_is_named(small: Published, tmp_path: Path, mode: int,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "data")
    monkeypatch.setenv("VITBENCH_DATA", str(folder))
    folder.chmod(mode)
    try:
        with as_nobody(tmp_path):
            text = refusal(small)
    finally:
        folder.chmod(0o755)
    assert f"{folder}" in text
    assert "cannot be read: Permission denied" in text


def test_a_file_without_permission_is_named(small: Published, tmp_path: Path) -> None:
    (put(small.debian_folder) / f"{NAMES[1]}.gz").chmod(0)
    with as_nobody(tmp_path):
        assert f"{small.debian_folder / NAMES[1]}.gz cannot be read: Permission denied" in refusal(small)


def test_without_files_and_network_one_sentence_tells_both(small: Published, tmp_path: Path) -> None:
    text = refusal(small)
    assert f"is in {small.debian_folder}, and no folder was given; torchvision's download failed: " in text
    assert "Connection refused" in text
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_mirror_that_says_nothing_is_given_up(small: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_published, "SILENCE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(torchvision.datasets.FashionMNIST, "mirrors",
                            [f"http://127.0.0.1:{silent.getsockname()[1]}/"])
        assert "timed out" in refusal(small)
    assert socket.getdefaulttimeout() is None


def test_a_download_is_checked_and_leaves_no_folder(small: Published, tmp_path: Path, served: list[str],
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "mirrors", served)
    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "resources", [(f"{name}.gz", None) for name in NAMES])
    put(tmp_path / "site")
    assert small.arrays().train_labels.tolist() == [0, 1, 2]
    put(tmp_path / "site", first=1)
    assert "torchvision's download: " in refusal(small)
    assert "is not the published file" in refusal(small)
    (tmp_path / "site" / f"{NAMES[3]}.gz").write_bytes(b"<html>")
    assert "torchvision's download failed: " in refusal(small)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said_before_anything_is_downloaded(
        small: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VITBENCH_CACHE", str(tmp_path / "file" / "cache"))
    assert "Not a directory" in refusal(small)
