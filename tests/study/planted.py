"""Faults planted in a study that is whole; each function gives the word that must be named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.made_study import made_logits, replace_record
from vitbench.datasets import load
from vitbench.metrics import kept
from vitbench.record import RunRecord
from vitbench.spec import canonical_json, sha256_json
from vitbench.study.findings import Stored
from vitbench.study.folder import StudyFolder

Plant = Callable[[StudyFolder], str]


def a_run(folder: StudyFolder, share: str = "0.1") -> tuple[str, RunRecord]:
    """A run that is done, of a share with validation and a listed subset."""
    records = Stored.of(folder).predicted
    return next((i, record) for i, record in records.items() if record.spec.share == share)


def flip(path: Path, position: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def record_bit(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    flip(folder.store.runs / run_id / "record.json", 200)
    return run_id


def truncated_record(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    path = folder.store.runs / run_id / "record.json"
    path.write_bytes(path.read_bytes()[:-100])
    return run_id


def swapped_folders(folder: StudyFolder) -> str:
    first, second = list(Stored.of(folder).predicted)[:2]
    runs = folder.store.runs
    (runs / first).rename(runs / "x")
    (runs / second).rename(runs / first)
    (runs / "x").rename(runs / second)
    return first


def edited_seed(folder: StudyFolder) -> str:
    """With its own hash recomputed."""
    run_id, _ = a_run(folder)
    path = folder.store.runs / run_id / "record.json"
    content = {k: v for k, v in json.loads(path.read_text()).items() if k != "sha256"}
    content["spec"]["seed"] += 1
    path.write_text(canonical_json({**content, "sha256": sha256_json(content)}))
    return run_id


def failure_bit(folder: StudyFolder) -> str:
    (path,) = folder.store.runs.glob("*/failure.json")
    path.write_bytes(path.read_bytes().replace(b"out of memory", b"out of cookies"))
    return path.parent.name


def diverged_with_numbers(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={"outcome": "diverged", "reason": "unlucky"}))
    return run_id


def done_without_predictions(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={"predictions_sha256": None, "test_correct": None}))
    return run_id


def all_of_another_seed(folder: StudyFolder) -> str:
    """Seed, run id, folder and hash edited to fit each other: the study's seed 1, filled from seed 0."""
    by_spec = {(r.spec.model, r.spec.share, r.spec.seed): r for r in Stored.of(folder).predicted.values()}
    one, other = by_spec["mlp@1", "0.1", 0], by_spec["mlp@1", "0.1", 1]
    replace_record(folder, other.run_id, one.model_copy(update={"spec": other.spec, "run_id": other.run_id}),
                   folder.store.logits_IC(one))
    return other.run_id


def edited_subset(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={
        "data": record.data.model_copy(update={"subset": "0" * 64})}))
    return run_id


def missing_index_file(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    (folder.store.folder / "subsets" / f"{record.data.subset}.json").unlink()
    return run_id


def edited_counts(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={
        "data": record.data.model_copy(update={"train_images": record.data.train_images + 1})}))
    return run_id


def other_dataset(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={
        "data": record.data.model_copy(update={"dataset_sha256": "0" * 64})}))
    return run_id


def resolved_edited(folder: StudyFolder) -> str:
    path = folder.store.folder / "resolved.json"
    path.write_text(path.read_text().replace('"test_images": 360', '"test_images": 36'))
    return "resolved.json"


def family_edited(folder: StudyFolder) -> str:
    path = folder.store.folder / "resolved.json"
    path.write_text(path.read_text().replace('"family": "control"', '"family": "attention"', 1))
    return "resolved.json"


def index_bit(folder: StudyFolder) -> str:
    _, record = a_run(folder)
    path = folder.store.folder / "subsets" / f"{record.data.subset}.json"
    content = json.loads(path.read_text())
    content["train"][3] += 1
    path.write_text(json.dumps(content))
    return path.name


def index_moved_to_validation(folder: StudyFolder) -> str:
    """The drawn images are the same, so the hash is, too."""
    _, record = a_run(folder)
    path = folder.store.folder / "subsets" / f"{record.data.subset}.json"
    content = json.loads(path.read_text())
    content["validation"].append(content["train"].pop())
    path.write_text(json.dumps(content))
    return path.name


