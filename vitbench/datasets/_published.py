"""Published files on this machine: the user's folder, a Debian package, or torchvision's download."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from vitbench.datasets import Arrays, DatasetError, UInt8, cache_folder
from vitbench.datasets._idx import IdxFile, read

SILENCE_SECONDS = 15.0  # without a network a download would wait for minutes


@dataclass(frozen=True)
class Published:
    """The IDX files of a dataset in the order of `PARTS`, and the places where they may lie."""

    dataset: str
    files: tuple[IdxFile, IdxFile, IdxFile, IdxFile]
    debian_package: str
    debian_folder: Path
    torchvision_class: str

    def at_hand(self) -> str | None:
        """The first folder that holds all four files; they are not read."""
        given = os.environ.get("VITBENCH_DATA")
        for place in self._places(Path(given)) if given else [self.debian_folder]:
            if all((place / f"{file.name}.gz").is_file() or (place / file.name).is_file() for file in self.files):
                return str(place)
        return None

    def arrays(self) -> Arrays:
        """The verified arrays, images with a channel axis.

        The folder in VITBENCH_DATA is the only place where it is set: what it lacks is not taken from elsewhere.
        Raises DatasetError: what was looked for and where, what was found, and the ways to get the files.
        """
        given = os.environ.get("VITBENCH_DATA")
        try:
            return self._given(Path(given)) if given else self._found(self.debian_folder) or self._downloaded()
        except DatasetError as error:
            raise DatasetError(f"dataset {self.dataset!r}: {error}. Ways to get it: Debian's package "
                               f"{self.debian_package}; the four published files, .gz or unpacked, in a folder named "
                               "by --data-dir or VITBENCH_DATA; or, with neither set, a network, where torchvision "
                               "downloads them") from None

    def _places(self, folder: Path) -> list[Path]:
        # The folder itself last: there, files of these names may be another dataset's, such as MNIST's.
        return [folder / self.debian_folder.name, folder / self.torchvision_class / "raw", folder]

    def _given(self, folder: Path) -> Arrays:
        places = self._places(folder)
        for place in places:
            arrays = self._found(place)
            if arrays:
                return arrays
        raise DatasetError(f"none of {self._names()} is in {', '.join(map(str, places))} "
                           "(the folder of --data-dir or VITBENCH_DATA, and no other is looked at)")

    def _names(self) -> str:
        return ", ".join(f"{file.name}[.gz]" for file in self.files)

    def _found(self, folder: Path) -> Arrays | None:
        """The arrays in `folder`, or None where it holds none of the files."""
        try:
            there = set(os.listdir(folder))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DatasetError(f"{folder} cannot be read: {error.strerror}") from None
        # Packed files first: they check themselves, and an unpacked one may be left of an unpacking that was stopped.
        names = [next((n for n in (f"{file.name}.gz", file.name) if n in there), None) for file in self.files]
        lacking = [file.name for file, name in zip(self.files, names, strict=True) if name is None]
        if len(lacking) == len(names):
            return None
        if lacking:
            raise DatasetError(f"{folder} lacks {', '.join(f'{name}[.gz]' for name in lacking)}")
        return Arrays(*(_with_channel(read(folder / str(name), file))
                        for name, file in zip(names, self.files, strict=True)))

    def _downloaded(self) -> Arrays:
        """Through a folder that goes again: the arrays are kept in the cache, and half a download nowhere."""
        nowhere = f"none of {self._names()} is in {self.debian_folder}, and no folder was given"
        before = socket.getdefaulttimeout()
        socket.setdefaulttimeout(SILENCE_SECONDS)
        try:
            cache_folder().mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=".download.", dir=cache_folder()) as folder:
                from torchvision import datasets

                getattr(datasets, self.torchvision_class)(folder, download=True)
                arrays = self._found(Path(folder, self.torchvision_class, "raw"))
        except DatasetError as error:
            raise DatasetError(f"{nowhere}; torchvision's download: {error}") from None
        except Exception as error:  # whatever a network, a disk or torchvision can raise
            reason = " ".join(str(error).split())
            raise DatasetError(f"{nowhere}; torchvision's download failed: {type(error).__name__}: {reason}") from None
        finally:
            socket.setdefaulttimeout(before)
        if arrays is None:
            raise DatasetError(f"{nowhere}; torchvision's download left none of them")
        return arrays


def _with_channel(array: UInt8) -> UInt8:
    return array[:, None] if array.ndim == 3 else array
