"""ResultStore: the folder of one study's runs. A run is there whole or not at all."""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitbench.record import DamagedRecord, Failure, ForeignRecord, RunRecord

RECORD, FAILURE, LOGITS, WEIGHTS = "record.json", "failure.json", "logits.npy", "weights.safetensors"
RUN_ID = re.compile(r"[0-9a-f]{16}")
MAX_RECORD_BYTES = 16 * 1024 * 1024
MAX_PICTURE_BYTES = 4 * 1024 * 1024


class StoreError(ValueError):
    """The results folder cannot be used; the message says why and what to do."""


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """Write to a temporary name, sync, rename: a reader sees the old file or the new one, whole. Text is UTF-8."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        error.filename, error.filename2 = str(path), None  # the temporary name says nothing to a user
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ResultStore:
    """Records, failures, logits and weights of one study under `folder`.

    Layout: runs/<run id>/{record.json, logits.npy, weights.safetensors} or runs/<run id>/failure.json; a temporary
    name begins with a dot. What is replaced or damaged is moved to replaced/ or damaged/, never deleted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"

    def prepare(self) -> None:
        """Make the folder. Raises StoreError if it is unwritable."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            probe = self.folder / f".writable.{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise StoreError(f"cannot write results to {self.folder}: {error.strerror}. "
                             "Choose another folder with --results DIR") from None

    def clean(self) -> None:
        """Drop what killed workers left half-written. Only for the driver that holds the lock."""
        for half in self.runs.glob(".*"):
            shutil.rmtree(half, ignore_errors=True)

    def write_subset(self, sha256: str, content: Mapping[str, object]) -> None:
        """Keep the index list that records name by its hash, once."""
        path = self.folder / "subsets" / f"{sha256}.json"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, json.dumps(content) + "\n")

    def write_picture(self, regime: str, png: bytes) -> None:
        """Keep what a regime does to the dataset's images."""
        (self.folder / "augmented").mkdir(exist_ok=True)
        write_atomically(self.folder / "augmented" / f"{regime}.png", png)

    def picture(self, regime: str) -> bytes | None:
        """The PNG of a regime; None where there is none that is whole."""
        try:
            with (self.folder / "augmented" / f"{regime}.png").open("rb") as file:
                png = file.read(MAX_PICTURE_BYTES + 1)
        except OSError:
            return None
        whole = len(png) <= MAX_PICTURE_BYTES and png.startswith(b"\x89PNG") and png.endswith(b"IEND\xaeB`\x82")
        return png if whole else None

    def write(self, record: RunRecord, logits_IC: npt.NDArray[np.float16] | None, weights: bytes | None = None) -> None:
        """Store a finished run. Where one is already there, that one stays (a run is counted once)."""
        with self._staged(record.run_id) as stage:
            if logits_IC is not None:
                whole = io.BytesIO()  # NumPy's own writing hides why a disk refuses
                np.save(whole, logits_IC, allow_pickle=False)
                write_atomically(stage / LOGITS, whole.getbuffer())
            if weights is not None:
                write_atomically(stage / WEIGHTS, weights)
            write_atomically(stage / RECORD, record.to_json())

    def write_failure(self, failure: Failure) -> None:
        """Store why a run has no numbers."""
        with self._staged(failure.run_id) as stage:
            write_atomically(stage / FAILURE, failure.to_json())

    @contextlib.contextmanager
    def _staged(self, run_id: str) -> Iterator[Path]:
        stage = self.runs / f".{run_id}.{os.getpid()}"
        shutil.rmtree(stage, ignore_errors=True)  # of a killed worker whose process number came round again
        try:
            stage.mkdir(parents=True)
            yield stage
            _sync_folder(stage)
            try:
                stage.rename(self.runs / run_id)
            except OSError:
                if not (self.runs / run_id).exists():
                    raise
            _sync_folder(self.runs)
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    def ids(self) -> set[str]:
        """Ids of all runs that ended, well or not; opens no file."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.runs) as entries:
            return {entry.name for entry in entries if RUN_ID.fullmatch(entry.name)}
        return set()

    def failed(self, run_ids: Iterable[str]) -> set[str]:
        """Those of `run_ids` that failed; opens no file."""
        return {i for i in run_ids if (self.runs / i / FAILURE).exists()}

    def crashed(self) -> set[str]:
        """Ids of the runs whose worker died: no results, so they are done again (protocol rule 13)."""
        found = set()
        for run_id in self.failed(self.ids()):
            with contextlib.suppress(DamagedRecord, ForeignRecord, KeyError):
                failure = self.read(run_id)
                if isinstance(failure, Failure) and failure.crash:
                    found.add(run_id)
        return found

    def read(self, run_id: str) -> RunRecord | Failure:
        """What run `run_id` left. Raises DamagedRecord, ForeignRecord, or KeyError where there is nothing."""
        folder = self.runs / run_id
        if not folder.is_dir():
            raise KeyError(run_id)
        name = FAILURE if (folder / FAILURE).exists() else RECORD
        try:
            if (folder / name).stat().st_size > MAX_RECORD_BYTES:
                raise DamagedRecord(f"{name} is larger than {MAX_RECORD_BYTES:,} bytes")
            text = (folder / name).read_bytes()
        except OSError as error:
            raise DamagedRecord(f"{name}: {error.strerror}") from None
        found = RunRecord.from_json(text) if name == RECORD else Failure.from_json(text)
        if found.run_id != run_id:
            raise DamagedRecord(f"{name} belongs to run {found.run_id}")
        return found

    def logits_IC(self, record: RunRecord) -> npt.NDArray[np.float16]:
        """Test logits (images I, classes C) of a run, as its record names them by hash.

        Raises FileNotFoundError where they were not kept, DamagedRecord where they are others.
        """
        try:
            logits: npt.NDArray[np.float16] = np.load(self.runs / record.run_id / LOGITS, allow_pickle=False)
        except FileNotFoundError:
            raise
        except Exception as error:  # a damaged header raises whatever numpy's parser does, MemoryError among it
            raise DamagedRecord(f"{LOGITS} cannot be read: {type(error).__name__}: {error}") from None
        wanted = (record.data.test_images, record.data.num_classes)
        # The hash is of the bytes: it says nothing about how a header lays them out.
        if (logits.shape != wanted or logits.dtype != np.float16
                or hashlib.sha256(logits.tobytes()).hexdigest() != record.predictions_sha256):
            raise DamagedRecord(f"{LOGITS} does not hold the logits that the record names")
        return logits

    def weights(self, record: RunRecord) -> bytes:
        """The model's final weights (safetensors), as the record names them by hash.

        Raises FileNotFoundError where they were not kept, DamagedRecord where they are others.
        """
        try:
            weights = (self.runs / record.run_id / WEIGHTS).read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DamagedRecord(f"{WEIGHTS}: {error.strerror}") from None
        if hashlib.sha256(weights).hexdigest() != record.weights_sha256:
            raise DamagedRecord(f"{WEIGHTS} does not hold the weights that the record names")
        return weights

    def without_weights(self, run_ids: Iterable[str]) -> set[str]:
        """Those of `run_ids` that kept test logits, but no weights; opens no file."""
        return {i for i in run_ids if (self.runs / i / LOGITS).exists() and not (self.runs / i / WEIGHTS).exists()}

    def set_aside(self, run_id: str, shelf: str) -> Path:
        """Move a run's folder to damaged/ or replaced/, so that the run can be done again."""
        target = self.folder / shelf / f"{run_id}.{time.time_ns()}"
        target.parent.mkdir(exist_ok=True)
        (self.runs / run_id).rename(target)
        return target

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold this study for one driver. Raises StoreError naming the other one. Dies with the process."""
        descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"{self.folder} is in use by {_holder(descriptor)}; "
                                 "wait for it to end, or stop it") from None
            os.ftruncate(descriptor, 0)
            me = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%F %T")}
            os.pwrite(descriptor, json.dumps(me).encode(), 0)
            yield
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)


def _holder(descriptor: int) -> str:
    try:
        other = json.loads(os.pread(descriptor, 4096, 0))
        return f"another driver (pid {other['pid']} on {other['host']}, since {other['since']})"
    except (ValueError, KeyError, TypeError):
        return "another driver"
