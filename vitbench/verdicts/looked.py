"""Looked: what a probe measured, run by run or on a mechanism alone."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from vitbench.measurement import Measurement, Value
from vitbench.row import Row
from vitbench.verdicts.evidence import Evidence
from vitbench.verdicts.verdict import Blocked, Unmeasured

Looked = tuple[Mapping[str, Value], ...]  # rows: of one run, or of a mechanism


def by_run(evidence: Evidence, probe: str, *,
           which: Callable[[Measurement], bool] = lambda _: True) -> Callable[[Row], Looked]:
    """What `probe` measured on a run, of several measurements in the one that looked at most runs.

    Only measurements that `which` takes count. What it gives raises Unmeasured for a run that was not looked at.
    """
    found: dict[str, Looked] = {}
    for measurement in sorted(filter(which, evidence.measured(probe)), key=lambda one: (-len(one.run_ids), one.key)):
        rows: defaultdict[str, list[Mapping[str, Value]]] = defaultdict(list)
        for row in measurement.rows:
            if isinstance(run_id := row.get("run"), str):
                rows[run_id].append(row)
        found = {run_id: tuple(of) for run_id, of in rows.items()} | found

    def of(run: Row) -> Looked:
        if run.run_id not in found:
            raise Unmeasured(f"It rests on what the probe {probe} measures on its runs, and {run.label} at "
                             f"{run.share}, seed {run.seed}, was not looked at as it stands on record: run `vitbench "
                             f"probe {probe} {evidence.study}`")
        return found[run.run_id]

    return of


def of_mechanism(evidence: Evidence, probe: str, *,
                 which: Callable[[Measurement], bool] = lambda _: True) -> Looked:
    """What `probe` measured on a mechanism: the rows that name no run, of every measurement that `which` takes.

    Raises Unmeasured where there is none.
    """
    rows = tuple(row for one in evidence.measured(probe) if which(one) for row in one.rows if row.get("run") is None)
    if not rows:
        raise Unmeasured(f"It rests on what the probe {probe} measures on the mechanism alone, with its own options, "
                         f"which is not there: run `vitbench probe {probe}`")
    return rows


def number(row: Mapping[str, Value], column: str) -> float:
    """What was measured in a column. Raises Blocked where the probe found no number."""
    found = row[column]
    if not isinstance(found, int | float):
        of = f"{row['label']} at {row['share']}, seed {row['seed']}" if row.get("label") else "the mechanism"
        raise Blocked(f"There is no {column} of {of}")
    return found
