"""Runs under a regime: their bits, their losses, their card; and what is measured stays clean."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.test_run import HERE, numbers, spec
from vitbench import datasets, models, regimes, subset
from vitbench.regimes import REGIME_VERSIONS
from vitbench.spec import Budget, ImageSpec, Recipe, Regime, RunSpec
from vitbench.streams import Streams
from vitbench.training.augment import Augmentation
from vitbench.training.data import Resident
from vitbench.training.module import Classifier
from vitbench.training.run import run_one

GOLDEN = Path(__file__).parent / "golden_regimes.json"
CPU = torch.device("cpu")
TRIED = [("token_transformer", "xs"), ("convnet", "xs")]
REGIMES: list[Regime] = ["light", "strong"]


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(("model", "size"), TRIED)
def test_a_run_gives_the_same_bits_alone_and_after_others(model: str, size: str, regime: Regime) -> None:
    alone = numbers(run_one(spec(model, size, regime=regime), HERE))
    run_one(spec("mlp", "s", seed=7, regime="strong"), HERE)
    torch.rand(3)
    assert numbers(run_one(spec(model, size, regime=regime), HERE)) == alone


def test_regimes_and_augmentation_streams_make_other_numbers() -> None:
    changes: list[dict[str, Any]] = [{}, {"regime": "light"}, {"regime": "strong"},
                                     {"regime": "strong", "streams": {"augment": 5}}]
    assert len({numbers(run_one(spec(**change), HERE)) for change in changes}) == 4
    plain, other = (run_one(spec(streams={"augment": augment}), HERE).record for augment in (None, 5))
    assert plain.final == other.final  # nothing draws from it in `none`


def _losses(regime: Regime) -> dict[str, list[float]]:
    fast = {"recipe": Recipe(batch_size=32, learning_rate=0.006), "budget": Budget(unit="steps", amount=30)}
    runs = {f"{model} {size}": run_one(spec(model, size, regime=regime, **fast), HERE) for model, size in TRIED}
    return {name: [float(f"{v:.3g}") for v in run.record.curves.train_loss] for name, run in runs.items()}


def _same(one: dict[str, list[float]], other: dict[str, list[float]]) -> bool:
    """Other processors differ in the last bits, not in 2 %."""
    return all(one[name] == pytest.approx(other[name], rel=0.02) for name in other)


def test_losses_are_those_of_this_version_of_a_regime() -> None:
    """A change that moves a loss of a regime raises its REGIME_VERSIONS in vitbench/regimes.py, then writes this file
    anew: VITBENCH_WRITE_GOLDEN=1 python -m pytest tests/training/test_regime_runs.py -k this_version"""
    now = {regime: {"version": REGIME_VERSIONS[regime], "numerics": spec().numerics, "losses": _losses(regime)}
           for regime in REGIMES}
    if os.environ.get("VITBENCH_WRITE_GOLDEN"):
        before = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
        kept = {regime: told for regime, told in before.items()
                if all(told[key] == now[regime][key] for key in ("version", "numerics"))}
        lines = ",\n".join(f"  {json.dumps(regime)}: {json.dumps(told)}" for regime, told in {**now, **kept}.items())
        GOLDEN.write_text(f"{{\n{lines}\n}}\n")
    golden = json.loads(GOLDEN.read_text())
    assert golden.keys() == now.keys()
    for regime, told in golden.items():
        assert (told["version"], told["numerics"]) == (now[regime]["version"], now[regime]["numerics"])
        assert _same(now[regime]["losses"], told["losses"]), regime
    assert not any(_same(golden[a]["losses"], golden[b]["losses"]) for a, b in (REGIMES, reversed(REGIMES)))


def test_the_constants_of_a_version_are_frozen() -> None:
    """Losses of a few steps hardly tell some of them. One that changes raises REGIME_VERSIONS."""
    frozen = {"SHIFT": 8, "DEGREES": 15.0, "SHEAR": 0.15, "FACTOR": 0.45, "BITS": 6, "THRESHOLD": 127.5, "ERASED": 0.25,
              "ERASED_AREA": (0.02, 0.33), "ERASED_RATIO": (0.3, 1 / 0.3), "MIXED": 0.5, "MIXUP_ALPHA": 0.2,
              "CUTMIX_ALPHA": 1.0, "OPERATIONS_AN_IMAGE": 2, "LABEL_SMOOTHING": 0.1, "STOCHASTIC_DEPTH": 0.1}
    assert REGIME_VERSIONS == {"none": 1, "light": 1, "strong": 1}
    constants = {name: value for name, value in vars(regimes).items()
                 if name.isupper() and isinstance(value, float | int | tuple) and name != "LIGHT"}
    assert constants == frozen


@pytest.mark.parametrize("regime", REGIMES)
def test_it_learns_digits(regime: Regime) -> None:
    record = run_one(spec("convnet", "xs", regime=regime, fraction="0.5", budget=Budget(unit="steps", amount=120),
                          recipe=Recipe(batch_size=32, learning_rate=0.006)), HERE).record
    losses = [loss for loss in record.curves.train_loss if loss is not None]
    assert losses[-1] < 0.5 * losses[0]
    assert record.final.test_accuracy is not None
    assert record.final.test_accuracy > 0.75


def test_the_card_tells_what_was_done() -> None:
    cards = {(model, regime): run_one(spec(model, size, regime=regime), HERE).record.card
             for model, size in TRIED for regime in ("none", *REGIMES)}
    for model, _ in TRIED:
        assert "augmentation" not in cards[model, "none"]
        assert cards[model, "none"]["regularisers"] == cards[model, "light"]["regularisers"] == Recipe().regularisers
        assert cards[model, "light"]["augmentation"] == "shift; not flip"
        assert cards[model, "strong"]["augmentation"] == (
            "shift, rotate, shear, intensity, contrast, sharpness, mixup; not flip, invert, erase, cutmix")
    assert cards["token_transformer", "strong"]["regularisers"] == (
        "weight decay 0.05, gradient clip 1, label smoothing 0.1, stochastic depth 0.1")
    assert cards["convnet", "strong"]["regularisers"] == (
        "weight decay 0.05, gradient clip 1, label smoothing 0.1, no stochastic depth")
    bare = Recipe(batch_size=32, weight_decay=0.0, gradient_clip=0.0)
    texts = [run_one(spec("convnet", "xs", regime=regime, recipe=bare), HERE).record.card["regularisers"]
             for regime in ("light", "strong")]
    assert texts == ["none", "label smoothing 0.1, no stochastic depth"]


def _resident(regime: Regime) -> Resident:
    arrays, meta = datasets.load("digits"), datasets.DATASETS.get("digits").meta
    streams = Streams.of(RunSpec(dataset="digits@1", model="linear@1", fraction="0.1", seed=0,
                                 budget=Budget(unit="steps", amount=1)))
    chosen = subset.draw(arrays.train_labels, subset.counts(meta.train_counts, fraction="0.1"), streams.subset_rng())
    return Resident(arrays, chosen, streams, Recipe(batch_size=32), CPU,
                    augmentation=Augmentation.of(regime, meta, streams, CPU))


def _classifier(data: Resident) -> Classifier:
    torch.manual_seed(0)
    model = models.build("convnet", "xs", {}, ImageSpec(8, 1), 10)
    made = Classifier(model, data, Recipe(), [0], lambda _: None)
    made.steps_done = 1
    return made


@pytest.mark.parametrize("regime", REGIMES)
def test_curves_and_final_metrics_are_of_clean_images_and_whole_labels(regime: Regime) -> None:
    """The same weights are measured alike whatever the regime, though their batches differ."""
    clean, augmented = _classifier(_resident("none")), _classifier(_resident(regime))
    assert not torch.equal(clean.data.batch(0)[0], augmented.data.batch(0)[0])
    for module in (clean, augmented):
        assert module._add_point(norm=1.0)
    assert clean.points == augmented.points
    for name, logits_IC in clean.last_logits.items():
        assert (augmented.last_logits[name] == logits_IC).all()


@pytest.mark.parametrize("regime", REGIMES)
def test_each_step_is_augmented_once_and_no_curve_point_is(regime: Regime, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, plain = [], Augmentation.__call__

    def noted(self: Augmentation, step: int, *arguments: Any) -> Any:
        steps.append(step)
        return plain(self, step, *arguments)

    monkeypatch.setattr(Augmentation, "__call__", noted)
    run_one(spec(regime=regime), HERE)
    assert steps == list(range(12))


def test_batches_are_normalised_by_the_statistics_of_the_images_as_they_are() -> None:
    none, light = _resident("none"), _resident("light")
    assert torch.equal(none.normalised(none.train.images), light.normalised(light.train.images))
    images, labels = light.batch(0)
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    ground = none.normalised(torch.zeros(1, 1, 1, 1, dtype=torch.uint8)).item()
    assert (images == ground).any()  # what enters is black, not the mean


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize(("model", "size"), TRIED)
def test_cuda_gives_nearly_the_numbers_of_the_cpu(model: str, size: str) -> None:
    """Of light: stochastic depth draws on the device, so strong has other numbers there."""
    there = type(HERE)(**{**HERE.model_dump(), "device": "cuda"})
    one, other = (run_one(spec(model, size, regime="light"), place).record for place in (HERE, there))
    assert one.curves.train_loss == pytest.approx(other.curves.train_loss, rel=0.05)
    assert run_one(spec(model, size, regime="strong"), there).record.outcome == "done"
