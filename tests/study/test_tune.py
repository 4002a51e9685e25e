"""What drives the trials of several searches, with an engine that trains nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from tests.report.factory import resolved, study
from vitbench.search import Trial
from vitbench.study.engines.local import Ended, LocalEngine
from vitbench.study.engines.worker import TrialTask
from vitbench.study.searches import FOLDER, wanted
from vitbench.study.tune import Tuner

TWINS = [{"name": "linear", "label": "a", "recipe": {"learning_rate": 0.01}},
         {"name": "linear", "label": "b", "recipe": {"learning_rate": 0.02}}]
TUNING = {"space": {"learning_rate": [0.1, 0.2, 0.3]}, "trials": 6, "validation": "cv"}


class _Engine:
    """Two at a time; the second of them always ends first, so that searches get out of step."""

    def __init__(self) -> None:
        self.tasks: list[TrialTask] = []

    @property
    def free(self) -> bool:
        return len(self.tasks) < 2

    @property
    def busy(self) -> bool:
        return bool(self.tasks)

    def start(self, task: TrialTask) -> None:
        self.tasks.append(task)

    def ended(self, timeout: float) -> Iterator[Ended]:
        task = self.tasks.pop()
        yield Ended(task, "done", None, 1.0, Trial(number=task.number, params=task.params, state="done",
                                                        val_accuracy=0.5, val_loss=1.0, seconds=1.0))


def test_two_searches_that_try_the_same_at_once_keep_their_own_trials(tmp_path: Path) -> None:
    """Their models differ in what is searched alone, so trials of both may have one specification."""
    of = study(models=TWINS, fractions=[0.1], seeds=1, tuning=TUNING)
    found = wanted(of, resolved(of), tmp_path / FOLDER)
    assert len({one.name for one in found}) == 2
    Tuner(cast(LocalEngine, _Engine()), cast(Any, None), tmp_path, (), lambda: None, lambda _ended, _all: None,
          lambda _line: None).drive(found)
    for one in wanted(of, resolved(of), tmp_path / FOLDER):
        assert [trial.number for trial in one.search.trials] == list(range(6))
