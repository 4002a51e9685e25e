"""What of a study's results folder nothing needs any more, and how it goes."""

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitbench import measurement
from vitbench.measurement import PROBES_FOLDER
from vitbench.metrics.kept import METRICS_FOLDER
from vitbench.metrics.kept import read as read_metric
from vitbench.record import DamagedRecord, ForeignRecord, RunRecord
from vitbench.regimes import REGIME_VERSIONS
from vitbench.spec import NUMERICS, RunSpec, canonical_json
from vitbench.store import FAILURE, LOGITS, RECORD, WEIGHTS, StoreError
from vitbench.study.folder import StudyFolder
from vitbench.study.searches import FOLDER

_NAMED = re.compile(rb'"([0-9a-f]{16}|[0-9a-f]{64})"')
_TEMPORARY = re.compile(r"\..+\.\d+")  # of store.write_atomically: .table.md.4711
_STILL_WRITING_SECONDS = 3600.0  # `report` writes without the lock


@dataclass(frozen=True)
class Leftover:
    """A file or folder that can go."""

    kind: str
    path: Path

    @cached_property
    def bytes(self) -> int:
        """Of all its files."""
        if self.path.is_symlink() or not self.path.is_dir():
            return self.path.lstat().st_size
        return sum(p.lstat().st_size for p in self.path.rglob("*") if not p.is_dir())

    def remove(self) -> None:
        """Ended at any moment, it leaves a folder that can be read: a run is hidden before it is taken apart."""
        if self.path.is_symlink() or not self.path.is_dir():  # a pipe too
            self.path.unlink(missing_ok=True)
            return
        hidden = self.path.with_name(f".{self.path.name.lstrip('.')}.{os.getpid()}")
        self.path.rename(hidden)
        shutil.rmtree(hidden)


def leftovers(folder: StudyFolder, *, logits: bool, weights: bool = False) -> tuple[list[Leftover], list[str]]:
    """What can go, runs first, and a line for each run that is kept though no table shows it.

    Never a record of the present study, nor one of another version. Only for the holder of the lock. Raises StoreError
    where runs lie behind a link.
    """
    home, runs = folder.store.folder, folder.store.runs
    elsewhere = [path for path in (home, runs, *_entries(runs)) if path.is_symlink()]
    if elsewhere:
        raise StoreError(f"{elsewhere[0]} is a link: what lies behind it belongs to another folder; nothing is pruned")
    orphans, kept = _orphans(folder)
    stays = sorted(folder.store.ids() - orphans)
    found = [Leftover("runs of an earlier form", runs / run_id) for run_id in sorted(orphans)]
    if logits:
        found += [Leftover("logits", runs / i / LOGITS) for i in stays if (runs / i / LOGITS).is_file()]
    if weights:
        found += [Leftover("weights", runs / i / WEIGHTS) for i in stays if (runs / i / WEIGHTS).is_file()]
    found += [Leftover("measurements of other records", path) for path in _strange_measurements(folder)]
    found += [Leftover("metrics of no predictions", path) for i in stays for path in _strange_metrics(folder, i)]
    found += [Leftover("replaced runs", path) for path in _entries(home / "replaced")]
    found += [Leftover("damaged records", path) for path in _entries(home / "damaged")]
    found += [Leftover("half-written", path) for path in _half_written(folder)]
    found += [Leftover("searches of an earlier form", path) for path in _entries(home / FOLDER)
              if path.suffix == ".json" and path.stem not in {one.name for one in folder.searches}]
    found += [Leftover("live files", path) for path in _entries(home / "live")]
    return found + list(_unnamed(folder, stays)), kept


