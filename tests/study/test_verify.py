"""What verifying finds: each kind of fault planted once, and nothing in a study that is as it was written."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.made_study import made_study, replace_record, with_predictions, write_table
from tests.study import planted
from vitbench.datasets import DATASETS, DatasetError, load
from vitbench.metrics import kept
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


@pytest.mark.parametrize(("kind", "plant", "words"), [
    ("records", planted.record_bit, "content hash does not match"),
    ("records", planted.truncated_record, "not a whole record"),
    ("records", planted.swapped_folders, "belongs to run"),
    ("records", planted.edited_seed, "does not follow from its configuration"),
    ("records", planted.failure_bit, "content hash does not match"),
    ("records", planted.diverged_with_numbers, "says diverged and has final metrics"),
    ("records", planted.done_without_predictions, "says done and lacks"),
    ("subsets", planted.all_of_another_seed, "share 0.1 and seed 1 give"),
    ("subsets", planted.edited_subset, "names subset 0000"),
    ("subsets", planted.missing_index_file, "is missing"),
    ("datasets", planted.edited_counts, "says train_images 121 where 120"),
    ("datasets", planted.other_dataset, "names a dataset of SHA-256 0000"),
    ("datasets", planted.resolved_edited, "test_images 36 where 360 follows"),
    ("datasets", planted.family_edited, "linear attention where control follows"),
    ("index files", planted.index_bit, "does not hash to its name"),
    ("index files", planted.index_moved_to_validation, "is not what dataset digits@1, share 0.1 and seed "),
    ("index files", planted.index_renamed, "does not hash to its name"),
    ("index files", planted.index_torn, "is no index file"),
    ("index files", planted.index_of_another_dataset, "is of dataset digitr@1, and its records of digits@1"),
    ("index files", planted.index_of_no_share, "is no index file"),
    ("predictions", planted.logits_bit, "does not hold the logits that the record names"),
    ("predictions", planted.logits_truncated, "logits.npy cannot be read"),
    ("predictions", planted.accuracy_edited, "final test_accuracy"),
    ("predictions", planted.loss_edited, "final test_loss"),
    ("predictions", planted.hits_edited, "other hits than follow"),
    ("predictions", planted.logits_of_another_run, "does not hold the logits"),
    ("metrics", planted.metric_of_other_predictions, "is of other predictions than the record names"),
    ("metrics", planted.metric_edited, "holds 0.99 where"),
    ("metrics", planted.metric_bit, "content hash"),
    ("metrics", planted.metric_of_a_failed_run, "is of other predictions"),
    ("environments", planted.environment_missing, "is missing"),
    ("environments", planted.environment_edited, "does not hash"),
    ("environments", planted.place_damaged, "is damaged"),
    ("table", planted.table_edited, "is not what the records give"),
    ("table", planted.table_missing, "No such file"),
], ids=lambda value: value.__name__ if callable(value) else "")
def test_a_planted_fault_is_caught_and_named(folder: StudyFolder, kind: str, plant: planted.Plant, words: str) -> None:
    named = plant(folder)
    found = faults(StudyFolder.open("made", folder.store.folder.parent))
    assert any(named in fault and words in fault and "; " in fault for fault in found[kind]), found


def test_a_forgery_that_fits_in_every_file_is_only_caught_by_training_again(folder: StudyFolder) -> None:
    """Why there is --rerun: tests/cli/test_verify.py shows that it catches this one."""
    run_id, record = planted.a_run(folder)
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
    planted.flip(fewer.store.runs / orphan / "logits.npy")
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
    run_id, _ = planted.a_run(folder)
    path = folder.store.runs / run_id / "record.json"
    content = {k: v for k, v in json.loads(path.read_text()).items() if k != "sha256"} | {"schema_number": 2}
    path.write_text(canonical_json({**content, "sha256": sha256_json(content)}))
    found = checked(folder)["records"]
    assert found.faults == []
    assert any("another version" in why for why in found.unchecked)


def test_without_the_dataset_hashes_are_still_checked(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str, _options: object) -> None:
        raise DatasetError(f"dataset {name!r} is nowhere")

    run_id = planted.logits_bit(folder)
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
    run_id, record = planted.a_run(folder)
    place = folder.store.runs / run_id
    found = kept.read(kept.path_of(place, "balanced_accuracy"), record)
    kept.write(place, found.model_copy(update={"version": 7, "value": 0.123}))
    check = checked(folder)["metrics"]
    assert check.faults == []
    assert any("has version 7 of the metric" in why for why in check.unchecked)


def test_a_stream_set_apart_is_derived_from_its_own_seed(folder: StudyFolder) -> None:
    """A record whose subset seed is not the run's."""
    run_id, record = planted.a_run(folder)
    other = next(r for r in Stored.of(folder).predicted.values()
                 if r.spec.share == "0.1" and r.spec.seed != record.spec.seed)
    spec = RunSpec.model_validate(record.spec.model_dump() | {"streams": {"subset": other.spec.seed}})
    crossed = record.model_copy(update={"spec": spec, "run_id": spec.run_id, "data": record.data.model_copy(
        update={"subset": other.data.subset})})
    shutil.copytree(folder.store.runs / run_id, folder.store.runs / spec.run_id)
    replace_record(folder, spec.run_id, crossed)
    assert faults(folder) == {}


def test_a_study_whose_names_are_of_other_data_is_told_and_its_table_left_alone(folder: StudyFolder) -> None:
    path = folder.store.folder / "resolved.json"
    path.write_text(path.read_text().replace('"digits@1"', '"digitz@1"', 1))
    opened = StudyFolder.open(folder.name, folder.store.folder.parent)
    checks = checked(opened)
    assert any("resolved.json: names digitz@1, and study.yaml digits" in fault for fault in checks["datasets"].faults)
    assert checks["table"].faults == []
    assert any("resolved.json is at fault" in why for why in checks["table"].unchecked)
