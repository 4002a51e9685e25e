"""Models of runs that ended: from kept weights, or trained again and held to the record."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from tests.probes.trained_study import trained_study
from vitbench.record import RunRecord
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder
from vitbench.study.trained import NotTheRun, trained, untrained
from vitbench.training.module import Classifier


def records(folder: StudyFolder) -> list[RunRecord]:
    found = [folder.store.read(run.spec.run_id) for run in folder.runs]
    return [record for record in found if isinstance(record, RunRecord)]


@pytest.fixture
def copy(kept: StudyFolder, tmp_path: Path) -> StudyFolder:
    shutil.copytree(kept.store.folder, tmp_path / "tiny")
    return replace(kept, store=ResultStore(tmp_path / "tiny"))


def forge_weights(folder: StudyFolder, record: RunRecord, weights: bytes) -> RunRecord:
    """The record as if it had been written with these."""
    import hashlib

    place = folder.store.runs / record.run_id
    forged = record.model_copy(update={"weights_sha256": hashlib.sha256(weights).hexdigest()})
    (place / "weights.safetensors").write_bytes(weights)
    (place / "record.json").write_text(forged.to_json())
    return forged


def test_keeping_weights_changes_neither_ids_nor_numbers(bare: StudyFolder, kept: StudyFolder) -> None:
    for one, other in zip(records(bare), records(kept), strict=True):
        assert one.run_id == other.run_id
        assert (one.curves, one.final, one.predictions_sha256) == (other.curves, other.final, other.predictions_sha256)
        assert one.weights_sha256 is None
        assert other.weights_sha256 is not None


def test_kept_weights_are_those_that_training_again_gives_bit_for_bit(bare: StudyFolder, kept: StudyFolder) -> None:
    for one, other in zip(records(bare), records(kept), strict=True):
        again, loaded = trained(bare.store, one), trained(kept.store, other)
        assert again.how == "trained again; agrees with its record exactly"
        assert loaded.how == "kept weights; stored logits of 32 test images agree"
        first, second = again.module.model.state_dict(), loaded.module.model.state_dict()
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)
        assert not loaded.module.training
        assert not again.module.training
        stored_IC = kept.store.logits_IC(other)
        assert np.array_equal(loaded.module.logits(loaded.module.data.parts["test"]), stored_IC)


def test_the_untrained_model_is_the_one_that_the_run_began_with(bare: StudyFolder) -> None:
    record, first = records(bare)[0], {}

    def look(module: Classifier, step: int) -> None:
        if step == 0:
            first.update({name: value.clone() for name, value in module.model.state_dict().items()})

    ended = trained(bare.store, record, look)
    began = untrained(record).module.model.state_dict()
    assert all(torch.equal(began[name], value) for name, value in first.items())
    assert any(not torch.equal(began[name], value) for name, value in ended.module.model.state_dict().items())


def test_a_look_at_every_curve_point_changes_nothing_of_the_run(kept: StudyFolder) -> None:
    """It draws, takes gradients and sees normalisation layers; the run still agrees with its record exactly."""
    for record in records(kept):
        steps = []

        def look(module: Classifier, step: int, steps: list[int] = steps) -> None:
            assert not module.training
            images = module.data.normalised(module.data.train.images[:8])
            (module(images).sum() * torch.randn(())).backward()
            torch.manual_seed(step)
            steps.append(step)

        found = trained(kept.store, record, look)
        assert steps == [0, *record.curves.step]
        assert found.how == "trained again; agrees with its record exactly"  # though weights are kept


def test_a_run_that_differs_from_its_record_is_refused_with_what_differs(bare: StudyFolder) -> None:
    record = records(bare)[0]
    other = record.model_copy(update={"final": record.final.model_copy(update={"train_loss": 1.25})})
    with pytest.raises(NotTheRun, match=rf"run {record.run_id}, trained again, differs .*final.train_loss 1.25, now"):
        trained(bare.store, other)


def test_a_run_of_another_version_is_not_trained(bare: StudyFolder) -> None:
    record = records(bare)[0]
    other = record.model_copy(update={"spec": record.spec.changed(numerics=record.spec.numerics + 1)})
    with pytest.raises(NotTheRun, match="computed with numerics 2; this version's are 1"):
        trained(bare.store, other)


def test_weights_that_were_changed_are_refused(copy: StudyFolder) -> None:
    record = records(copy)[0]
    path = copy.store.runs / record.run_id / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(NotTheRun, match=r"weights.safetensors does not hold the weights .*; remove the file"):
        trained(copy.store, record)
    path.unlink()
    assert trained(copy.store, record).how.startswith("trained again")


def test_weights_that_give_other_logits_are_refused(copy: StudyFolder) -> None:
    record = records(copy)[0]
    weights = safetensors.torch.load(copy.store.weights(record))
    weights["head.bias"] += 1 + torch.arange(10) / 10
    forged = forge_weights(copy, record, safetensors.torch.save(weights))
    with pytest.raises(NotTheRun, match=r"give other logits than it stored: they differ by \d\.\d+ of themselves"):
        trained(copy.store, forged)


def test_logits_that_are_cut_name_their_run(copy: StudyFolder) -> None:
    record = records(copy)[0]
    path = copy.store.runs / record.run_id / "logits.npy"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(NotTheRun, match=rf"run {record.run_id}: "):
        trained(copy.store, record)


@pytest.mark.parametrize("fault", ["no safetensors", "other names", "no number"])
def test_weights_that_do_not_fit_are_refused(copy: StudyFolder, fault: str) -> None:
    record = records(copy)[0]
    weights = safetensors.torch.load(copy.store.weights(record))
    if fault == "no number":
        weights["head.bias"] *= torch.nan
    elif fault == "other names":
        weights["tail.bias"] = weights.pop("head.bias")
    content = b"{}" if fault == "no safetensors" else safetensors.torch.save(weights)
    message = "other logits" if fault == "no number" else "its kept weights do not fit token_transformer@"
    with pytest.raises(NotTheRun, match=message):
        trained(copy.store, forge_weights(copy, record, content))


def test_images_are_the_same_for_every_run_and_normalised_by_its_own(kept: StudyFolder) -> None:
    (one, labels_N), (other, same_N) = (trained(kept.store, record).images("test", 20) for record in records(kept))
    assert one.shape == (20, 1, 8, 8)
    assert torch.equal(one, other)
    assert np.array_equal(labels_N, same_N)
    assert set(labels_N) == set(range(10))


def test_a_diverged_run_keeps_no_weights(tmp_path: Path) -> None:
    wild = trained_study(tmp_path / "wild", models=["mlp:xs"], keep=["weights"],
                         recipe={"optimizer": "sgd", "learning_rate": 1e30, "gradient_clip": 0})
    (record,) = records(wild)
    assert record.outcome == "diverged"
    assert record.weights_sha256 is None
    assert not (wild.store.runs / record.run_id / "weights.safetensors").exists()
