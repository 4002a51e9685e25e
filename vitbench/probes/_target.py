"""What a probe is done on: nothing, a study's runs, or one run, chosen before anything is computed."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vitbench.config import BadStudy
from vitbench.config.controls import MAIN
from vitbench.grid import Run, distinct, select
from vitbench.probes import PROBES, ProbeError
from vitbench.record import DamagedRecord, RunRecord
from vitbench.study.findings import listed
from vitbench.study.folder import StudyFolder

_RUN = re.compile(r"[0-9a-f]{4,16}")


@dataclass(frozen=True)
class Target:
    """A study, and of its runs the one that was named."""

    folder: StudyFolder
    run_id: str | None = None

    @classmethod
    def named(cls, text: str, results: Path) -> "Target":
        """A study by name, .yaml file or folder, or a run by its id or first digits. Raises BadStudy, ProbeError."""
        try:
            return cls(StudyFolder.open(text, results))
        except BadStudy:
            if not _RUN.fullmatch(text):
                raise
        found = sorted(path for path in results.glob(f"*/runs/{text}*") if path.is_dir())
        if len(found) != 1:
            which = f": {listed(f'{path.parent.parent.name}/{path.name}' for path in found)}" if found else ""
            raise ProbeError(f"{text!r} is no study in {results}, and {len(found)} runs there begin with it{which}; "
                             "`vitbench export STUDY` lists a study's run ids")
        return cls(StudyFolder.open(found[0].parent.parent.name, results), found[0].name)


def choose(name: str, target: Target, only: str | None) -> tuple[tuple[Run, ...], list[str]]:
    """The target's runs that a probe can look at, in the grid's order, and what a user should know of the others.

    Raises ProbeError, saying what the study has, where there is none.
    """
    folder, families = target.folder, PROBES.get(name).meta.families
    asked = _asked(target, only)
    fitting = [run for run in asked if not families or folder.resolved.models[run.label].family in families]
    if not fitting:
        models = {run.label: folder.resolved.models[run.label].family for run in asked}
        has = ", ".join(f"{label} ({family})" for label, family in models.items())
        raise ProbeError(f"probe {name!r} looks at {' and '.join(families)} models; "
                         f"{'this run is of' if target.run_id else f'study {folder.name!r} has'} {has}")
    states = [_state(folder, run) for run in fitting]
    done = [run for run, state in zip(fitting, states, strict=True) if state == "done"]
    if not done:
        raise ProbeError(f"none of the {len(fitting)} runs that probe {name!r} would look at is done; "
                         f"`vitbench run {folder.name}` does them")
    told = {"left": "are not done, and are left out",
            "damaged": "have damaged records (vitbench verify names them), and are left out"}
    return tuple(done), [f"{states.count(state)} of {len(fitting)} runs {words}" for state, words in told.items()
                         if state in states]


def _asked(target: Target, only: str | None) -> list[Run]:
    """Of the grid itself, unless a run or `only` names others."""
    runs = target.folder.runs
    if target.run_id:
        found = [run for run in runs if not run.pending and run.spec.run_id == target.run_id]
        if not found:
            raise ProbeError(f"run {target.run_id} is no run of study {target.folder.name!r} as it stands now")
        return found[:1]
    chosen = select(runs, only)
    return distinct(chosen if only else [run for run in chosen if run.control == MAIN])


def _state(folder: StudyFolder, run: Run) -> Literal["done", "damaged", "left"]:
    if run.pending:
        return "left"
    try:
        found = folder.store.read(run.spec.run_id)
    except DamagedRecord:
        return "damaged"
    except KeyError:
        return "left"
    return "done" if isinstance(found, RunRecord) and found.outcome == "done" else "left"
