"""What is running now: one small file a run under live/, rewritten at curve points, gone at its end."""

import contextlib
import os
import socket
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict

EVERY_SECONDS = 2.0
LOST_AFTER_SECONDS = 60.0


class Progress(BaseModel):
    """State of one running run. Losses in nats, None before the first curve point."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")

    run_id: str
    step: int
    steps: int
    train_loss: float | None
    val_loss: float | None
    test_loss: float | None
    pid: int
    host: str
    time: float  # seconds since the epoch

    @property
    def lost(self) -> bool:
        """True where nothing was heard for a minute: its worker is gone, or stuck in one segment."""
        return time.time() - self.time > LOST_AFTER_SECONDS


class LiveFile:
    """Writes one run's progress, at most every two seconds. A full disk never stops training."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self._path = folder / f"{run_id}.json"
        self._run_id = run_id
        self._next = 0.0

    def update(self, step: int, steps: int, *, train_loss: float | None = None,
               val_loss: float | None = None, test_loss: float | None = None) -> None:
        """Rewrite the file if the last time is two seconds ago."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_SECONDS
        now = Progress(run_id=self._run_id, step=step, steps=steps, train_loss=train_loss, val_loss=val_loss,
                       test_loss=test_loss, pid=os.getpid(), host=socket.gethostname(), time=time.time())
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            temporary = self._path.with_suffix(".tmp")
            temporary.write_text(now.model_dump_json())
            temporary.replace(self._path)

    def remove(self) -> None:
        """Called when the record is written."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def running(folder: Path) -> list[Progress]:
    """All runs with a live file under `folder`, by run id; files that are not whole are passed over."""
    found = []
    for path in sorted(folder.glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            found.append(Progress.model_validate_json(path.read_bytes()))
    return found


def clear(folder: Path) -> None:
    """Remove what workers of a killed driver left."""
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):
            path.unlink()
