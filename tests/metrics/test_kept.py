"""Metric values beside records: whole or absent, and of the record's predictions or not read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.made_records import LOGITS_IC, a_failure, a_record
from vitbench.metrics import kept
from vitbench.metrics.kept import MetricValue
from vitbench.record import DamagedRecord, RunRecord
from vitbench.spec import canonical_json, sha256_json
from vitbench.store import ResultStore

HASH = a_record().predictions_sha256


def a_value(**changes: Any) -> MetricValue:
    return MetricValue(**{"name": "balanced_accuracy", "version": 1, "unit": "share of images", "meaning": "mean",
                          "per_class": False, "value": 0.75, "predictions_sha256": HASH, **changes})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    store = ResultStore(tmp_path / "trial")
    store.prepare()
    store.write(a_record(), LOGITS_IC)
    return store.runs / a_record().run_id


@pytest.mark.parametrize("changes", [{}, {"value": None}, {"value": (0.5, None, 1.0), "per_class": True}])
def test_a_value_comes_back(run: Path, changes: dict[str, Any]) -> None:
    kept.write(run, a_value(**changes))
    (path,) = kept.files(run)
    assert path == kept.path_of(run, "balanced_accuracy")
    found = kept.read(path, a_record())
    assert found.model_copy(update={"sha256": ""}) == a_value(**changes)
    kept.write(run, a_value(version=2))
    assert kept.read(path, a_record()).version == 2


def resealed(path: Path, **changes: object) -> None:
    content = {k: v for k, v in json.loads(path.read_text()).items() if k != "sha256"} | changes
    path.write_text(canonical_json({**content, "sha256": sha256_json(content)}))


@pytest.mark.parametrize(("change", "message"), [
    (lambda path: path.write_bytes(path.read_bytes()[:-20]), "metrics/balanced_accuracy.json: not a whole metric"),
    (lambda path: path.write_bytes(path.read_bytes().replace(b"0.75", b"0.95")), "content hash"),
    (lambda path: path.write_bytes(b"\xff"), "not a whole metric"),
    (lambda path: path.write_bytes(b"[" * 2_000_000), "not a whole metric"),
    (lambda path: resealed(path, predictions_sha256="e" * 64), "is of other predictions than the record names"),
    (lambda path: resealed(path, name="calibration_error"), "holds the metric 'calibration_error'"),
    (lambda path: resealed(path, value="much"), "no metric of this version"),
    (lambda path: (path.unlink(), path.mkdir()), "Is a directory"),
])
def test_what_is_not_the_records_metric_is_not_read(run: Path, change: Any, message: str) -> None:
    kept.write(run, a_value())
    path = kept.path_of(run, "balanced_accuracy")
    change(path)
    with pytest.raises(DamagedRecord, match=message):
        kept.read(path, a_record())


@pytest.mark.parametrize("ended", [a_failure(), a_record(outcome="diverged", predictions_sha256=None)])
def test_a_run_without_predictions_has_no_metric(run: Path, ended: Any) -> None:
    kept.write(run, a_value())
    with pytest.raises(DamagedRecord, match="other predictions"):
        kept.read(kept.path_of(run, "balanced_accuracy"), ended)


def test_a_run_that_was_moved_away_is_not_made_again(run: Path) -> None:
    store = ResultStore(run.parents[1])
    kept.write(run, a_value())
    aside = store.set_aside(run.name, "replaced")
    with pytest.raises(FileNotFoundError):
        kept.write(run, a_value(version=2))
    assert store.ids() == set()
    assert kept.read(kept.path_of(aside, "balanced_accuracy"), a_record()).version == 1


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("redone", [False, True])
def test_a_driver_that_moves_the_run_away_in_the_middle_is_not_disturbed(run: Path, monkeypatch: pytest.MonkeyPatch,
                                                                         step: int, redone: bool) -> None:
    """Whatever is being written, no run's folder appears that is no run, and a run done again is as it was written."""
    store, touches = ResultStore(run.parents[1]), iter(range(100))

    def meanwhile(real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(touches) == step:
                store.set_aside(run.name, "replaced")
                if redone:
                    store.write(a_record(finished="2026-01-02T00:00:00Z"), LOGITS_IC)
            return real(*arguments, **options)
        return call

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", meanwhile(os.fsync))
        for name in ("mkdir", "open", "replace"):
            patch.setattr(Path, name, meanwhile(getattr(Path, name)))
        try:
            kept.write(run, a_value())
        except FileNotFoundError:
            assert not (redone and step == 0)
    assert store.ids() == ({run.name} if redone else set())
    if redone:
        again = store.read(run.name)
        assert isinstance(again, RunRecord)
        assert again.finished == "2026-01-02T00:00:00Z"
        assert all(kept.read(path, again).value == 0.75 for path in kept.files(run))


def test_a_write_that_is_broken_off_leaves_the_old_value(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write(run, a_value())

    def killed(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        kept.write(run, a_value(version=2))
    (path,) = kept.files(run)  # the half-written one begins with a dot
    assert kept.read(path, a_record()).version == 1
