"""What happens in a worker: the machine is looked at, or one run is done and stored."""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from vitbench import datasets
from vitbench.config import DatasetEntry
from vitbench.config.tuning import Params
from vitbench.cost import Footprint
from vitbench.live import LiveFile
from vitbench.models import ModelError, checked_footprint
from vitbench.record import Execution, Failure
from vitbench.registry import PluginError, UnknownName, load_plugin
from vitbench.search import Trial
from vitbench.spec import Regime, RunSpec
from vitbench.store import ResultStore
from vitbench.study.place import Machine


@dataclass(frozen=True)
class Task:
    """All that a worker needs: data, never pickled functions."""

    spec: RunSpec
    place: Execution
    folder: Path
    plugins: tuple[Path, ...]
    shared: bool
    probe: bool = False  # only its costs are wanted
    keep_weights: bool = False


@dataclass(frozen=True)
class TrialTask:
    """A tuning trial: it stores nothing, its answer is a Trial."""

    spec: RunSpec
    place: Execution
    folder: Path
    plugins: tuple[Path, ...]
    number: int
    params: Params
    folds: tuple[int, int] | None  # and repeats
    halving: tuple[Literal["accuracy", "loss"], tuple[tuple[float, ...], ...]] | None  # earlier trials at each rung


class UnfitModels(ValueError):
    """Models that cannot be built or run at this study's image size; its argument: why, by label."""

    def __str__(self) -> str:
        return "\n".join(f"model {label!r}: {reason}" for label, reason in self.args[0].items())


def _tell(answer: Connection, what: object) -> None:
    """Answer the driver, if it still listens."""
    with contextlib.suppress(BrokenPipeError):
        answer.send(what)


def inspect(dataset: DatasetEntry, plugins: tuple[Path, ...], models: dict[str, tuple[str, str | None, dict[str, Any]]],
            regimes: tuple[Regime, ...], answer: Connection) -> None:
    """In a worker: answers with a Machine, or with the exception that says why no run can start."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that half a download is removed
    import torch

    try:
        for path in plugins:
            load_plugin(path)
        began = time.monotonic()
        sha256 = _load(dataset)
        seconds, devices = time.monotonic() - began, torch.cuda.device_count()
        _tell(answer, Machine(torch.cuda.get_device_name(0) if devices else None, devices, _tried(dataset, models),
                              seconds, sha256, {regime: _picture(dataset, regime) for regime in regimes}))
    except (datasets.DatasetError, PluginError, UnfitModels) as error:
        _tell(answer, type(error)(*error.args))  # without its cause, which may not cross the border


def _picture(dataset: DatasetEntry, regime: Regime) -> bytes:
    from vitbench.training.pictures import picture

    return picture(dataset, regime)


def _load(dataset: DatasetEntry) -> str:
    try:
        return datasets.load(dataset.name, dataset.options).sha256
    except datasets.DatasetError:
        raise
    except Exception as error:
        raise datasets.DatasetError(f"dataset {dataset.name!r} cannot be read: {type(error).__name__}: "
                                    f"{error}") from error


def _tried(dataset: DatasetEntry, models: dict[str, tuple[str, str | None, dict[str, Any]]]) -> dict[str, Footprint]:
    """Costs by label. Raises UnfitModels."""
    data, _ = datasets.resolve(dataset.name, dataset.options)
    costs, unfit = {}, {}
    for label, (name, size, options) in models.items():
        try:
            costs[label] = checked_footprint(name, size, options, data.image, data.num_classes)
        except (ModelError, UnknownName) as error:
            unfit[label] = str(error)
    if unfit:
        raise UnfitModels(unfit)
    return costs


def _ready(visible: str | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what ends
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible


def _end_with(server: int) -> None:
    """End this process once its fork server is gone: the driver was killed, and nobody waits for the answer."""
    while os.getppid() == server:
        time.sleep(1)
    os._exit(1)


def _load_plugins(task: Task | TrialTask) -> None:
    for path in task.plugins:
        if path.stem in task.spec.plugins:  # others, such as claims, are no part of a run
            load_plugin(path)


def work(task: Task, visible: str | None, answer: Connection) -> None:
    """In a worker: one run from its specification to its stored record."""
    _ready(visible)
    from vitbench.training.run import run_one

    spec, started = task.spec, datetime.now(UTC)
    live = LiveFile(task.folder / "live", spec.run_id)
    steps = 0

    def on_start(module: Any) -> None:
        nonlocal steps
        steps = module.steps
        live.update(0, steps)

    def on_point(point: Any) -> None:
        live.update(point.step, steps, train_loss=point.train_loss, val_loss=point.val_loss,
                    test_loss=point.test_loss)

    try:
        _load_plugins(task)
        finished = run_one(spec, task.place, shared=task.shared, probe=task.probe, on_start=on_start, on_point=on_point)
        finished = finished.with_weights() if task.keep_weights else finished
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".strip()
        _tell(answer, store_failure(task, reason, _scrubbed(traceback.format_exc(), task.folder), started))
        return
    try:
        store = ResultStore(task.folder)
        store.write_subset(finished.record.data.subset, finished.index_file)
        store.write(finished.record, finished.logits_IC, finished.weights)
    except OSError as error:
        _tell(answer, ("unstored", _refusal(error, task)))
        return
    live.remove()
    _tell(answer, (finished.record.outcome, finished.record.reason))


def work_trial(task: TrialTask, visible: str | None, answer: Connection) -> None:
    """In a worker: one tuning trial, from its specification to the answer."""
    _ready(visible)
    from vitbench.training.trial import Folds, Halving, try_one

    started = time.perf_counter()
    try:
        _load_plugins(task)
        trial = try_one(task.spec, task.place, number=task.number, params=task.params,
                        folds=Folds(*task.folds) if task.folds else None,
                        halving=Halving(*task.halving) if task.halving else None)
    except Exception as error:
        trial = Trial(number=task.number, params=task.params, state="failed", seconds=time.perf_counter() - started,
                      reason=f"{type(error).__name__}: {error}".strip())
    _tell(answer, trial)


def store_failure(task: Task, reason: str, trace: str, started: datetime, *, crash: bool = False) -> tuple[str, str]:
    """Keep why a run has no numbers; the answer that the driver gets."""
    failure = Failure(run_id=task.spec.run_id, spec=task.spec, reason=reason, traceback=trace, crash=crash,
                      started=started.isoformat(timespec="seconds"),
                      finished=datetime.now(UTC).isoformat(timespec="seconds"))
    try:
        ResultStore(task.folder).write_failure(failure)
    except OSError as error:
        return "unstored", _refusal(error, task)
    return "failed", reason


def _refusal(error: OSError, task: Task) -> str:
    """'subsets/0a1b.json: No space left on device'."""
    file = str(error.filename or "").removeprefix(f"{task.folder}{os.sep}")
    return f"{file}{': ' if file else ''}{error.strerror or error}"


def _scrubbed(trace: str, results: Path) -> str:
    """A traceback without the folders of this machine."""
    for folder, name in ((str(results.resolve().parent), "."),
                         (str(Path(datasets.__file__).parents[2]), "."), (sys.prefix, "<environment>"),
                         (str(Path.home()), "~")):
        trace = trace.replace(folder + os.sep, name + os.sep)
    return trace
