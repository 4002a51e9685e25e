"""One run: its record, its bits, and how it ends badly."""

import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vitbench import datasets, metrics
from vitbench.models import MODELS
from vitbench.record import Execution, RunRecord
from vitbench.spec import Budget, Recipe, RunSpec
from vitbench.training.run import Finished, run_one

HERE = Execution(device="cpu", threads=1, deterministic=True, environment="0" * 16, code_version="test")
GOLDEN = Path(__file__).parent / "golden_losses.json"


def spec(model: str = "token_transformer", size: str | None = "xs", **values: Any) -> RunSpec:
    given: dict[str, Any] = {"fraction": "0.1", "seed": 0, "recipe": Recipe(batch_size=32),
                             "budget": Budget(unit="steps", amount=12), **values}
    return RunSpec(dataset="digits@1", model=f"{model}@1", size=size, **given)


def numbers(finished: Finished) -> str:
    """All of a record that is no time, place or memory."""
    kept = finished.record.model_dump(mode="json", exclude={"cost", "started", "finished", "execution"})
    return json.dumps([kept, None if finished.logits_IC is None else finished.logits_IC.tobytes().hex()])


FAMILIES = [("token_transformer", "xs"), ("convnet", "xs"), ("resnet", "xs"), ("linear", None), ("mlp", "xs"),
            ("timm/test_resnet", None), ("hybrid", "xs"), ("window_fc", "xs"), ("convnext", "xs"), ("mixer", "xs")]


def test_every_shipped_model_is_tried_for_identical_bits() -> None:
    assert {name.partition("/")[0] for name, _ in FAMILIES} == set(MODELS.names())


@pytest.mark.parametrize(("model", "size"), FAMILIES)
def test_a_run_gives_the_same_bits_alone_and_after_others(model: str, size: str | None) -> None:
    alone = numbers(run_one(spec(model, size), HERE))
    run_one(spec("mlp", "s", seed=7), HERE)
    torch.rand(3)
    assert numbers(run_one(spec(model, size), HERE)) == alone


def test_a_run_gives_the_same_bits_in_a_fresh_process() -> None:
    code = ("from tests.training.test_run import *; import sys;"
            "sys.stdout.write(numbers(run_one(spec('convnet'), HERE)))")
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           env={**os.environ, "PYTHONHASHSEED": "77"})
    assert fresh.stdout == numbers(run_one(spec("convnet"), HERE))


@pytest.mark.parametrize("change", [{"seed": 1}, {"fraction": "0.2"}, {"recipe": Recipe(batch_size=16)},
                                    {"budget": Budget(unit="steps", amount=13)},
                                    {"streams": {"init": 1}}, {"streams": {"order": 1}}, {"streams": {"subset": 1}}])
def test_what_decides_the_numbers_changes_them(change: dict[str, Any]) -> None:
    assert run_one(spec(**change), HERE).record.final != run_one(spec(), HERE).record.final


def test_models_of_one_seed_see_the_same_images_in_the_same_order() -> None:
    records = [run_one(spec(model, size), HERE).record for model, size in FAMILIES]
    assert len({r.data.subset for r in records}) == 1
    assert len({r.curves.images_seen for r in records}) == 1


def test_losses_are_those_of_this_numerics_number() -> None:
    """A change that moves a loss raises NUMERICS in vitbench/spec.py, then writes this file anew:
    VITBENCH_WRITE_GOLDEN=1 python -m pytest tests/training/test_run.py -k numerics_number"""
    now = {f"{model} {size} {recipe.optimizer} {recipe.schedule} {recipe.precision}":
           [float(f"{v:.3g}") for v in run_one(spec(model, size, recipe=recipe), HERE).record.curves.train_loss]
           for model, size in FAMILIES
           for recipe in (Recipe(batch_size=32), Recipe(batch_size=32, optimizer="sgd", schedule="one_cycle"))}
    numerics = spec().numerics
    if os.environ.get("VITBENCH_WRITE_GOLDEN"):
        before = json.loads(GOLDEN.read_text())
        kept = before["losses"] if before["numerics"] == numerics else {}  # of one number, losses may join, none moves
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(losses)}" for name, losses in {**now, **kept}.items())
        GOLDEN.write_text(f'{{"numerics": {numerics}, "losses": {{\n{lines}\n}}}}\n')
    golden = json.loads(GOLDEN.read_text())
    assert golden["numerics"] == numerics
    for name, losses in golden["losses"].items():  # other processors differ in the last bits, not in 2 %
        assert now[name] == pytest.approx(losses, rel=0.02), name
    assert now.keys() == golden["losses"].keys()


