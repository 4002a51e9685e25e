"""Metric values beside a run's record, runs/<run id>/metrics/<name>.json: whole, and read only with their predictions.

They are written into folders of runs that ended, while a driver may be at work: nothing here makes a run's folder, so
one that was moved away meanwhile takes its metrics along.
"""

from collections.abc import Iterator
from pathlib import Path

from vitbench.metrics.registry import Value
from vitbench.record import DamagedRecord, Failure, RunRecord, Sha256, read_sealed, sealed
from vitbench.spec import Frozen
from vitbench.store import write_atomically

METRICS_FOLDER = "metrics"
MAX_BYTES = 1024 * 1024


class MetricValue(Frozen):
    """One metric of one run, with what readers must know of it: they need no plug-in."""

    name: str
    version: int
    unit: str
    meaning: str
    per_class: bool
    value: Value
    plugin_sha256: Sha256 | None = None  # of a user's metric
    predictions_sha256: Sha256
    sha256: str = ""


def path_of(run: Path, name: str) -> Path:
    """The file of a metric in a run's folder."""
    return run / METRICS_FOLDER / f"{name}.json"


def write(run: Path, value: MetricValue) -> None:
    """Keep a value in a run's folder. Raises FileNotFoundError where that is no longer there."""
    path = path_of(run, value.name)
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, sealed(value))


def read(path: Path, ended: RunRecord | Failure) -> MetricValue:
    """What `path` holds. Raises FileNotFoundError, or DamagedRecord where it is not whole or is not of the
    predictions that the run's record names."""
    name = f"{METRICS_FOLDER}/{path.name}"
    found = read_sealed(path, name, MetricValue, "metric", MAX_BYTES)
    if found.name != path.stem:
        raise DamagedRecord(f"{name} holds the metric {found.name!r}")
    if isinstance(ended, Failure) or found.predictions_sha256 != ended.predictions_sha256:
        raise DamagedRecord(f"{name} is of other predictions than the record names")
    return found


def files(run: Path) -> Iterator[Path]:
    """The metric files in a run's folder, by name."""
    yield from sorted(path for path in (run / METRICS_FOLDER).glob("*.json") if not path.name.startswith("."))
