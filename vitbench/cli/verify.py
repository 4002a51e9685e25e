"""`verify`: a line for each kind of check, then each fault with what to do."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from vitbench.cli.errors import harmless
from vitbench.config import BadStudy, Mistake
from vitbench.study.findings import Check, Stored, listed
from vitbench.study.folder import StudyFolder
from vitbench.study.verify import verify


class NotAllChecked(ValueError):
    """No fault was found, and something that a check needs is not at hand."""


@dataclass(frozen=True)
class Again:
    """How many runs to train again, drawn with which seed, how many at a time."""

    runs: int
    seed: int
    workers: int | None


def verify_study(console: Console, folder: StudyFolder, again: Again, *, allow_plugins: bool) -> int:
    """1 where a fault was found, else 0. Raises NotAllChecked where there was none and a dataset could not be had."""
    if folder.resolved.plugins and again.runs and not allow_plugins:
        raise BadStudy(folder.name, [Mistake("plugins", "--rerun runs the study's plug-ins, which are code; read them "
                                             f"in {folder.store.folder / 'plugins'}, then add --allow-plugins")])
    plugins = folder.load_plugins() if allow_plugins else ()
    stored = Stored.of(folder)
    names = {run.spec.run_id for run in folder.runs}
    console.print(f"study {folder.name}: {len(names & stored.found.keys())} of {len(names)} runs ended, "
                  f"{len(stored.found.keys() - names)} others are in its store")
    found = []
    for check in verify(stored):
        _show(console, check)
        found.append(check)
    if again.runs:
        found.append(_again(console, stored, again, plugins))
    faults = sum(len(check.faults) for check in found)
    console.print(f"{faults} faults" if faults else "no fault was found in what was checked")
    blocked = [check.kind for check in found if check.blocked]
    if blocked and not faults:
        raise NotAllChecked(f"not all of {', '.join(blocked)} could be checked, see above; --data-dir names the folder "
                            "of a dataset's files")
    return 1 if faults else 0


def _again(console: Console, stored: Stored, again: Again, plugins: tuple[Path, ...]) -> Check:
    from vitbench.study.agreement import TOLERANCE
    from vitbench.study.rerun import draw, rerun

    runs, check = draw(stored, again.runs, again.seed)
    console.print(f"{len(runs)} runs drawn with seed {again.seed}: {', '.join(run.spec.run_id for run in runs)}")
    console.print(f"equal in every number where environment, device and threads are the record's; {TOLERANCE}")
    if runs:
        for line in rerun(stored, runs, plugins, again.workers, check):
            console.print(harmless(line))
    _show(console, check)
    return check


def _show(console: Console, check: Check) -> None:
    for line in _lines(check):
        console.print(harmless(line))  # what was read may hold anything


def _lines(check: Check) -> Iterator[str]:
    skipped = sum(map(len, check.unchecked.values()))
    counts = [f"{check.checked:,} checked", f"{len(check.faults)} faults" if check.faults else "",
              f"{skipped:,} not checked" if skipped else ""]
    state = "FAULT" if check.faults else "ok" if check.checked else "-"
    yield f"{state:<6}{check.kind:<13}{', '.join(filter(None, counts))}"
    yield from (f"      {fault}" for fault in check.faults)
    yield from (f"      not checked: {listed(what)}: {why}" for why, what in check.unchecked.items())
