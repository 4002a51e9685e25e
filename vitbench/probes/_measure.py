"""Doing a probe: from its name, options and runs to a Measurement that is kept, and its figure beside it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from vitbench import measurement
from vitbench.environment import code_version
from vitbench.grid import Run
from vitbench.measurement import PROBES_FOLDER, Measurement, Value
from vitbench.options import BadOption, validated
from vitbench.probes import PROBES, Look, Measured, ProbeError
from vitbench.probes._figure import drawing, spec_of
from vitbench.record import DamagedRecord
from vitbench.registry import Entry
from vitbench.report.render import rounded
from vitbench.spec import named_version, sha256_json
from vitbench.store import StoreError, write_atomically
from vitbench.study.folder import StudyFolder


@dataclass(frozen=True)
class Question:
    """A probe with its options, on chosen runs of a study or on none. `results` is the folder of all studies."""

    name: str
    given: Mapping[str, Any]  # options as they were given
    results: Path
    folder: StudyFolder | None = None
    runs: tuple[Run, ...] = ()

    def __post_init__(self) -> None:
        looks_at = self._entry.meta.looks_at
        if self.folder is None and "mechanism" not in looks_at:
            what = "trained runs" if "runs" in looks_at else "records"
            raise ProbeError(f"probe {self.name!r} looks at {what}: name a study that was run, `vitbench probe "
                             f"{self.name} STUDY`")
        if self.folder is not None and looks_at == ("mechanism",):
            raise ProbeError(f"probe {self.name!r} looks at a mechanism alone and takes no study: `vitbench probe "
                             f"{self.name}`")

    @property
    def _entry(self) -> Entry[Any]:
        return PROBES.get(self.name)

    @property
    def options(self) -> Any:
        """In full, of the probe's own class. Raises BadOption."""
        try:
            return validated(self.name, self._entry.meta.options, {}, self.given)[0]
        except BadOption as error:
            raise BadOption(f"option {error}") from None

    @property
    def path(self) -> Path:
        """Where its answer is kept."""
        key = measurement.key_of(self._entry.meta.version, self.options.model_dump(mode="json"),
                                 (run.spec.run_id for run in self.runs), self._entry.plugin_sha256)
        home = self.results if self.folder is None else self.folder.store.folder
        return home / PROBES_FOLDER / self.name / f"{key}.json"

    def look(self, tell: Callable[[str], object] = lambda _line: None) -> Look:
        """What the probe gets."""
        seed = int(sha256_json(named_version(self.name, self._entry.meta.version))[:16], 16)
        return Look(self.options, seed, self.folder, self.runs, tell)

    def _built(self, look: Look) -> Any:
        try:
            return self._entry.build(look)
        except Exception as error:
            told = isinstance(error, ValueError) and type(error).__module__.startswith("vitbench.")
            if told or self._entry.plugin_sha256 is None:  # a fault of ours is shown whole
                raise
            raise ProbeError(f"probe {self.name!r} fails: {type(error).__name__}: {error}") from error

    def answered(self) -> Measurement | None:
        """What was measured before on the same records; None where nothing whole was."""
        try:
            found = measurement.read(self.path)
        except (FileNotFoundError, DamagedRecord):
            return None
        look = self.look()
        records = {run.spec.run_id: look.record(run) for run in self.runs}
        return found if found.rests_on(records) else None

    def measured(self, tell: Callable[[str], object]) -> Measurement:
        """Do it and keep the answer with its figure. Raises ProbeError, NotTheRun, StoreError."""
        look, meta = self.look(tell), self._entry.meta
        _same_arithmetic(meta.looks_at)
        found = self._built(look)
        if not isinstance(found, Measured):
            raise ProbeError(f"probe {self.name!r} should give a Measured; found a {type(found).__name__}")
        rows = checked_rows(self.name, found)
        content = Measurement(
            probe=self.name, version=meta.version, statement=meta.statement, source=meta.source,
            options=self.options.model_dump(mode="json"), study=self.folder.name if self.folder else None,
            run_ids=tuple(sorted(run.spec.run_id for run in self.runs)), weights=dict(sorted(look.weights.items())),
            columns=tuple(found.columns), rows=rows, summary=found.summary, code_version=code_version(),
            records_sha256=measurement.records_hash(map(look.record, self.runs)),
            plugin_sha256=self._entry.plugin_sha256, figure={})
        content = content.model_copy(update={"figure": spec_of(found.figure, content)})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path.with_suffix(".svg"), drawing(content, "svg"))
            measurement.write(self.path, content)  # last: what is read again has its figure
        except OSError as error:
            raise StoreError(f"cannot write to {self.path.parent}: {error.strerror}") from None
        return measurement.read(self.path)


def _same_arithmetic(looks_at: tuple[str, ...]) -> None:
    """One thread, as runs have it: sums in the same order each time."""
    if set(looks_at) != {"study"}:
        import torch

        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)


def checked_rows(name: str, found: Measured) -> tuple[dict[str, Value], ...]:
    """Rows in the order of the columns, numbers rounded. Raises ProbeError where a row has others, or no numbers."""
    keys = [column.name for column in found.columns]
    twice = [key for i, key in enumerate(keys) if key in keys[:i]]
    if twice:
        raise ProbeError(f"probe {name!r} should name each column once; {twice[0]!r} stands twice")
    for row in found.rows:
        if sorted(row) != sorted(keys):
            raise ProbeError(f"probe {name!r} should give rows with {', '.join(keys)}; found one with {', '.join(row)}")
        for key, value in row.items():
            if isinstance(value, float) and not isfinite(value):
                raise ProbeError(f"probe {name!r} should give finite numbers, or None where there is none; found {key} "
                                 f"{value} in {json.dumps({k: str(v) for k, v in row.items()})}")
    if not found.rows:
        raise ProbeError(f"probe {name!r} gave no row")
    return tuple({key: rounded(row[key]) for key in keys} for row in found.rows)
