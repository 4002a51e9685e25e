"""IDX files: what is read, and what is refused with which words."""

import gzip
import hashlib
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vitbench.datasets import DatasetError
from vitbench.datasets._idx import IdxFile, read

HEADER = struct.pack(">4I", 0x00000803, 3, 2, 4)
CONTENT = HEADER + bytes(range(24))
FILE = IdxFile("images", (3, 2, 4), hashlib.sha256(CONTENT).hexdigest())
PACKED = gzip.compress(CONTENT, mtime=0)
Write = Callable[[bytes, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(content: bytes, name: str) -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name
    return _write


TWO_MEMBERS = gzip.compress(CONTENT[:9], mtime=0) + gzip.compress(CONTENT[9:], mtime=0)


# Ids of their own: those made of bytes would hold the time, and differ between the workers of one test run.
@pytest.mark.parametrize(("content", "name"), [(CONTENT, "images"), (PACKED, "images.gz"), (TWO_MEMBERS, "images.gz")],
                         ids=["unpacked", "packed", "packed in two members"])
def test_an_array_is_read_packed_or_not(write: Write, content: bytes, name: str) -> None:
    array = read(write(content, name), FILE)
    assert array.dtype == np.uint8
    assert np.array_equal(array, np.arange(24).reshape(3, 2, 4))


def test_labels_have_one_dimension(write: Write) -> None:
    content = struct.pack(">2I", 0x00000801, 3) + bytes([7, 0, 9])
    labels = read(write(content, "labels"), IdxFile("labels", (3,), hashlib.sha256(content).hexdigest()))
    assert labels.tolist() == [7, 0, 9]


WRONG = {
    "empty": (b"", "images", r"images is empty"),
    "empty packed": (b"", "images.gz", r"images\.gz is empty"),
    "packed nothing": (gzip.compress(b"", mtime=0), "images.gz", r"images\.gz is empty"),
    "text": (b"<html>", "images", r"expected magic number 0x00000803, found 0x3c68746d"),
    "labels for images": (struct.pack(">2I", 0x00000801, 3) + bytes(3), "images",
                          r"no IDX file of bytes in 3 dimensions: expected magic number 0x00000803, found 0x00000801"),
    "floats": (struct.pack(">4I", 0x00000D03, 3, 2, 4), "images", r"found 0x00000d03"),
    "two bytes": (CONTENT[:2], "images", r"found 0x0000$"),
    "header cut": (CONTENT[:10], "images", r"another length: expected 40 bytes unpacked, found 10$"),
    "other dimensions": (struct.pack(">4I", 0x00000803, 10_000, 2, 4) + bytes(80_000), "images",
                         r"has other dimensions: expected 3 x 2 x 4, found 10,000 x 2 x 4"),
    "one byte short": (CONTENT[:-1], "images", r"another length: expected 40 bytes unpacked, found 39"),
    "one byte more": (CONTENT + b"\0", "images", r"another length: expected 40 bytes unpacked, found more"),
    "one bit": (CONTENT[:-1] + bytes([22]), "images",
                rf"not the published file: expected SHA-256 {FILE.sha256} of its unpacked content, found \w{{64}}$"),
    "truncated": (PACKED[:-9], "images.gz", r"damaged or cut short: Compressed file ended before"),
    "without its end mark": (PACKED[:-1], "images.gz", r"damaged or cut short: Compressed file ended before"),
    "damaged": (PACKED[:20] + bytes([PACKED[20] ^ 255]) + PACKED[21:], "images.gz", r"damaged or cut short"),
    "wrong end mark": (PACKED[:-8] + bytes(8), "images.gz", r"damaged or cut short: CRC check failed"),
    "not packed": (CONTENT, "images.gz", r"damaged or cut short: Not a gzipped file"),
    "packed under an unpacked name": (PACKED, "images", r"expected magic number 0x00000803, found 0x1f8b"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_with_what_was_expected_and_found(write: Write, case: str) -> None:
    content, name, words = WRONG[case]
    with pytest.raises(DatasetError, match=words) as error:
        read(write(content, name), FILE)
    assert str(error.value).startswith(f"{write(content, name)} ")


def test_a_bomb_unpacks_no_further_than_the_file_that_was_expected(write: Write) -> None:
    bomb = write(gzip.compress(HEADER + bytes(200_000_000), mtime=0), "images.gz")
    assert bomb.stat().st_size < 300_000
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError, match="expected 40 bytes unpacked, found more"):
            read(bomb, FILE)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["images", "images.gz"])
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, name: str, kind: str) -> None:
    (os.mkdir if kind == "folder" else os.mkfifo)(tmp_path / name)
    with pytest.raises(DatasetError, match=f"{name} is not a file"):
        read(tmp_path / name, FILE)


def test_a_link_to_nothing_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "images").symlink_to(tmp_path / "gone")
    with pytest.raises(DatasetError, match="images cannot be read: No such file"):
        read(tmp_path / "images", FILE)
