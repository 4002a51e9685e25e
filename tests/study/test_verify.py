"""What verifying finds: each kind of fault planted once, and nothing in a study that is as it was written."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.made_study import made_logits, made_study, replace_record, with_predictions, write_table
from vitbench.datasets import DATASETS, DatasetError, load
from vitbench.metrics import kept
from vitbench.record import RunRecord
from vitbench.spec import RunSpec, canonical_json, sha256_json
from vitbench.study import labelled
from vitbench.study.findings import Check, Stored
from vitbench.study.folder import StudyFolder
from vitbench.study.metrics import add_metric
from vitbench.study.verify import verify


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of twelve runs, one of which diverged and one failed, with two added metrics."""
    folder = made_study(tmp_path_factory.mktemp("verify") / "made", diverged=1, failed=1)
    for name in ("balanced_accuracy", "per_class_accuracy"):
        assert len(add_metric(folder, name).computed) == 10
    return folder.store.folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> StudyFolder:
    shutil.copytree(whole, tmp_path / "made")
    return StudyFolder.open("made", tmp_path)


def checked(folder: StudyFolder) -> dict[str, Check]:
    return {check.kind: check for check in verify(Stored.of(folder))}


def faults(folder: StudyFolder) -> dict[str, list[str]]:
    return {kind: check.faults for kind, check in checked(folder).items() if check.faults}


def a_run(folder: StudyFolder, share: str = "0.1") -> tuple[str, RunRecord]:
    """A run that is done, of a share with validation and a listed subset."""
    records = Stored.of(folder).predicted
    return next((i, record) for i, record in records.items() if record.spec.share == share)


def flip(path: Path, position: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_study_as_it_was_written_is_clean(folder: StudyFolder) -> None:
    found = checked(folder)
    assert faults(folder) == {}
    assert {kind: check.checked for kind, check in found.items()} == {
        "records": 12, "environments": 1, "datasets": 12, "subsets": 11, "index files": 5, "predictions": 10,
        "metrics": 20, "table": 1}
    assert not any(check.unchecked or check.blocked for check in found.values())


def test_nothing_is_written_and_a_read_only_folder_can_be_verified(folder: StudyFolder) -> None:
    def state() -> dict[Path, tuple[int, bytes]]:
        return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.store.folder.rglob("*") if p.is_file()}

    before = state()
    checked(folder)
    assert state() == before


Plant = Callable[[StudyFolder], str]  # plants a fault; what must be named


def _record_bit(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    flip(folder.store.runs / run_id / "record.json", 200)
    return run_id


def _truncated_record(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    path = folder.store.runs / run_id / "record.json"
    path.write_bytes(path.read_bytes()[:-100])
    return run_id


def _swapped_folders(folder: StudyFolder) -> str:
    first, second = list(Stored.of(folder).predicted)[:2]
    runs = folder.store.runs
    (runs / first).rename(runs / "x")
    (runs / second).rename(runs / first)
    (runs / "x").rename(runs / second)
    return first


def _edited_seed(folder: StudyFolder) -> str:
    """With its own hash recomputed."""
    run_id, _ = a_run(folder)
    path = folder.store.runs / run_id / "record.json"
    content = {k: v for k, v in json.loads(path.read_text()).items() if k != "sha256"}
    content["spec"]["seed"] += 1
    path.write_text(canonical_json({**content, "sha256": sha256_json(content)}))
    return run_id


def _failure_bit(folder: StudyFolder) -> str:
    (path,) = folder.store.runs.glob("*/failure.json")
    path.write_bytes(path.read_bytes().replace(b"out of memory", b"out of cookies"))
    return path.parent.name


def _diverged_with_numbers(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={"outcome": "diverged", "reason": "unlucky"}))
    return run_id


def _done_without_predictions(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={"predictions_sha256": None, "test_correct": None}))
    return run_id