def index_renamed(folder: StudyFolder) -> str:
    _, record = a_run(folder, "1")
    path = folder.store.folder / "subsets" / f"{record.data.subset}.json"
    shutil.copy(path, path.with_stem("0" * 64))
    return "0" * 64


def index_torn(folder: StudyFolder) -> str:
    path = next((folder.store.folder / "subsets").iterdir())
    path.write_bytes(path.read_bytes()[:50])
    return path.name


def index_of_another_dataset(folder: StudyFolder) -> str:
    _, record = a_run(folder)
    path = folder.store.folder / "subsets" / f"{record.data.subset}.json"
    path.write_text(path.read_text().replace("digits@1", "digitr@1"))
    return path.name


def index_of_no_share(folder: StudyFolder) -> str:
    _, record = a_run(folder)
    path = folder.store.folder / "subsets" / f"{record.data.subset}.json"
    path.write_text(path.read_text().replace('"share": "0.1"', '"share": "1e999999999"'))
    return path.name


def logits_bit(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    flip(folder.store.runs / run_id / "logits.npy")
    return run_id


def logits_truncated(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    path = folder.store.runs / run_id / "logits.npy"
    path.write_bytes(path.read_bytes()[:-1000])
    return run_id


def accuracy_edited(folder: StudyFolder) -> str:
    """With its own hash recomputed: only the logits tell."""
    run_id, record = a_run(folder)
    assert record.final.test_accuracy is not None
    better = record.final.model_copy(update={"test_accuracy": record.final.test_accuracy + 1 / 360})
    replace_record(folder, run_id, record.model_copy(update={"final": better}))
    return run_id


def loss_edited(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={
        "final": record.final.model_copy(update={"test_loss": record.final.test_loss - 1e-6})}))
    return run_id


def hits_edited(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={"test_correct": record.test_correct[::-1]}))
    return run_id


def logits_of_another_run(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    np.save(folder.store.runs / run_id / "logits.npy", made_logits(load("digits").test_labels, 77))
    return run_id


def metric_of_other_predictions(folder: StudyFolder) -> str:
    by_seed = {record.spec.seed: run_id for run_id, record in Stored.of(folder).predicted.items()}
    first, second = by_seed[0], by_seed[1]
    shutil.copy(kept.path_of(folder.store.runs / first, "balanced_accuracy"),
                kept.path_of(folder.store.runs / second, "balanced_accuracy"))
    return second


def metric_edited(folder: StudyFolder) -> str:
    """With its own hash recomputed."""
    run_id, record = a_run(folder)
    path = kept.path_of(folder.store.runs / run_id, "balanced_accuracy")
    found = kept.read(path, record)
    kept.write(folder.store.runs / run_id, found.model_copy(update={"value": 0.99}))
    return run_id


def metric_bit(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    flip(kept.path_of(folder.store.runs / run_id, "per_class_accuracy"), 100)
    return run_id


def metric_of_a_failed_run(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    (failed,) = folder.store.failed(folder.store.ids())
    shutil.copytree(folder.store.runs / run_id / "metrics", folder.store.runs / failed / "metrics")
    return failed


def environment_missing(folder: StudyFolder) -> str:
    (path,) = (folder.store.folder / "environments").iterdir()
    path.unlink()
    return path.name


def environment_edited(folder: StudyFolder) -> str:
    (path,) = (folder.store.folder / "environments").iterdir()
    path.write_text(path.read_text().replace('"torch": "', '"torch": "9'))
    return path.name


def place_damaged(folder: StudyFolder) -> str:
    (folder.store.folder / "execution.json").write_text("{")
    return "execution.json"


def table_edited(folder: StudyFolder) -> str:
    path = folder.store.folder / "table.md"
    path.write_text(path.read_text().replace("few seeds", "conclusive"))
    return "table.md"


def table_missing(folder: StudyFolder) -> str:
    (folder.store.folder / "table.md").unlink()
    return "table.md"
