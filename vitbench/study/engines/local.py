"""Local engine: a fork server that has imported everything once, and one forked child for each run."""

import contextlib
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from vitbench import datasets
from vitbench.environment import set_switches
from vitbench.live import LiveFile
from vitbench.record import Execution, Failure
from vitbench.registry import PluginError, load_plugin
from vitbench.spec import RunSpec
from vitbench.store import ResultStore
from vitbench.study.place import Machine

# The console script imports vitbench.cli in each child again; here it costs nothing.
PRELOADED = ["vitbench.training.run", "vitbench.study.engines.local", "vitbench.models.token_transformer",
             "vitbench.models.convnet", "vitbench.models.resnet", "vitbench.nn.token_transformer",
             "vitbench.nn.convnet", "vitbench.nn.resnet", "torch.utils.flop_counter", "vitbench.cli"]


@dataclass(frozen=True)
class Task:
    """All that a worker needs: data, never pickled functions."""

    spec: RunSpec
    place: Execution
    folder: Path
    plugins: tuple[Path, ...]
    shared: bool


@dataclass(frozen=True)
class Ended:
    """How a task ended: `done` and `diverged` have a record, `failed` a failure, `unstored` neither."""

    spec: RunSpec
    outcome: str
    reason: str | None


class WorkerDied(ValueError):
    """A worker ended before it gave an answer."""


class LocalEngine:
    """Runs tasks in `workers` processes of one thread each. Use as a context: leaving it ends what runs."""

    def __init__(self, workers: int, preload: Iterable[str] = ()) -> None:
        self.workers, self._preload = workers, [*PRELOADED, *preload]
        self._context = multiprocessing.get_context("forkserver")
        self._running: dict[Connection, tuple[ForkServerProcess, Task]] = {}

    def __enter__(self) -> "LocalEngine":
        set_switches(threads=1)  # before the server imports torch
        self._context.set_forkserver_preload(self._preload)
        # Ctrl-C goes to the whole group: a server that still imports must not end in a traceback.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            forkserver.ensure_running()
        finally:
            signal.signal(signal.SIGINT, before)
        return self

    def __exit__(self, *_: object) -> None:
        for process, _task in self._running.values():
            process.kill()
        for process, _task in self._running.values():
            process.join()
        self._running.clear()

    def inspect(self, dataset: str, plugins: tuple[Path, ...]) -> Machine:
        """Load the dataset once, so that no run finds it missing, and look for a CUDA device.

        Raises DatasetError as the worker did, or WorkerDied.
        """
        connection, process = self._start(_inspect, dataset, plugins)
        try:
            answer = connection.recv()
        except EOFError:
            process.join()  # only then is its exit status known
            raise WorkerDied(f"the first worker died ({_cause(process)}) while reading dataset {dataset!r}") from None
        finally:
            process.join()
            connection.close()
        if isinstance(answer, Machine):
            return answer
        raise datasets.DatasetError(answer)

    def _start(self, target: Callable[..., None], *arguments: Any) -> tuple[Connection, ForkServerProcess]:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=target, args=(*arguments, theirs), daemon=True)
        process.start()
        theirs.close()  # so that the pipe ends when the child does
        return ours, process

    @property
    def free(self) -> bool:
        """True if another task can start."""
        return len(self._running) < self.workers

    @property
    def busy(self) -> bool:
        """True if a task runs."""
        return bool(self._running)

    def start(self, task: Task) -> None:
        """Begin a task in a worker of its own."""
        connection, process = self._start(_work, task)
        self._running[connection] = (process, task)

    def ended(self, timeout: float) -> Iterator[Ended]:
        """Tasks that ended within `timeout` seconds. A worker that died gives `failed`, and its failure is stored."""
        for ready in wait(list(self._running), timeout):
            assert isinstance(ready, Connection)
            process, task = self._running.pop(ready)
            try:
                outcome, reason = ready.recv()
            except (EOFError, OSError):
                process.join()
                outcome, reason = _store_failure(task, f"worker died: {_cause(process)}", "", datetime.now(UTC),
                                                 crash=True)
            process.join()
            ready.close()
            LiveFile(task.folder / "live", task.spec.run_id).remove()
            yield Ended(task.spec, outcome, reason)


def _cause(process: ForkServerProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit status {code}"


def _tell(answer: Connection, what: object) -> None:
    """Answer the driver, if it still listens."""
    with contextlib.suppress(BrokenPipeError):
        answer.send(what)


def _inspect(dataset: str, plugins: tuple[Path, ...], answer: Connection) -> None:
    """In a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    try:
        for path in plugins:
            load_plugin(path)
        datasets.load(dataset)
        _tell(answer, Machine(torch.cuda.get_device_name(0) if torch.cuda.is_available() else None))
    except (datasets.DatasetError, PluginError) as error:
        _tell(answer, str(error))
    except Exception as error:
        _tell(answer, f"dataset {dataset!r} cannot be read: {type(error).__name__}: {error}")


def _work(task: Task, answer: Connection) -> None:
    """In a worker: one run from its specification to its stored record."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what ends
    if task.place.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # else each optimiser step looks for a driver: 0.5 ms
    from vitbench.training.run import run_one

    spec, started = task.spec, datetime.now(UTC)
    live = LiveFile(task.folder / "live", spec.run_id)
    server = os.getppid()
    steps = 0

    def on_start(total: int) -> None:
        nonlocal steps
        steps = total
        live.update(0, total)

    def on_point(point: Any) -> None:
        if os.getppid() != server:  # the driver is gone, and its fork server with it
            os._exit(1)
        live.update(point.step, steps, train_loss=point.train_loss, val_loss=point.val_loss,
                    test_loss=point.test_loss)

    try:
        for path in task.plugins:
            load_plugin(path)
        finished = run_one(spec, task.place, shared=task.shared, on_start=on_start, on_point=on_point)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".strip()
        _tell(answer, _store_failure(task, reason, _scrubbed(traceback.format_exc(), task.folder), started))
        return
    try:
        store = ResultStore(task.folder)
        store.write_subset(finished.record.data.subset, finished.index_file)
        store.write(finished.record, finished.logits_IC)
    except OSError as error:
        _tell(answer, ("unstored", _refusal(error, task)))
        return
    live.remove()
    _tell(answer, (finished.record.outcome, finished.record.reason))


def _store_failure(task: Task, reason: str, trace: str, started: datetime, *, crash: bool = False) -> tuple[str, str]:
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