def _all_of_another_seed(folder: StudyFolder) -> str:
    """Seed, run id, folder and hash edited to fit each other: the study's seed 1, filled from seed 0."""
    by_spec = {(r.spec.model, r.spec.share, r.spec.seed): r for r in Stored.of(folder).predicted.values()}
    one, other = by_spec["mlp@1", "0.1", 0], by_spec["mlp@1", "0.1", 1]
    replace_record(folder, other.run_id, one.model_copy(update={"spec": other.spec, "run_id": other.run_id}),
                   folder.store.logits_IC(one))
    return other.run_id


def _edited_subset(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={
        "data": record.data.model_copy(update={"subset": "0" * 64})}))
    return run_id


def _missing_index_file(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    (folder.store.folder / "subsets" / f"{record.data.subset}.json").unlink()
    return run_id


def _edited_counts(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={
        "data": record.data.model_copy(update={"train_images": record.data.train_images + 1})}))
    return run_id


def _other_dataset(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={
        "data": record.data.model_copy(update={"dataset_sha256": "0" * 64})}))
    return run_id


def _resolved_edited(folder: StudyFolder) -> str:
    path = folder.store.folder / "resolved.json"
    path.write_text(path.read_text().replace('"test_images": 360', '"test_images": 36'))
    return "resolved.json"


def _family_edited(folder: StudyFolder) -> str:
    path = folder.store.folder / "resolved.json"
    path.write_text(path.read_text().replace('"family": "control"', '"family": "attention"', 1))
    return "resolved.json"


def _index_bit(folder: StudyFolder) -> str:
    _, record = a_run(folder)
    path = folder.store.folder / "subsets" / f"{record.data.subset}.json"
    content = json.loads(path.read_text())
    content["train"][3] += 1
    path.write_text(json.dumps(content))
    return path.name


def _index_moved_to_validation(folder: StudyFolder) -> str:
    """The drawn images are the same, so the hash is, too."""
    _, record = a_run(folder)
    path = folder.store.folder / "subsets" / f"{record.data.subset}.json"
    content = json.loads(path.read_text())
    content["validation"].append(content["train"].pop())
    path.write_text(json.dumps(content))
    return path.name


def _index_renamed(folder: StudyFolder) -> str:
    _, record = a_run(folder, "1")
    path = folder.store.folder / "subsets" / f"{record.data.subset}.json"
    shutil.copy(path, path.with_stem("0" * 64))
    return "0" * 64


def _index_torn(folder: StudyFolder) -> str:
    path = next((folder.store.folder / "subsets").iterdir())
    path.write_bytes(path.read_bytes()[:50])
    return path.name


