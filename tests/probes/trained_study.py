"""A study of digits that was trained in this process, with or without its weights kept."""

from pathlib import Path
from typing import Any

from tests.report import factory
from vitbench.datasets import DATASETS
from vitbench.record import Execution
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder
from vitbench.study.place import Machine
from vitbench.study.rerun import place_again
from vitbench.training.run import run_one

SMALL: dict[str, Any] = {"models": ["token_transformer:xs", "convnet:xs"], "fractions": [0.1], "seeds": 1,
                         "budgets": [{"steps": 12}], "recipe": {"batch_size": 32}}


def here() -> Execution:
    """As a run on this machine has it."""
    return place_again(None, Machine(None))


def trained_study(home: Path, **values: Any) -> StudyFolder:
    """Done, as `run` leaves it, under `home`."""
    of = factory.study(**{**SMALL, **values})
    meta = DATASETS.get("digits").meta
    names = factory.resolved(of).model_copy(update={"split": meta.split, "duplicates": meta.duplicates})
    folder = StudyFolder(home.name, of, names, ResultStore(home))
    folder.store.prepare()
    folder.write({})
    for run in folder.runs:
        finished = run_one(run.spec, here())
        finished = finished.with_weights() if "weights" in of.keep else finished
        folder.store.write_subset(finished.record.data.subset, finished.index_file)
        folder.store.write(finished.record, finished.logits_IC, finished.weights)
    return folder
