"""Differences of every model from one, against accuracies read from the records."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.made_study import made_logits, made_study
from vitbench.measurement import Measurement
from vitbench.probes import ProbeError
from vitbench.probes._measure import Question
from vitbench.record import RunRecord
from vitbench.study.folder import StudyFolder


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    number = count()
    with pytest.MonkeyPatch.context() as patched:  # so that no two runs have the same hits
        patched.setattr("tests.made_study.made_logits", lambda labels, _seed: made_logits(labels, next(number)))
        return made_study(tmp_path_factory.mktemp("made") / "results" / "made", seeds=4,
                          models=["linear", "mlp:xs", "convnet:xs"])


def measured(study: StudyFolder, **options: object) -> Measurement:
    runs = tuple(run for run in study.runs if run.spec.run_id in study.store.ids())
    return Question("ablation", options, study.store.folder.parent, study, runs).measured(print)


def accuracies(study: StudyFolder, label: str, share: str) -> np.ndarray:
    found = {}
    for run in study.runs:
        record = study.store.read(run.spec.run_id)
        if run.label == label and run.spec.share == share and isinstance(record, RunRecord):
            found[run.spec.seed] = record.final.test_accuracy
    return np.array([found[seed] for seed in sorted(found)])


def test_differences_are_paired_by_seed_with_their_t_interval(study: StudyFolder) -> None:
    found = measured(study)
    assert [(row["label"], row["share"]) for row in found.rows] == [
        (label, share) for share in ("0.02", "0.1", "1") for label in ("mlp:xs", "convnet:xs")]
    for row in found.rows:
        apart = accuracies(study, row["label"], row["share"]) - accuracies(study, "linear", row["share"])
        low, high = stats.t.interval(0.95, 3, apart.mean(), stats.sem(apart))
        assert row["seeds"] == 4
        assert (row["difference"], row["low"], row["high"]) == pytest.approx((apart.mean(), low, high), abs=1e-6)
        assert row["accuracy"] - row["against"] == pytest.approx(row["difference"], abs=1e-5)


def test_another_model_turns_the_sign(study: StudyFolder) -> None:
    forth, back = measured(study), measured(study, against="mlp:xs")
    of = {row["share"]: row["difference"] for row in forth.rows if row["label"] == "mlp:xs"}
    assert {row["share"]: -row["difference"] for row in back.rows if row["label"] == "linear"} == pytest.approx(of)
    assert "mlp:xs" in back.summary


def test_a_label_that_is_not_there_is_refused(study: StudyFolder) -> None:
    with pytest.raises(ProbeError, match=r"against: .* linear, mlp:xs, convnet:xs; found .mlp:x.\..*mlp:xs"):
        measured(study, against="mlp:x")


def test_one_model_alone_has_no_difference(tmp_path: Path) -> None:
    alone = made_study(tmp_path / "results" / "alone", models=["linear"])
    with pytest.raises(ProbeError, match="no other model of the study has two seeds or more in common with 'linear'"):
        measured(alone)