def _orphans(folder: StudyFolder) -> tuple[set[str], list[str]]:
    orphans, kept = set(), []
    waiting = {_but_for_the_recipe(run.spec) for run in folder.runs if run.pending}
    for run_id in sorted(folder.orphans()):
        try:
            ended = folder.store.read(run_id)
        except ForeignRecord as error:
            kept.append(str(error))
        except KeyError:
            kept.append(f"runs/{run_id} is no run's folder")
        except DamagedRecord:
            orphans.add(run_id)
        else:
            spec, version = ended.spec, REGIME_VERSIONS[ended.spec.regime]
            # A newer vitbench gives runs of the study new ids: the old ones are no leftovers.
            if spec.numerics != NUMERICS:
                kept.append(f"run {run_id} was computed with numerics {spec.numerics}; this version's are {NUMERICS}")
            elif spec.regime_version != version:
                kept.append(f"run {run_id} was computed with version {spec.regime_version} of the regime "
                            f"{spec.regime}; this version's is {version}")
            elif _but_for_the_recipe(spec) in waiting:
                kept.append(f"run {run_id} may be of a cell whose search has not ended")
            else:
                orphans.add(run_id)
    return orphans, kept


def _but_for_the_recipe(spec: RunSpec) -> str:
    return canonical_json(spec.model_dump(mode="json", exclude={"recipe"}))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _strange_metrics(folder: StudyFolder, run_id: str) -> Iterator[Path]:
    """Metric files that are damaged, or of other predictions than the run's record names: nothing shows them."""
    paths = [path for path in _entries(folder.store.runs / run_id / METRICS_FOLDER)
             if path.suffix == ".json" and not path.name.startswith(".")]
    try:
        ended = folder.store.read(run_id) if paths else None
    except (DamagedRecord, ForeignRecord):  # it may be put back
        return
    for path in paths:
        try:
            assert ended is not None
            read_metric(path, ended)
        except DamagedRecord:
            yield path


def _strange_measurements(folder: StudyFolder) -> Iterator[Path]:
    """What probes found on runs that are no longer there as they were, with its figure: it is measured anew."""
    for path in sorted((folder.store.folder / PROBES_FOLDER).glob("*/[!.]*.json")):
        records = dict[str, RunRecord]()
        try:
            found = measurement.read(path)
            for run_id in found.run_ids:
                with contextlib.suppress(KeyError):
                    ended = folder.store.read(run_id)
                    records |= {run_id: ended} if isinstance(ended, RunRecord) else {}
            stays = found.rests_on(records)
        except ForeignRecord:
            stays = True
        except DamagedRecord:  # the measurement, or a record, which is done again
            stays = False
        if not stays:
            yield from (each for each in (path, path.with_suffix(".svg")) if each.exists())


def _half_written(folder: StudyFolder) -> Iterator[Path]:
    home, runs = folder.store.folder, folder.store.runs
    yield from (path for path in _entries(runs) if path.name.startswith("."))
    places = (home, *(home / name for name in ("subsets", "environments", "plugins", "earlier", "augmented", FOLDER)),
              *(run / METRICS_FOLDER for run in _entries(runs)), *_entries(home / PROBES_FOLDER))
    for place in places:
        for path in _entries(place):
            with contextlib.suppress(FileNotFoundError):  # written whole in this moment
                if _TEMPORARY.fullmatch(path.name) and time.time() - path.lstat().st_mtime > _STILL_WRITING_SECONDS:
                    yield path


def _unnamed(folder: StudyFolder, stays: Iterable[str]) -> Iterator[Leftover]:
    """Subsets, environments and copies of plug-ins that nothing kept names. Records are read as text, so that those
    of another version count."""
    home = folder.store.folder
    files = [home / "execution.json", *(folder.store.runs / i / name for i in stays for name in (RECORD, FAILURE))]
    named = {name.decode() for file in files if file.is_file() for name in _NAMED.findall(file.read_bytes())}
    for kind in ("subsets", "environments"):
        yield from (Leftover(f"{kind} of no run", path) for path in _entries(home / kind)
                    if path.suffix == ".json" and not path.name.startswith(".") and path.stem not in named)
    named |= set(folder.resolved.plugins.values())
    of_study = {Path(name).name for name in folder.study.plugins}
    yield from (Leftover("plug-ins of no run", path) for path in _entries(home / "plugins")
                if path.suffix == ".py" and path.is_file() and path.name not in of_study
                and hashlib.sha256(path.read_bytes()).hexdigest() not in named)
