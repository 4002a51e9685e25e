"""Measurement: what a probe found, as it is kept in probes/<name>/<key>.json and as claims read it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from vitbench.record import DamagedRecord, RunRecord, Sha256, read_sealed, sealed
from vitbench.spec import Frozen, sha256_json
from vitbench.store import write_atomically

PROBES_FOLDER = "probes"
MAX_BYTES = 64 * 1024 * 1024
Value = str | int | float | bool | None


class Column(Frozen):
    """A column of a probe's rows. `unit` may be empty."""

    name: str
    unit: str
    meaning: str


class Measurement(Frozen):
    """One probe with its options on some runs, or on none: rows, a sentence, a figure, and what they rest on."""

    probe: str
    version: int
    statement: str
    source: str
    options: dict[str, Any]  # in full
    study: str | None = None
    run_ids: tuple[str, ...] = ()  # sorted
    weights: dict[str, str] = Field(default_factory=dict)  # run id -> how its model was had
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Value], ...]  # derived numbers with 6 significant digits
    summary: str
    figure: dict[str, Any]  # Vega-Lite, with its data
    code_version: str
    records_sha256: Sha256 | None = None  # of the records of `run_ids`, see `records_hash`
    plugin_sha256: Sha256 | None = None  # of a user's probe
    sha256: str = ""

    @property
    def key(self) -> str:
        """Names its file: the same question has the same key."""
        return key_of(self.version, self.options, self.run_ids, self.plugin_sha256)

    def rests_on(self, records: Mapping[str, RunRecord]) -> bool:
        """True if its runs are among `records` as they were when they were looked at."""
        if not set(self.run_ids) <= records.keys():
            return False
        return self.records_sha256 == records_hash(records[run_id] for run_id in self.run_ids)


def key_of(version: int, options: Mapping[str, Any], run_ids: Iterable[str], plugin_sha256: str | None) -> str:
    """First 16 hex digits of the SHA-256 over what decides the numbers of one probe."""
    own = {"plugin": plugin_sha256} if plugin_sha256 else {}
    return sha256_json({"version": version, "options": dict(options), "runs": sorted(run_ids), **own})[:16]


def records_hash(records: Iterable[RunRecord]) -> str | None:
    """SHA-256 over the records' own hashes by run id; None of no record."""
    by_id = {record.run_id: record.sha256 for record in records}
    return sha256_json(by_id) if by_id else None


def write(path: Path, content: Measurement) -> None:
    """Keep a measurement: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, sealed(content))


def read(path: Path) -> Measurement:
    """What `path` holds. Raises FileNotFoundError, or DamagedRecord where it is not what was written by this name."""
    name = f"{PROBES_FOLDER}/{path.parent.name}/{path.name}"
    found = read_sealed(path, name, Measurement, "measurement", MAX_BYTES)
    if (found.probe, found.key) != (path.parent.name, path.stem):
        raise DamagedRecord(f"{name} holds another measurement, {found.probe}/{found.key}")
    return found


def files(home: Path, probe: str) -> list[Path]:
    """The files of a probe below `home`, a study's folder or the results folder, by name."""
    return sorted(path for path in (home / PROBES_FOLDER / probe).glob("*.json") if not path.name.startswith("."))
