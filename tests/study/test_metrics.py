"""Metrics added to runs that ended, and what the export shows of them."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.made_study import made_study, replace_record, with_predictions
from vitbench import registry
from vitbench.datasets import DatasetError, load
from vitbench.metrics import METRICS, MetricError, compute, kept
from vitbench.registry import UnknownName, load_plugin
from vitbench.report import export, frame
from vitbench.report.added import added
from vitbench.study import labelled
from vitbench.study.folder import StudyFolder
from vitbench.study.metrics import add_metric

MINE = """
from vitbench.metrics import METRICS, MetricMeta

@METRICS.add("{name}", MetricMeta(version=1, unit="", better="higher", meaning="the first logit", source="here"))
def {name}(logits_IC, labels_I):
    return {value}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_study(tmp_path_factory.mktemp("metrics") / "made", diverged=1, failed=1).store.folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> StudyFolder:
    shutil.copytree(whole, tmp_path / "made")
    return StudyFolder.open("made", tmp_path)


@pytest.fixture
def own_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Loads a user's metric, in this test only."""
    def loaded(value: str, name: str = "mine") -> None:
        monkeypatch.setattr(METRICS, "_entries", {k: v for k, v in METRICS._entries.items() if k != name})
        monkeypatch.setattr(registry, "_LOADED", {})
        (tmp_path / f"{name}.py").write_text(MINE.format(name=name, value=value))
        load_plugin(tmp_path / f"{name}.py")

    return loaded


def done(folder: StudyFolder) -> list[str]:
    return [p.parent.name for p in sorted(folder.store.runs.glob("*/logits.npy"))]


def values(folder: StudyFolder, name: str) -> dict[str, object]:
    return {i: kept.read(path, folder.store.read(i)).value for i in done(folder)
            if (path := kept.path_of(folder.store.runs / i, name)).exists()}


def the_frame(folder: StudyFolder) -> frame.Frame:
    return frame.build(folder.name, folder.runs, folder.store.read, folder.resolved, folder.study.fit)


@pytest.mark.parametrize("name", METRICS.names())
def test_a_metric_is_computed_for_every_run_from_its_logits_and_the_datasets_labels(folder: StudyFolder,
                                                                                    name: str) -> None:
    found = add_metric(folder, name)
    assert (len(found.computed), len(found.diverged), len(found.failed)) == (10, 1, 1)
    labels_I = load("digits").test_labels
    assert values(folder, name) == {i: compute(name, np.load(folder.store.runs / i / "logits.npy"), labels_I)
                                    for i in done(folder)}


