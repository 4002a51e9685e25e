"""Verifying a study: what its folder holds, held to what it follows from. Nothing is written, nothing is locked."""

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from vitbench.environment import environment_id
from vitbench.record import DamagedRecord, Execution, Failure, ForeignRecord, RunRecord
from vitbench.registry import PluginError, plugin_sha256
from vitbench.report import render, tables
from vitbench.search import Trial
from vitbench.study import rederive
from vitbench.study.findings import Check, NotKept, Stored, listed
from vitbench.study.rerun import of_another_version
from vitbench.study.searches import FOLDER, JOURNAL, Wanted
from vitbench.study.trained import NotTheRun, allowed_apart, from_weights, logits_apart


def verify(stored: Stored) -> Iterator[Check]:
    """One check after the other, of all records and failures in the store; those of the data need the dataset."""
    yield _records(stored)
    yield _environments(stored)
    if stored.folder.resolved.plugins:
        yield _plugins(stored)
    yield from rederive.checks(stored)
    if any(record.weights_sha256 for record in stored.records.values()):
        yield _weights(stored)
    if stored.folder.searches:
        yield _searches(stored)
    yield _table(stored)


def _records(stored: Stored) -> Check:
    """Whole, hash right, in the folder of the run id that follows from the configuration, outcome and numbers fit."""
    check = Check("records")
    for run_id, ended in stored.found.items():
        if isinstance(ended, ForeignRecord):
            check.skip(f"run {run_id}", str(ended))
            continue
        check.checked += 1
        if isinstance(ended, DamagedRecord):
            check.fault(f"run {run_id}", str(ended), stored.redo)
        elif isinstance(ended, RunRecord) and (why := _contradiction(ended)):
            check.fault(f"run {run_id}", why, stored.redo)
        elif isinstance(ended, Failure) and not ended.sha256:
            check.skip(f"run {run_id}", "its failure has no hash: it was written before failures had one")
    return check


def _contradiction(record: RunRecord) -> str | None:
    """Where outcome and numbers do not fit each other."""
    numbers = record.final.test_loss, record.final.test_accuracy, record.test_correct, record.predictions_sha256
    if record.outcome == "done" and None in numbers:
        return "its record says done and lacks final metrics or predictions"
    if record.outcome == "diverged" and any(number is not None for number in numbers):
        return "its record says diverged and has final metrics or predictions"
    return None


def _environments(stored: Stored) -> Check:
    """Each file that a record or execution.json names is there and hashes to its name."""
    check, home = Check("environments"), stored.folder.store.folder
    named: dict[str, list[str]] = {}
    for run_id, record in stored.records.items():
        named.setdefault(record.execution.environment, []).append(f"run {run_id}")
    with contextlib.suppress(FileNotFoundError):
        try:
            execution = Execution.model_validate_json((home / "execution.json").read_bytes())
            named.setdefault(execution.environment, ["execution.json"])
        except ValidationError:
            check.fault("execution.json", "is damaged", "remove it; the next `vitbench run` chooses the device again")
    for name, by in sorted(named.items()):
        check.judge(f"environments/{name}.json (of {listed(by)})",
                    partial(_environment_fault, home / "environments" / f"{name}.json"), "put it back from a copy")
    return check


def _environment_fault(path: Path) -> str | None:
    try:
        return None if environment_id(json.loads(path.read_bytes())) == path.stem else "does not hash to its name"
    except FileNotFoundError:
        return "is missing"
    except (OSError, ValueError, RecursionError):
        return "is damaged"


def _plugins(stored: Stored) -> Check:
    """Each copy is the file that run ids name."""
    check, home = Check("plug-ins"), stored.folder.store.folder
    for name, sha256 in stored.folder.resolved.plugins.items():
        check.checked += 1
        try:
            why = None if plugin_sha256(home / "plugins" / f"{name}.py") == sha256 else "is not the file that runs name"
        except PluginError as error:
            why = str(error)
        if why:
            check.fault(f"plugins/{name}.py", why, f"put the file of SHA-256 {sha256} back")
    return check


def _weights(stored: Stored) -> Check:
    """Kept weights are those that the record names, and give the test logits that it stored. Loads torch."""
    check = Check("weights")
    for run_id, record in stored.records.items():
        if record.weights_sha256:
            check.judge(f"run {run_id}", partial(_weights_fault, stored, record),
                        "remove the file: a probe trains the run again where it needs to")
    return check


def _weights_fault(stored: Stored, record: RunRecord) -> str | None:
    try:
        weights, logits_IC = stored.folder.store.weights(record), stored.folder.store.logits_IC(record)
    except FileNotFoundError:
        raise NotKept("keeps no weights or no logits: pruned, or not copied here") from None
    why = of_another_version(record.spec)
    if why:
        raise NotKept(why)
    try:
        apart, allowed = logits_apart(from_weights(record, weights), logits_IC), allowed_apart(record)
    except NotTheRun as error:
        return str(error)
    return None if apart <= allowed else f"its weights give logits that differ from its own by {apart:.2g} of them"


def _searches(stored: Stored) -> Check:
    """Each search holds the trials of the sampler's journal: what it found best decides the tuned runs."""
    from vitbench.study.sampler import recorded  # Optuna: half a second that most studies need not wait

    check, folder = Check("searches"), stored.folder.store.folder / FOLDER
    for one in stored.folder.searches:
        if (folder / f"{one.name}.json").is_file():
            check.judge(f"tuning/{one.name}.json", partial(_search_fault, folder, one, recorded),
                        f"remove it; `vitbench run {stored.folder.name}` writes it again")
    return check


def _search_fault(folder: Path, one: Wanted, recorded: Callable[[Path, str], tuple[Trial, ...]]) -> str | None:
    if not (folder / JOURNAL).is_file():
        raise NotKept("its journal was not kept, or not copied here")
    try:
        same = recorded(folder / JOURNAL, one.name)[:one.search.tuning.trials] == one.search.trials
    except ValueError as error:  # a damaged journal
        return str(error)
    return None if same else "does not hold the trials of the journal beside it"


def _table(stored: Stored) -> Check:
    """table.md is what the records give, byte for byte (protocol rule 30)."""
    check = Check("table")
    check.judge("table.md", partial(_table_fault, stored), f"`vitbench report {stored.folder.name}` writes it anew; "
                "while a study runs it has records that its table lacks")
    return check


def _table_fault(stored: Stored) -> str | None:
    folder = stored.folder
    if rederive.names_other_data(stored):
        raise NotKept("resolved.json is at fault: what the table should be follows from it")
    try:
        found = folder.frame(read=stored.read)
    except ForeignRecord as error:
        raise NotKept(str(error)) from None
    expected = render.markdown(tables.summary(found, mixed_devices=True)).encode()
    try:
        same = (folder.store.folder / "table.md").read_bytes() == expected
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if same else "is not what the records give"
