"""IDX, the format of MNIST and its successors: one array a file, packed by gzip or not, read within bounds."""

import gzip
import hashlib
import stat
import struct
import zlib
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from vitbench.datasets import DatasetError, UInt8

UNSIGNED_BYTES = 0x08  # third byte of the magic number; the fourth is the number of dimensions


@dataclass(frozen=True)
class IdxFile:
    """A published file: its name without `.gz`, the shape of its array, the SHA-256 of its unpacked bytes."""

    name: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def header(self) -> bytes:
        """Magic number and dimensions, 4 bytes each, big-endian."""
        return struct.pack(f">{1 + len(self.shape)}I", UNSIGNED_BYTES << 8 | len(self.shape), *self.shape)

    @property
    def size(self) -> int:
        """Unpacked bytes."""
        return len(self.header) + prod(self.shape)


def read(path: Path, expected: IdxFile) -> UInt8:
    """The array in `path`, read-only. Raises DatasetError with what was expected and what was found."""
    content = _unpacked(path, expected.size + 1)  # one byte more tells a longer file, and a bomb unpacks no further
    difference = _difference(content, expected)
    if difference:
        raise DatasetError(f"{path} {difference}")
    return np.frombuffer(content, np.uint8, offset=len(expected.header)).reshape(expected.shape)


def _unpacked(path: Path, limit: int) -> bytes:
    """At most `limit` bytes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            raise DatasetError(f"{path} is not a file")
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(limit)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{path} is damaged or cut short: {error}") from None
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from None


def _difference(content: bytes, expected: IdxFile) -> str | None:
    header, size = expected.header, expected.size
    if not content:
        return "is empty"
    if content[:4] != header[:4]:
        return (f"is no IDX file of bytes in {len(expected.shape)} dimensions: expected magic number "
                f"0x{header[:4].hex()}, found 0x{content[:4].hex()}")
    if len(content) >= len(header) and content[:len(header)] != header:
        found = struct.unpack(f">{len(expected.shape)}I", content[4:len(header)])
        return f"has other dimensions: expected {_times(expected.shape)}, found {_times(found)}"
    if len(content) != size:
        found_size = f"{len(content):,}" if len(content) < size else "more"
        return f"has another length: expected {size:,} bytes unpacked, found {found_size}"
    sha256 = hashlib.sha256(content).hexdigest()
    return None if sha256 == expected.sha256 else (f"is not the published file: expected SHA-256 {expected.sha256} of "
                                                   f"its unpacked content, found {sha256}")


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{n:,}" for n in shape)
