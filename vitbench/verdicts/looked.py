"""Looked: what a probe measured, run by run."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from vitbench.measurement import Measurement, Value
from vitbench.row import Row
from vitbench.verdicts.evidence import Evidence
from vitbench.verdicts.verdict import Unmeasured

Measured = tuple[Mapping[str, Value], ...]  # the rows of one run


def by_run(evidence: Evidence, probe: str, *,
           which: Callable[[Measurement], bool] = lambda _: True) -> Callable[[Row], Measured]:
    """What `probe` measured on a run, of several measurements in the one that looked at most runs.

    Raises Unmeasured where there is no measurement that `which` takes; so does what it gives, for a run that was not
    looked at.
    """
    found: dict[str, Measured] = {}
    for measurement in sorted(filter(which, evidence.probe(probe)), key=lambda one: (-len(one.run_ids), one.key)):
        rows: defaultdict[str, list[Mapping[str, Value]]] = defaultdict(list)
        for row in measurement.rows:
            if isinstance(run_id := row.get("run"), str):
                rows[run_id].append(row)
        found = {run_id: tuple(of) for run_id, of in rows.items()} | found

    def of(run: Row) -> Measured:
        if run.run_id not in found:
            raise Unmeasured(f"The probe {probe} did not look at {run.label} at {run.share}, seed {run.seed}, as this "
                             f"claim needs it: run `vitbench probe {probe} {evidence.study}`")
        return found[run.run_id]

    return of