def test_what_is_there_is_not_computed_again(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    add_metric(folder, "balanced_accuracy")
    one, other, third = done(folder)[:3]
    kept.path_of(folder.store.runs / one, "balanced_accuracy").write_text("torn")
    shutil.copy(kept.path_of(folder.store.runs / third, "balanced_accuracy"),
                kept.path_of(folder.store.runs / other, "balanced_accuracy"))
    of_others = folder.store.read(other).predictions_sha256 != folder.store.read(third).predictions_sha256
    again = add_metric(folder, "balanced_accuracy")
    assert sorted(again.computed) == sorted([one, other] if of_others else [one])
    assert len(again.there) == 10 - len(again.computed)
    entry = METRICS.get("balanced_accuracy")
    monkeypatch.setitem(METRICS._entries, "balanced_accuracy", replace(entry, meta=replace(entry.meta, version=2)))
    assert len(add_metric(folder, "balanced_accuracy").computed) == 10
    assert len(add_metric(folder, "balanced_accuracy").there) == 10


def test_a_users_metric_is_computed_again_when_its_file_changes(folder: StudyFolder, own_metric) -> None:
    own_metric("logits_IC[0, 0]")
    assert len(add_metric(folder, "mine").computed) == 10
    assert len(add_metric(folder, "mine").there) == 10
    own_metric("logits_IC[0, 1]")
    assert len(add_metric(folder, "mine").computed) == 10
    assert values(folder, "mine") == {i: float(np.load(folder.store.runs / i / "logits.npy")[0, 1])
                                      for i in done(folder)}


def test_missing_and_damaged_predictions_are_named_and_the_others_computed(folder: StudyFolder) -> None:
    pruned, flipped, torn, gone = done(folder)[:4]
    runs = folder.store.runs
    (runs / pruned / "logits.npy").unlink()
    content = (runs / flipped / "logits.npy").read_bytes()
    (runs / flipped / "logits.npy").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (runs / torn / "record.json").write_text("{")
    shutil.rmtree(runs / gone)
    found = add_metric(folder, "calibration_error")
    assert found.without_predictions == [pruned]
    assert found.damaged.keys() == {flipped, torn}
    assert found.to_do == [gone]
    assert len(found.computed) == 6


def test_a_record_of_another_dataset_is_not_judged_by_these_labels(folder: StudyFolder) -> None:
    victim = done(folder)[0]
    record = folder.store.read(victim)
    replace_record(folder, victim, record.model_copy(update={"data": record.data.model_copy(
        update={"dataset_sha256": "0" * 64})}))
    assert "names a dataset of SHA-256 0000" in add_metric(folder, "balanced_accuracy").damaged[victim]


def test_a_dataset_that_is_not_at_hand_is_a_message(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        raise DatasetError("nowhere")

    monkeypatch.setattr(labelled, "load", nowhere)
    with pytest.raises(DatasetError, match="nowhere"):
        add_metric(folder, "balanced_accuracy")


def test_a_metric_that_would_pass_for_a_column_is_refused(folder: StudyFolder, own_metric) -> None:
    own_metric("1.0", "test_accuracy")
    with pytest.raises(MetricError, match="'test_accuracy' has the name of a column"):
        add_metric(folder, "test_accuracy")
    with pytest.raises(UnknownName):
        add_metric(folder, "accuracies")
    assert list(folder.store.runs.glob("*/metrics")) == []


def test_records_logits_and_a_driver_at_work_are_left_alone(folder: StudyFolder) -> None:
    def state() -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in folder.store.folder.rglob("*")
                if p.is_file() and p.parent.name != "metrics" and p.name != ".lock"}

    before = state()
    with folder.store.locked():
        assert len(add_metric(folder, "balanced_accuracy").computed) == 10
    assert state() == before


KILLED = """
import itertools, os, signal
from pathlib import Path
from vitbench.study.folder import StudyFolder
from vitbench.study.metrics import add_metric

calls, real = itertools.count(), os.fsync
def fsync(descriptor):
    if next(calls) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    real(descriptor)
os.fsync = fsync
add_metric(StudyFolder.open("made", Path({results!r})), "balanced_accuracy")
"""


def test_a_kill_in_the_middle_keeps_what_was_computed_and_the_rest_follows(folder: StudyFolder) -> None:
    code = KILLED.format(results=str(folder.store.folder.parent))
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60,
                           env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    assert ended.returncode == -signal.SIGKILL
    assert len(values(folder, "balanced_accuracy")) == 4
    found = add_metric(folder, "balanced_accuracy")
    assert (len(found.computed), len(found.there)) == (6, 4)


def test_export_shows_numbers_as_columns_and_numbers_of_classes_in_json_only(folder: StudyFolder) -> None:
    for name in METRICS.names():
        add_metric(folder, name)
    made = the_frame(folder)
    columns, remarks = added(made, folder.store.runs)
    assert remarks == []
    assert [c.name for c in columns] == list(METRICS.names())
    docs = {doc.name: doc for doc in export.columns(columns)}
    assert docs["calibration_error"].type == "number"
    assert docs["calibration_error"].unit == "share of images"
    assert docs["per_class_accuracy"].type == "numbers"
    assert docs["per_class_accuracy"].meaning.endswith("only in JSON")
    rows = list(csv.DictReader(io.StringIO(export.csv(made, columns))))
    assert "per_class_accuracy" not in rows[0]
    objects = json.loads(export.json_text(made, columns))
    for row, one in zip(rows, objects, strict=True):
        expected = values(folder, "balanced_accuracy").get(row["run_id"])
        assert row["balanced_accuracy"] == ("" if expected is None else f"{expected:.6g}".rstrip("0"))
        assert one["balanced_accuracy"] == (None if expected is None else pytest.approx(expected, rel=1e-5))
        assert (one["per_class_accuracy"] is None) == (expected is None)
        assert expected is None or len(one["per_class_accuracy"]) == 10
        # The log-likelihood is the record's own test loss: one definition, two ways.
        assert one["negative_log_likelihood"] == (one["test_loss"] if one["outcome"] == "done" else None)
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(export.parquet(made, columns)))
    assert table.column("balanced_accuracy").null_count == 2
    assert table.schema.field("balanced_accuracy").metadata[b"meaning"].endswith(b"(added metric, version 1)")


def test_without_added_metrics_the_export_is_as_it_was(folder: StudyFolder) -> None:
    made = the_frame(folder)
    assert added(made, folder.store.runs) == ((), [])
    assert export.csv(made, ()) == export.csv(made)
    assert export.columns(()) == export.columns()


def test_a_value_of_other_predictions_is_never_shown_and_is_told(folder: StudyFolder) -> None:
    add_metric(folder, "balanced_accuracy")
    redone, torn = done(folder)[:2]
    logits_IC = np.zeros((360, 10), np.float16)
    replace_record(folder, redone, with_predictions(folder.store.read(redone), logits_IC), logits_IC)
    kept.path_of(folder.store.runs / torn, "balanced_accuracy").write_text("{")
    (column,), remarks = added(the_frame(folder), folder.store.runs)
    assert column.values.keys() == set(done(folder)) - {redone, torn}
    assert len(remarks) == 2
    assert any(f"run {redone}: not shown" in line and "of other predictions" in line for line in remarks)
    assert any(f"run {torn}: not shown" in line and "not a whole metric" in line for line in remarks)


def test_values_of_two_versions_are_not_mixed(folder: StudyFolder) -> None:
    add_metric(folder, "balanced_accuracy")
    newer = done(folder)[0]
    path = kept.path_of(folder.store.runs / newer, "balanced_accuracy")
    value = kept.read(path, folder.store.read(newer))
    kept.write(folder.store.runs / newer, value.model_copy(update={"version": 2}))
    (column,), (remark,) = added(the_frame(folder), folder.store.runs)
    assert column.values.keys() == {newer}
    assert remark.startswith("balanced_accuracy: 9 runs have version 1")
