"""`metrics add` and what `export` shows of added metrics."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from vitbench.config import BadStudy
from vitbench.metrics import METRICS
from vitbench.registry import load_plugin
from vitbench.report.added import AddedColumn, added
from vitbench.report.frame import Frame
from vitbench.spec import named_version
from vitbench.study.folder import StudyFolder
from vitbench.study.metrics import Added, add_metric


def add(folder: StudyFolder, name: str, plugin: Path | None, *, allow_plugins: bool) -> int:
    """Compute a metric for all runs of a study, name those that cannot have it; 1 where predictions are missing or
    damaged."""
    if plugin is not None:
        load_plugin(plugin)
    if allow_plugins:
        folder.load_plugins()
    found = add_metric(folder, name)
    meta = METRICS.get(name).meta
    print(f"{named_version(name, meta.version)}: {meta.meaning} ({meta.unit}; {meta.better} is better)")
    for line in _told(folder, found):
        print(line)
    return 1 if found.without_predictions or found.damaged else 0


def _told(folder: StudyFolder, found: Added) -> Iterator[str]:
    yield f"computed for {len(found.computed)} runs, there already for {len(found.there)}"
    names = {run.spec.run_id: f"{run.label}, {run.spec.share}, seed {run.spec.seed}" for run in folder.runs}

    def lines(what: str, ids: Iterable[str]) -> Iterator[str]:
        ids = list(ids)
        if ids:
            yield f"{len(ids)} runs {what}:"
            yield from (f"  {i} ({names[i]})" + (f": {found.damaged[i]}" if i in found.damaged else "") for i in ids)

    yield from lines("keep no predictions", found.without_predictions)
    yield from lines("have a damaged record or damaged predictions", found.damaged)
    yield from lines("diverged, so they have no predictions", found.diverged)
    yield from lines("failed, so they have no predictions", found.failed)
    if found.to_do:
        yield f"{len(found.to_do)} runs have not ended; add the metric again when they have"


def columns_of(study: str, results: Path) -> tuple[AddedColumn, ...]:
    """Added metrics of a study; none before its first run."""
    try:
        folder = StudyFolder.open(study, results)
    except BadStudy:
        return ()
    return columns_in(folder, folder.frame())


def columns_in(folder: StudyFolder, frame: Frame) -> tuple[AddedColumn, ...]:
    """Added metrics of a frame; values that are not shown are told on standard error."""
    found, remarks = added(frame, folder.store.runs)
    for remark in remarks:
        print(remark, file=sys.stderr)
    return found
