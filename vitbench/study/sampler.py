"""The sampler of a search: Optuna's, over a journal that survives a kill at any moment."""

import json
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, QMCSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState, create_trial
from pydantic import ValidationError

from vitbench.config.tuning import Params, Range, Tuning, rounded
from vitbench.search import Trial
from vitbench.spec import sha256_json

STATES = {"done": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "diverged": TrialState.FAIL,
          "failed": TrialState.FAIL}

optuna.logging.set_verbosity(optuna.logging.WARNING)


class DamagedJournal(ValueError):
    """A journal that was changed by other hands; the message says where."""


class _StudyLock:
    """The study's own lock is held: there is one writer, and a killed one leaves nothing behind."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def open_journal(path: Path) -> JournalStorage:
    """The journal at `path`; a last line that a kill cut off was never acted upon, and is dropped.

    Raises DamagedJournal where another line is none of a journal.
    """
    path.parent.mkdir(exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    whole = content[:content.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            json.loads(line)
        except ValueError:
            raise DamagedJournal(f"{path}, line {number}: damaged. {_MEND}") from None
    if whole != content:
        with path.open("r+b") as file:
            file.truncate(len(whole))
    try:
        return JournalStorage(JournalFileBackend(str(path), lock_obj=cast(Any, _StudyLock())))
    except Exception as error:  # replaying lines that are JSON and no entries raises whatever Optuna's code does
        raise DamagedJournal(f"{path}: damaged, its lines are not those that were written ({type(error).__name__}: "
                             f"{error}). {_MEND}") from None


_MEND = ("Put it back from a copy, or remove it: what the .json files beside it hold is kept, and their searches go on "
         "from there")


def recorded(path: Path, name: str) -> tuple[Trial, ...]:
    """The trials of one search in a journal, which is only read. Raises DamagedJournal."""
    with tempfile.TemporaryDirectory(prefix="vitbench-") as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)  # opening one repairs it
        storage = open_journal(copy)
        if name not in {study.study_name for study in storage.get_all_studies()}:
            return ()
        return _records(optuna.load_study(study_name=name, storage=storage))


def _records(study: optuna.Study) -> tuple[Trial, ...]:
    kept = study.user_attrs
    try:
        return tuple(Trial.model_validate_json(kept[_key(trial.number)]) for trial in study.get_trials(deepcopy=False)
                     if _key(trial.number) in kept)
    except ValidationError:
        raise DamagedJournal(f"the journal's search {study.study_name}: a trial is damaged. {_MEND}") from None


class Asker:
    """Asks for the trials of one search, one at a time, and tells what became of them.

    What it asks for next is a function of the search's name and of the trials before: a killed driver goes on with
    the same trials, the one that was running included.
    """

    def __init__(self, name: str, tuning: Tuning, storage: JournalStorage) -> None:
        self._name, self._tuning = name, tuning
        self._study = optuna.create_study(
            storage=storage, study_name=name, load_if_exists=True, sampler=RandomSampler(0),
            direction="maximize" if tuning.objective == "accuracy" else "minimize")

    def trials(self) -> tuple[Trial, ...]:
        """Those that ended, by number."""
        return _records(self._study)

    def restore(self, trials: Sequence[Trial]) -> None:
        """Tell again what a journal that was lost or cut no longer holds of `trials`, which were kept beside it.

        Raises DamagedJournal where the search would have asked for others.
        """
        for trial in trials[len(self.trials()):]:
            if self.ask() != (trial.number, trial.params):
                raise DamagedJournal(f"trial {trial.number} of search {self._name} is in tuning/{self._name}.json, not "
                                     "in the journal beside it, and the search would have asked for another; put the "
                                     "journal back from a copy, or remove that file to begin the search anew")
            self.tell(trial)

    def ask(self) -> tuple[int, Params] | None:
        """The trial that was running when the driver was killed, else a new one; None once there are enough."""
        trials = self._study.get_trials(deepcopy=False)
        running = next((trial for trial in trials if not trial.state.is_finished()), None)
        if running is not None and _key(running.number) in self._study.user_attrs:  # killed while telling
            self._finish(self.trials()[running.number])
            return self.ask()
        if running is None and len(trials) >= self._tuning.trials:
            return None
        if running is None:
            # Enqueued whole: asked for value by value, a kill could leave half a trial.
            self._study.enqueue_trial(self._sampled(self.trials()))
            running = self._study.get_trials(deepcopy=False)[len(trials)]
        if running.state == TrialState.WAITING:
            self._study.ask()
        return running.number, running.system_attrs["fixed_params"]

    def _sampled(self, trials: tuple[Trial, ...]) -> Params:
        """What the sampler asks for after these trials: a function of them and of the search's name alone."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of samplers and options that Optuna calls experimental
            study = optuna.create_study(sampler=self._sampler(len(trials)), direction=self._study.direction)
            study.add_trials(map(self._frozen, trials))
            # A sequence of points is walked from its beginning; other samplers are new at each trial.
            asks = len(trials) + 1 if self._tuning.sampler == "qmc" else 1
            found = [study.ask(self._distributions).params for _ in range(asks)][-1]
        return {key: _rounded(found[key], of) for key, of in self._tuning.dimensions.items()}

    def _frozen(self, trial: Trial) -> FrozenTrial:
        return create_trial(params=trial.params, distributions=self._distributions, value=self._value(trial),
                            state=STATES[trial.state])

    def _value(self, trial: Trial) -> float | None:
        value = trial.val_accuracy if self._tuning.objective == "accuracy" else trial.val_loss
        return value if trial.state == "done" else None

    @property
    def _distributions(self) -> dict[str, BaseDistribution]:
        return {key: _distribution(of) for key, of in self._tuning.dimensions.items()}

    def tell(self, trial: Trial) -> None:
        """Keep what became of a trial: first its record, then the sampler's share of it."""
        self._study.set_user_attr(_key(trial.number), trial.model_dump_json())
        self._finish(trial)

    def _finish(self, trial: Trial) -> None:
        self._study.tell(trial.number, self._value(trial), state=STATES[trial.state])

    def _sampler(self, number: int) -> BaseSampler:
        seed = int(sha256_json([self._name, 0 if self._tuning.sampler == "qmc" else number])[:8], 16)
        if self._tuning.sampler == "random":
            return RandomSampler(seed)
        if self._tuning.sampler == "tpe":
            return TPESampler(seed=seed, multivariate=True)
        return QMCSampler(seed=seed, scramble=True, warn_independent_sampling=False)


def _key(number: int) -> str:
    return f"trial {number}"


def _distribution(dimension: Any) -> BaseDistribution:
    if not isinstance(dimension, Range):
        return CategoricalDistribution(list(dimension))
    if dimension.whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return FloatDistribution(float(dimension.low), float(dimension.high), log=dimension.log)


def _rounded(value: Any, dimension: Any) -> Any:
    if not isinstance(dimension, Range) or dimension.whole:
        return value
    return min(max(rounded(value), float(dimension.low)), float(dimension.high))
