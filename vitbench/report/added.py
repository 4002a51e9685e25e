"""Metrics that were added to runs after they ended, as columns of the export."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from vitbench.metrics import kept
from vitbench.metrics.registry import Value
from vitbench.record import DamagedRecord
from vitbench.report.frame import Frame


@dataclass(frozen=True)
class AddedColumn:
    """A metric of one version; runs that lack it, or have no predictions, have no value."""

    name: str
    unit: str
    meaning: str
    per_class: bool  # a list of numbers: only JSON has a place for it
    values: dict[str, Value]  # by run id


def added(frame: Frame, runs: Path) -> tuple[tuple[AddedColumn, ...], list[str]]:
    """Columns by name, and a line for each value that is not shown.

    A file that is damaged, or of other predictions than the record names, is never shown. Values of several versions
    are never mixed: the latest one (of user's files the commonest) is shown.
    """
    found: list[tuple[str, kept.MetricValue]] = []
    remarks = []
    for run_id, record in sorted(frame.records.items()):
        for path in kept.files(runs / run_id):
            try:
                found.append((run_id, kept.read(path, record)))
            except (DamagedRecord, FileNotFoundError) as error:
                remarks.append(f"run {run_id}: not shown: {error}; `vitbench metrics add` computes it again")
    columns = []
    for name, alike in groupby(sorted(found, key=_name), key=_name):
        column, others = _column(name, list(alike))
        columns.append(column)
        remarks += others
    return tuple(columns), remarks


def _name(found: tuple[str, kept.MetricValue]) -> str:
    return found[1].name


def _column(name: str, found: list[tuple[str, kept.MetricValue]]) -> tuple[AddedColumn, list[str]]:
    by_source: dict[tuple[int, str], dict[str, kept.MetricValue]] = {}
    for run_id, value in found:
        by_source.setdefault((value.version, value.plugin_sha256 or ""), {})[run_id] = value
    shown = max(by_source, key=lambda source: (source[0], len(by_source[source]), source))
    values = by_source.pop(shown)
    one = next(iter(values.values()))
    column = AddedColumn(name, one.unit, f"{one.meaning} (added metric, version {one.version})", one.per_class,
                         {run_id: value.value for run_id, value in values.items()})
    return column, list(_others(name, shown[0], by_source))


def _others(name: str, shown: int, by_source: dict[tuple[int, str], dict[str, kept.MetricValue]]) -> Iterator[str]:
    for (version, _), values in sorted(by_source.items()):
        yield (f"{name}: {len(values)} runs have version {version} of another source than the version {shown} that is "
               f"shown; `vitbench metrics add {name}` computes them again")
