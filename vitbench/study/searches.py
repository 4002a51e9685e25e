"""The searches of a study at rest: one file each under tuning/, beside the sampler's journal."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from vitbench.config import Study
from vitbench.config.tuning import FIRST_SEED, LEAST_VALIDATION, Tuning
from vitbench.expansion import Outcomes, default_runs, tuned_settings
from vitbench.grid import Condition, Resolved, Run, carved, select
from vitbench.search import Search
from vitbench.spec import RunSpec, sha256_json
from vitbench.store import write_atomically

FOLDER, JOURNAL = "tuning", "journal.log"


@dataclass(frozen=True)
class Wanted:
    """One search of a study: the cell's specification under the tuning's own seed, and what was tried so far."""

    name: str
    spec: RunSpec  # of a trial, but for the recipe values that are searched
    search: Search

    @property
    def folds(self) -> tuple[int, int] | None:
        """Folds and repeats of the cross-validation; None where the fraction's own validation part judges."""
        tuning = self.search.tuning
        return None if self.search.validation == "holdout" else (tuning.folds, tuning.repeats)


class DamagedSearch(ValueError):
    """A search file that is not whole; the message says what to do."""


def wanted(study: Study, resolved: Resolved, folder: Path) -> list[Wanted]:
    """Every search of the study, in the order of the grid, with the trials on record. Raises DamagedSearch."""
    if study.tuning is None:
        return []
    cells: dict[Condition, Run] = {}
    for run in select(default_runs(study, resolved), study.tuning.only):
        cells.setdefault(run.condition, run)
    return [_wanted(setting, FIRST_SEED + i, run, study.tuning, resolved, folder)
            for i, setting in enumerate(tuned_settings(study)) for run in cells.values()]


def _wanted(setting: str, seed: int, run: Run, tuning: Tuning, resolved: Resolved, folder: Path) -> Wanted:
    spec = run.spec.changed(seed=seed, refit=False)
    counts = carved(run, resolved)
    across = tuning.validation == "cv" or (
        tuning.validation == "where_needed" and sum(counts.validation) < LEAST_VALIDATION)
    folds = f"{tuning.folds}-fold cross-validation" + (f", {tuning.repeats} times" if tuning.repeats > 1 else "")
    new = Search(setting=setting, label=run.label, share=spec.share, regime=spec.regime, budget=run.budget,
                 tuning=tuning, validation=folds if across else "holdout",
                 validation_images=sum(counts.drawn) if across else sum(counts.validation))
    # Another number of trials continues the same search, and so does a version with more options (protocol rule 29).
    asked = tuning.model_dump(mode="json", exclude={"trials", "only", "searches"}, exclude_defaults=True)
    name = sha256_json({"tuning": asked, "spec": spec.run_id})[:16]
    return Wanted(name, spec, _on_record(folder / f"{name}.json", new))


def _on_record(path: Path, new: Search) -> Search:
    try:
        old = Search.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return new
    except OSError as error:
        raise DamagedSearch(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError:
        raise DamagedSearch(f"{path} is damaged; remove it: the trials are in the journal beside it, and "
                            "`vitbench run` writes it again") from None
    return new.model_copy(update={"trials": old.trials[:new.tuning.trials]})


def once(searches: Iterable[Wanted]) -> list[Wanted]:
    """One for each name: labels of one specification share a search."""
    return list({one.name: one for one in searches}.values())


def keep(folder: Path, name: str, search: Search) -> None:
    """Write a search whole, or leave the one that is there."""
    folder.mkdir(exist_ok=True)
    write_atomically(folder / f"{name}.json", search.model_dump_json(indent=1) + "\n")


def outcomes(searches: Iterable[Search]) -> Outcomes:
    """What each ended search found best."""
    return {(one.setting, one.condition): best.params for one in searches if (best := one.best) is not None}