def test_the_card_states_the_regularisers_of_the_model() -> None:
    """Protocol rule 8."""
    options = {"dropout": 0.2, "stochastic_depth": 0.3}
    card = run_one(spec(options=options, regime="light"), HERE).record.card
    assert card["regularisers"] == "weight decay 0.05, gradient clip 1, dropout 0.2, stochastic depth 0.3"
    strong = run_one(spec(options=options, regime="strong"), HERE).record.card
    assert strong["regularisers"].endswith("dropout 0.2, label smoothing 0.1, stochastic depth 0.3")


def test_the_record_survives_its_own_text() -> None:
    record = run_one(spec(), HERE).record
    again = RunRecord.from_json(record.to_json().encode())
    assert again.model_dump(exclude={"sha256"}) == record.model_dump(exclude={"sha256"})


def test_final_metrics_follow_from_the_stored_logits() -> None:
    finished = run_one(spec(), HERE)
    labels = datasets.load("digits").test_labels
    assert finished.logits_IC is not None
    assert finished.logits_IC.dtype == np.float16
    assert finished.record.final.test_accuracy == metrics.accuracy(finished.logits_IC, labels)
    assert finished.record.final.test_loss == metrics.cross_entropy(finished.logits_IC, labels)
    assert finished.record.predictions_sha256 == hashlib.sha256(finished.logits_IC.tobytes()).hexdigest()
    hits = finished.record.correct_I()
    assert hits is not None
    assert hits.mean() == finished.record.final.test_accuracy


def test_the_last_curve_point_is_the_final_metric_where_the_sample_is_everything() -> None:
    record = run_one(spec(), HERE).record
    assert record.curves.step[-1] == 12
    assert record.curves.test_loss[-1] == pytest.approx(record.final.test_loss, rel=1e-5)
    assert record.curves.val_accuracy is not None
    assert record.curves.val_accuracy[-1] == pytest.approx(record.final.val_accuracy, rel=1e-5)


def test_without_a_validation_image_in_each_class_there_is_no_validation_column() -> None:
    record = run_one(spec(fraction="0.02"), HERE).record
    assert record.data.val_images == 0
    assert record.data.train_images == record.data.drawn_images
    assert record.curves.val_loss is None
    assert record.final.val_loss is None


def test_a_run_that_diverges_is_a_result_with_its_reason() -> None:
    wild = Recipe(batch_size=32, optimizer="sgd", learning_rate=1e20, gradient_clip=0.0)
    finished = run_one(spec("mlp", "s", recipe=wild), HERE)
    assert finished.record.outcome == "diverged"
    assert "not finite" in (finished.record.reason or "")
    assert finished.record.final.test_accuracy is None
    assert finished.logits_IC is None
    assert RunRecord.from_json(finished.record.to_json().encode()).outcome == "diverged"


def test_epochs_are_rounded_up_to_whole_steps() -> None:
    record = run_one(spec(budget=Budget(unit="epochs", amount=2)), HERE).record
    assert record.curves.step[-1] == math.ceil(2 * record.data.train_images / 32)


def test_images_per_class_draws_so_many() -> None:
    record = run_one(spec(fraction=None, images_per_class=5), HERE).record
    assert (record.data.drawn_images, record.data.train_images, record.data.val_images) == (50, 40, 10)


def test_bf16_trains_and_is_another_run() -> None:
    low = spec(recipe=Recipe(batch_size=32, precision="bf16"))
    assert low.run_id != spec().run_id
    record = run_one(low, HERE).record
    assert record.outcome == "done"
    assert record.final != run_one(spec(), HERE).record.final


def test_training_learns() -> None:
    longer = spec("convnet", budget=Budget(unit="steps", amount=100))
    accuracy = run_one(longer, HERE).record.final.test_accuracy
    assert accuracy is not None
    assert accuracy > 0.75


def test_curves_and_steps_are_reported_while_it_runs() -> None:
    totals: list[int] = []
    points: list[int] = []
    record = run_one(spec(), HERE, on_start=lambda module: totals.append(module.steps),
                     on_point=lambda point: points.append(point.step)).record
    assert totals == [12]
    assert tuple(points) == record.curves.step


def test_the_gradient_clip_bounds_the_step_not_the_recorded_norm() -> None:
    clipped = run_one(spec(recipe=Recipe(batch_size=32, gradient_clip=1e-6)), HERE).record
    assert min(n for n in clipped.curves.gradient_norm if n is not None) > 1e-3


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize(("model", "size"), FAMILIES)
def test_cuda_gives_nearly_the_numbers_of_the_cpu(model: str, size: str | None) -> None:
    there = Execution(**{**HERE.model_dump(), "device": "cuda"})
    one, other = (run_one(spec(model, size), place).record for place in (HERE, there))
    assert one.curves.train_loss == pytest.approx(other.curves.train_loss, rel=0.05)
