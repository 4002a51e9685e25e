"""A finished study made without training: every file is what its records, its dataset and its seeds give."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.report import factory
from vitbench import subset
from vitbench.datasets import DATASETS, load
from vitbench.environment import describe, environment_id
from vitbench.grid import Resolved, Run
from vitbench.metrics import accuracy, cross_entropy
from vitbench.metrics.classification import correct
from vitbench.record import Execution, RunRecord, pack_hits
from vitbench.report import render, tables
from vitbench.store import ResultStore, write_atomically
from vitbench.streams import Streams
from vitbench.study.folder import StudyFolder

HERE = describe("")


def made_study(home: Path, *, diverged: int = 0, failed: int = 0, **values: Any) -> StudyFolder:
    """A study of digits under `home`; its first runs diverged, the next ones failed."""
    of = factory.study(**{"models": ["linear", "mlp:xs"], "fractions": [0.02, 0.1, 1], "seeds": 2, **values})
    meta = DATASETS.get("digits").meta
    facts = factory.resolved(of).model_copy(update={"split": meta.split, "duplicates": meta.duplicates})
    folder = StudyFolder(home.name, of, facts, ResultStore(home))
    folder.store.prepare()
    folder.write({})
    (home / "environments").mkdir()
    place = Execution(device="cpu", threads=1, deterministic=True, environment=environment_id(HERE),
                      code_version="0.1.0")
    write_atomically(home / "environments" / f"{place.environment}.json", json.dumps(HERE))
    write_atomically(home / "execution.json", place.model_dump_json())
    for number, run in enumerate(folder.runs):
        if diverged <= number < diverged + failed:
            folder.store.write_failure(factory.failure(run))
        else:
            store_run(folder, run, facts, place, "loss is not finite" if number < diverged else None)
    write_table(folder)
    return folder


def store_run(folder: StudyFolder, run: Run, facts: Resolved, place: Execution, diverged: str | None) -> None:
    arrays, spec = load("digits"), run.spec
    meta = DATASETS.get("digits").meta
    counts = subset.counts(meta.train_counts, fraction=spec.fraction, images_per_class=spec.images_per_class)
    chosen = subset.draw(arrays.train_labels, counts, Streams.of(spec).subset_rng())
    record = factory.record(run, facts, diverged=diverged)
    data = record.data.model_copy(update={"subset": chosen.sha256, "dataset_sha256": meta.sha256})
    logits_IC = None if diverged else made_logits(arrays.test_labels, spec.seed)
    record = record.model_copy(update={"data": data, "execution": place})
    folder.store.write_subset(chosen.sha256, subset.index_file(chosen, spec.dataset, spec.share, spec.seed,
                                                               len(arrays.train_labels), options={}))
    folder.store.write(record if logits_IC is None else with_predictions(record, logits_IC), logits_IC)


def made_logits(labels_I: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(len(labels_I), 10)) + 2 * np.eye(10)[labels_I]).astype(np.float16)


def with_predictions(record: RunRecord, logits_IC: np.ndarray) -> RunRecord:
    """The record as if these were its test logits: hash, hits and final test metrics follow from them."""
    labels_I = load("digits").test_labels
    final = record.final.model_copy(update={"test_loss": cross_entropy(logits_IC, labels_I),
                                            "test_accuracy": accuracy(logits_IC, labels_I)})
    return record.model_copy(update={"final": final, "test_correct": pack_hits(correct(logits_IC, labels_I)),
                                     "predictions_sha256": hashlib.sha256(logits_IC.tobytes()).hexdigest()})


def write_table(folder: StudyFolder) -> None:
    found = folder.frame()
    write_atomically(folder.store.folder / "table.md", render.markdown(tables.summary(found)))


def replace_record(folder: StudyFolder, run_id: str, record: RunRecord, logits_IC: np.ndarray | None = None) -> None:
    """Forge a run: its record, hash included, and where given its logits."""
    place = folder.store.runs / run_id
    (place / "record.json").write_text(record.to_json())
    if logits_IC is not None:
        np.save(place / "logits.npy", logits_IC)
