"""The trials of several searches at once, with an engine that trains nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from tests.report.factory import resolved, study
from vitbench.record import Execution
from vitbench.search import Trial
from vitbench.study.engines.local import Ended
from vitbench.study.engines.worker import TrialTask
from vitbench.study.searches import FOLDER, wanted
from vitbench.study.tune import Tuner

PLACE = Execution(device="cpu", threads=1, deterministic=True, environment="e" * 16, code_version="0")


class LastFirst:
    """Two tasks at a time; the one that began last ends first."""

    def __init__(self) -> None:
        self.tasks: list[TrialTask] = []
        self.started = 0

    @property
    def free(self) -> bool:
        return len(self.tasks) < 2

    @property
    def busy(self) -> bool:
        return bool(self.tasks)

    def start(self, task: TrialTask) -> None:
        self.tasks.append(task)
        self.started += 1

    def ended(self, timeout: float) -> Iterator[Ended]:
        task = self.tasks.pop()
        rate = float(str(task.params["learning_rate"]))
        yield Ended(task, "done", None, 1.0, Trial(number=task.number, params=task.params, state="done",
                                                   val_accuracy=1 - rate, val_loss=rate, seconds=1.0))


def test_searches_that_try_the_same_specification_keep_their_own_trials(tmp_path: Path) -> None:
    """Two labels differ in the rate alone, which is searched: their trials are of one specification."""
    narrow = {"learning_rate": {"low": 0.01, "high": 0.01000001}}  # four digits of it are one value
    of = study(fractions=[1], seeds=1, tuning={"space": narrow, "trials": 3}, models=[
        {"name": "linear", "label": f"at {rate}", "recipe": {"learning_rate": rate}} for rate in (0.001, 0.003)])
    searches = wanted(of, resolved(of), tmp_path / FOLDER)
    (tmp_path / FOLDER).mkdir()
    engine = LastFirst()

    def tuner(stop: Callable[[], str | None]) -> Tuner:
        return Tuner(cast(Any, engine), PLACE, tmp_path, (), stop, lambda _ended, _all: None, print)

    tuner(lambda: "one is enough" if engine.started else None).drive(searches[1:])  # it is one trial ahead
    tuner(lambda: None).drive(searches)
    for one in wanted(of, resolved(of), tmp_path / FOLDER):
        assert [trial.number for trial in one.search.trials] == list(range(3)), one.search.label
