"""Local engine: a fork server that has imported everything once, and one forked child for each run."""

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from vitbench.config import DatasetEntry
from vitbench.environment import set_switches
from vitbench.grid import Run, model_of
from vitbench.live import LiveFile
from vitbench.models import MODELS
from vitbench.search import Trial
from vitbench.spec import Regime, RunSpec
from vitbench.study.engines.worker import Task, TrialTask, inspect, store_failure, work, work_trial
from vitbench.study.place import Machine, Placement

# The console script imports vitbench.cli in each child again; here it costs nothing.
PRELOADED = ["vitbench.training.run", "vitbench.study.engines.worker", "torch.utils.flop_counter", "vitbench.cli"]


ONE_AT_A_TIME = Placement("cpu", 0, 1)


@dataclass(frozen=True)
class Ended:
    """How a task ended: `done` and `diverged` have a record, `failed` a failure, `unstored` neither.

    A trial is its own answer; None where its worker died.
    """

    task: Task | TrialTask
    outcome: str
    reason: str | None
    seconds: float  # from the driver's decision to the answer
    trial: Trial | None = None

    @property
    def spec(self) -> RunSpec:
        """Of what ended. Two searches may try one and the same: a trial is known by its task."""
        return self.task.spec


@dataclass(frozen=True)
class _Running:
    process: ForkServerProcess
    task: Task | TrialTask
    started: float
    slot: int  # 0 to workers - 1


class WorkerDied(ValueError):
    """A worker ended before it gave an answer."""


def imports_of(runs: Iterable[Run]) -> list[str]:
    """Modules that the runs' models import when they are built."""
    names = {model_of(run)[0] for run in runs}
    return sorted({module for name in names for module in MODELS.get(name).meta.imports})


class LocalEngine:
    """Runs tasks in processes of one thread each. Use as a context: leaving it ends what runs.

    `placement` may be set once the machine is known. What is to `preload` is imported once for all runs.
    """

    def __init__(self, preload: Iterable[str] = (), placement: Placement = ONE_AT_A_TIME) -> None:
        self.placement = placement
        self._preload = [*PRELOADED, *preload]
        self._context = multiprocessing.get_context("forkserver")
        self._running: dict[Connection, _Running] = {}

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
        for run in self._running.values():
            run.process.kill()
        for run in self._running.values():
            run.process.join()
        self._running.clear()

    def inspect(self, dataset: DatasetEntry, plugins: tuple[Path, ...],
                models: Mapping[str, tuple[str, str | None, dict[str, Any]]] | None = None,
                regimes: tuple[Regime, ...] = ()) -> Machine:
        """Load the dataset once, so that no run finds it missing, look for CUDA devices, and try every model.

        `models` are name, size and options by label; the answer has a picture of each of `regimes`. Raises
        DatasetError, PluginError or UnfitModels as the worker did, or WorkerDied.
        """
        connection, process = self._start(inspect, dataset, plugins, dict(models or {}), regimes)
        try:
            answer = connection.recv()
        except EOFError:
            process.join()  # only then is its exit status known
            raise WorkerDied(f"the first worker died ({_cause(process)}) before any run began") from None
        except (KeyboardInterrupt, SystemExit):  # Ctrl-C, or SIGTERM
            process.terminate()  # it may be downloading
            raise
        finally:
            process.join()
            connection.close()
        if isinstance(answer, Machine):
            return answer
        raise answer

    def _start(self, target: Callable[..., None], *arguments: Any) -> tuple[Connection, ForkServerProcess]:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=target, args=(*arguments, theirs), daemon=True)
        process.start()
        theirs.close()  # so that the pipe ends when the child does
        return ours, process

    @property
    def free(self) -> bool:
        """True if another task can start."""
        return len(self._running) < self.placement.workers

    @property
    def busy(self) -> bool:
        """True if a task runs."""
        return bool(self._running)

    def start(self, task: Task | TrialTask) -> None:
        """Begin a run or a trial in a worker of its own."""
        started, taken = time.monotonic(), {run.slot for run in self._running.values()}
        slot = next(i for i in range(self.placement.workers) if i not in taken)
        target = work if isinstance(task, Task) else work_trial
        visible = visible_devices(task.place.device, slot, self.placement.devices)
        connection, process = self._start(target, task, visible)
        self._running[connection] = _Running(process, task, started, slot)

    def ended(self, timeout: float) -> Iterator[Ended]:
        """Tasks that ended within `timeout` seconds. A worker that died gives `failed`, and its failure is stored."""
        for ready in wait(list(self._running), timeout):
            assert isinstance(ready, Connection)
            run = self._running.pop(ready)
            end = _end(run, ready)
            run.process.join()
            ready.close()
            yield end


def _end(run: _Running, answer: Connection) -> Ended:
    task, found = run.task, None
    try:
        found = answer.recv()
    except (EOFError, OSError):
        run.process.join()  # only then is its exit status known
    seconds, cause = time.monotonic() - run.started, f"worker died: {_cause(run.process)}"
    if isinstance(task, TrialTask):
        return Ended(task, found.state if found else "lost", found.reason if found else cause, seconds, found)
    outcome, reason = found or store_failure(task, cause, "", datetime.now(UTC), crash=True)
    LiveFile(task.folder / "live", task.spec.run_id).remove()
    return Ended(task, outcome, reason, seconds)


def _cause(process: ForkServerProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit status {code}"


def visible_devices(device: str, slot: int, devices: int) -> str | None:
    """CUDA_VISIBLE_DEVICES of the worker in `slot`: one device, in turn; None leaves it as it is."""
    if device == "cpu":
        return ""  # else each optimiser step looks for a driver: 0.5 ms
    if devices < 2:
        return None
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    return (allowed.split(",") if allowed else [str(i) for i in range(devices)])[slot % devices]