def _logits_bit(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    flip(folder.store.runs / run_id / "logits.npy")
    return run_id


def _logits_truncated(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    path = folder.store.runs / run_id / "logits.npy"
    path.write_bytes(path.read_bytes()[:-1000])
    return run_id


def _accuracy_edited(folder: StudyFolder) -> str:
    """With its own hash recomputed: only the logits tell."""
    run_id, record = a_run(folder)
    assert record.final.test_accuracy is not None
    better = record.final.model_copy(update={"test_accuracy": record.final.test_accuracy + 1 / 360})
    replace_record(folder, run_id, record.model_copy(update={"final": better}))
    return run_id


def _loss_edited(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={
        "final": record.final.model_copy(update={"test_loss": record.final.test_loss - 1e-6})}))
    return run_id


def _hits_edited(folder: StudyFolder) -> str:
    run_id, record = a_run(folder)
    replace_record(folder, run_id, record.model_copy(update={"test_correct": record.test_correct[::-1]}))
    return run_id


def _logits_of_another_run(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    np.save(folder.store.runs / run_id / "logits.npy", made_logits(load("digits").test_labels, 77))
    return run_id


def _metric_of_other_predictions(folder: StudyFolder) -> str:
    by_seed = {record.spec.seed: run_id for run_id, record in Stored.of(folder).predicted.items()}
    first, second = by_seed[0], by_seed[1]
    shutil.copy(kept.path_of(folder.store.runs / first, "balanced_accuracy"),
                kept.path_of(folder.store.runs / second, "balanced_accuracy"))
    return second


def _metric_edited(folder: StudyFolder) -> str:
    """With its own hash recomputed."""
    run_id, record = a_run(folder)
    path = kept.path_of(folder.store.runs / run_id, "balanced_accuracy")
    found = kept.read(path, record)
    kept.write(folder.store.runs / run_id, found.model_copy(update={"value": 0.99}))
    return run_id


def _metric_bit(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    flip(kept.path_of(folder.store.runs / run_id, "per_class_accuracy"), 100)
    return run_id


def _metric_of_a_failed_run(folder: StudyFolder) -> str:
    run_id, _ = a_run(folder)
    (failed,) = folder.store.failed(folder.store.ids())
    shutil.copytree(folder.store.runs / run_id / "metrics", folder.store.runs / failed / "metrics")
    return failed


def _environment_missing(folder: StudyFolder) -> str:
    (path,) = (folder.store.folder / "environments").iterdir()
    path.unlink()
    return path.name


def _environment_edited(folder: StudyFolder) -> str:
    (path,) = (folder.store.folder / "environments").iterdir()
    path.write_text(path.read_text().replace('"torch": "', '"torch": "9'))
    return path.name


def _place_damaged(folder: StudyFolder) -> str:
    (folder.store.folder / "execution.json").write_text("{")
    return "execution.json"


def _table_edited(folder: StudyFolder) -> str:
    path = folder.store.folder / "table.md"
    path.write_text(path.read_text().replace("few seeds", "conclusive"))
    return "table.md"


def _table_missing(folder: StudyFolder) -> str:
    (folder.store.folder / "table.md").unlink()
    return "table.md"


@pytest.mark.parametrize(("kind", "plant", "words"), [
    ("records", _record_bit, "content hash does not match"), ("records", _truncated_record, "not a whole record"),
    ("records", _swapped_folders, "belongs to run"),
    ("records", _edited_seed, "does not follow from its configuration"),
    ("records", _failure_bit, "content hash does not match"),
    ("records", _diverged_with_numbers, "says diverged and has final metrics"),
    ("records", _done_without_predictions, "says done and lacks"),
    ("subsets", _all_of_another_seed, "share 0.1 and seed 1 give"), ("subsets", _edited_subset, "names subset 0000"),
    ("subsets", _missing_index_file, "is missing"), ("datasets", _edited_counts, "says train_images 121 where 120"),
    ("datasets", _other_dataset, "names a dataset of SHA-256 0000"),
    ("datasets", _resolved_edited, "test_images 36 where 360 follows"),
    ("datasets", _family_edited, "linear attention where control follows"),
    ("index files", _index_bit, "does not hash to its name"),
    ("index files", _index_moved_to_validation, "is not what dataset digits@1, share 0.1 and seed "),
    ("index files", _index_renamed, "does not hash to its name"), ("index files", _index_torn, "is no index file"),
    ("predictions", _logits_bit, "does not hold the logits that the record names"),
    ("predictions", _logits_truncated, "logits.npy cannot be read"),
    ("predictions", _accuracy_edited, "final test_accuracy"), ("predictions", _loss_edited, "final test_loss"),
    ("predictions", _hits_edited, "other hits than follow"),
    ("predictions", _logits_of_another_run, "does not hold the logits"),
    ("metrics", _metric_of_other_predictions, "is of other predictions than the record names"),
    ("metrics", _metric_edited, "holds 0.99 where"), ("metrics", _metric_bit, "content hash"),
    ("metrics", _metric_of_a_failed_run, "is of other predictions"),
    ("environments", _environment_missing, "is missing"), ("environments", _environment_edited, "does not hash"),
    ("environments", _place_damaged, "is damaged"), ("table", _table_edited, "is not what the records give"),
    ("table", _table_missing, "No such file"),
], ids=lambda value: value.__name__.strip("_") if callable(value) else "")
def test_a_planted_fault_is_caught_and_named(folder: StudyFolder, kind: str, plant: Plant, words: str) -> None:
    named = plant(folder)
    found = faults(StudyFolder.open("made", folder.store.folder.parent))
    assert any(named in fault and words in fault and "; " in fault for fault in found[kind]), found


def test_a_forgery_that_fits_in_every_file_is_only_caught_by_training_again(folder: StudyFolder) -> None:
    """Why there is --rerun: tests/cli/test_verify.py shows that it catches this one."""
    run_id, record = a_run(folder)
    better = (8 * np.eye(10)[load("digits").test_labels]).astype(np.float16)
    replace_record(folder, run_id, with_predictions(record, better), better)
    shutil.rmtree(folder.store.runs / run_id / "metrics")
    write_table(folder)
    assert faults(folder) == {}


def test_runs_of_an_earlier_form_are_verified_too(folder: StudyFolder) -> None:
    home = folder.store.folder
    study = home / "study.yaml"
    study.write_text(study.read_text().replace("- 0\n- 1\n", "- 0\n"))
    fewer = StudyFolder.open("made", home.parent)
    write_table(fewer)
    orphan = sorted(fewer.orphans() & Stored.of(fewer).predicted.keys())[0]
    assert faults(fewer) == {}
    flip(fewer.store.runs / orphan / "logits.npy")
    assert any(orphan in fault for fault in faults(fewer)["predictions"])


def test_pruned_logits_are_no_fault_and_are_told(folder: StudyFolder) -> None:
    for path in folder.store.runs.glob("*/logits.npy"):
        path.unlink()
    found = checked(folder)
    assert faults(folder) == {}
    ((why, runs),) = found["predictions"].unchecked.items()
    assert "keeps no logits" in why
    assert len(runs) == 10
    assert found["predictions"].checked == 0
    assert not found["predictions"].blocked


def test_a_record_of_another_version_is_told_and_is_no_fault(folder: StudyFolder) -> None:
    run_id, _ = a_run(folder)
    path = folder.store.runs / run_id / "record.json"
    content = {k: v for k, v in json.loads(path.read_text()).items() if k != "sha256"} | {"schema_number": 2}
    path.write_text(canonical_json({**content, "sha256": sha256_json(content)}))
    found = checked(folder)["records"]
    assert found.faults == []
    assert any("another version" in why for why in found.unchecked)


def test_without_the_dataset_hashes_are_still_checked(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        raise DatasetError(f"dataset {name!r} is nowhere")

    run_id = _logits_bit(folder)
    monkeypatch.setattr(labelled, "load", nowhere)
    found = checked(folder)
    assert run_id in found["predictions"].faults[0]
    for kind in ("datasets", "subsets", "predictions", "metrics"):
        assert found[kind].blocked
        assert "dataset 'digits' is nowhere" in found[kind].unchecked


def test_a_dataset_of_another_version_is_not_compared(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = DATASETS.get("digits")
    monkeypatch.setitem(DATASETS._entries, "digits", replace(entry, meta=replace(entry.meta, version=2)))
    found = checked(folder)["subsets"]
    assert found.faults == []
    assert "the records name dataset digits@1; this version of vitbench has digits@2" in found.unchecked


def test_a_metric_of_an_older_version_is_not_compared(folder: StudyFolder) -> None:
    run_id, record = a_run(folder)
    place = folder.store.runs / run_id
    found = kept.read(kept.path_of(place, "balanced_accuracy"), record)
    kept.write(place, found.model_copy(update={"version": 7, "value": 0.123}))
    check = checked(folder)["metrics"]
    assert check.faults == []
    assert any("has version 7 of the metric" in why for why in check.unchecked)


def test_a_stream_set_apart_is_derived_from_its_own_seed(folder: StudyFolder) -> None:
    """A record whose subset seed is not the run's."""
    run_id, record = a_run(folder)
    other = next(r for r in Stored.of(folder).predicted.values()
                 if r.spec.share == "0.1" and r.spec.seed != record.spec.seed)
    spec = RunSpec.model_validate(record.spec.model_dump() | {"streams": {"subset": other.spec.seed}})
    crossed = record.model_copy(update={"spec": spec, "run_id": spec.run_id, "data": record.data.model_copy(
        update={"subset": other.data.subset})})
    shutil.copytree(folder.store.runs / run_id, folder.store.runs / spec.run_id)
    replace_record(folder, spec.run_id, crossed)
    assert faults(folder) == {}
