"""Nothing that trains or selects sees what it is judged on (protocol rules 3, 4 and 12)."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.training.conftest import _own_arithmetic  # noqa: F401 - takes back what a run changes in this process
from tests.training.test_run import HERE, spec
from vitbench import datasets, subset
from vitbench.datasets import DATASETS, PARTS, Arrays
from vitbench.metrics import overfitting
from vitbench.spec import Budget, RunSpec
from vitbench.streams import Streams
from vitbench.training import data, run, trial
from vitbench.training.run import run_one
from vitbench.training.trial import Folds, try_one

AT_HAND = [name for name in DATASETS.names() if datasets.where(name)]
FRACTIONS = ["0.002", "0.01", "0.05", "0.1", "0.29", "0.5", "1"]


def content(images: np.ndarray) -> set[bytes]:
    return {hashlib.sha256(image.tobytes()).digest() for image in images}


@cache
def digests(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each training image and of each test image, as 64-bit numbers."""
    arrays = datasets.load(name)
    return tuple(np.array([int.from_bytes(hashlib.sha256(image.tobytes()).digest()[:8]) for image in images],
                          dtype=np.uint64) for images in (arrays.train_images, arrays.test_images))  # type: ignore[return-value]


def test_more_than_one_dataset_is_looked_at() -> None:
    assert len(AT_HAND) >= 1
    assert "digits" in AT_HAND


@pytest.mark.parametrize("name", AT_HAND)
def test_training_and_test_share_no_image_by_content(name: str) -> None:
    arrays = datasets.load(name)
    assert not content(arrays.train_images) & content(arrays.test_images)


@pytest.mark.parametrize("name", AT_HAND)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(fraction=st.sampled_from(FRACTIONS), seed=st.integers(0, 10_010))
def test_train_validation_and_test_are_disjoint_by_content(name: str, fraction: str, seed: int) -> None:
    arrays, meta = datasets.load(name), DATASETS.get(name).meta
    try:
        wanted = subset.counts(meta.train_counts, fraction=fraction)
    except subset.EmptyClass:
        return
    streams = Streams.of(RunSpec(dataset=f"{name}@1", model="linear@1", fraction=fraction, seed=seed,
                                 budget=Budget(unit="steps", amount=1)))
    chosen = subset.draw(arrays.train_labels, wanted, streams.subset_rng())
    train_N, test_M = digests(name)
    train, validation = train_N[chosen.train], train_N[chosen.validation]
    assert len(np.unique(np.concatenate([train, validation]))) == sum(wanted.drawn)
    assert not np.isin(test_M, np.concatenate([train, validation])).any()


@dataclass(frozen=True)
class Watched(Arrays):
    """A dataset that writes down every access to its test part."""

    reads: list[str]

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("test_"):
            super().__getattribute__("reads").append(name)
        return super().__getattribute__(name)


def reads_of_test(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> list[str]:
    """Every read of test data while `do` runs."""
    whole, reads = datasets.load("digits"), list[str]()
    monkeypatch.setattr(datasets, "load", lambda *_: Watched(
        *(getattr(whole, part) for part in PARTS), reads, sha256=whole.sha256))
    do()
    return reads


@pytest.mark.parametrize("folds", [None, Folds(3, 1)])
def test_a_tuning_trial_never_reads_test_data(monkeypatch: pytest.MonkeyPatch, folds: Folds | None) -> None:
    assert reads_of_test(monkeypatch, lambda: try_one(spec(), HERE, number=0, params={}, folds=folds)) == []


def test_the_watch_sees_the_reads_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(reads_of_test(monkeypatch, lambda: run_one(spec(), HERE))) == {"test_images", "test_labels"}


def test_a_trial_that_looks_at_test_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arrays, "without_test", lambda self: replace(self, test_labels=self.test_labels))
    assert reads_of_test(monkeypatch, lambda: try_one(spec(), HERE, number=0, params={})) != []


def seen_but_for_test(monkeypatch: pytest.MonkeyPatch, noise_seed: int, **values: Any) -> Any:
    """All that a run computes but its test columns, when its test images are noise."""
    rng, whole = np.random.default_rng(noise_seed), datasets.load("digits")
    noise = rng.integers(0, 256, whole.test_images.shape, dtype=np.uint8)
    labels = rng.integers(0, 10, whole.test_labels.shape).astype(np.uint8)
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "load", lambda *_: replace(whole, test_images=noise, test_labels=labels))
        record = run_one(spec(budget=Budget(unit="steps", amount=30), **values), HERE).record
    curves = record.curves.model_dump(exclude={"test_loss", "test_accuracy"})
    assert record.curves.val_loss is not None
    onset = overfitting(record.curves.val_loss, record.curves.test_loss, record.curves.test_accuracy).onset_index  # type: ignore[arg-type]
    return curves, record.final.model_dump(exclude={"test_loss", "test_accuracy"}), onset


@pytest.mark.parametrize("regime", ["none", "strong"])
def test_training_normalisation_schedule_and_early_stopping_do_not_depend_on_test_images(
        monkeypatch: pytest.MonkeyPatch, regime: str) -> None:
    seen = [seen_but_for_test(monkeypatch, noise_seed, regime=regime) for noise_seed in (1, 2)]
    assert seen[0] == seen[1]


def normalised_by_test_too(monkeypatch: pytest.MonkeyPatch) -> None:
    own = data.Resident.__init__

    def leaky(self: data.Resident, arrays: Arrays, *rest: Any, **named: Any) -> None:
        own(self, arrays, *rest, **named)
        self._mean, self._inverse_deviation = data.statistics(np.concatenate([arrays.train_images, arrays.test_images]))

    monkeypatch.setattr(data.Resident, "__init__", leaky)


def stopped_by_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learning rate falls as soon as the test loss rises."""
    own = run.Classifier._add_point

    def leaky(self: Any, norm: float) -> bool:
        whole = own(self, norm)
        if len(self.points) > 1 and self.points[-1].test_loss > self.points[-2].test_loss:
            self.recipe = self.recipe.model_copy(update={"learning_rate": self.recipe.learning_rate / 10})
        return whole

    monkeypatch.setattr(run.Classifier, "_add_point", leaky)


@pytest.mark.parametrize("plant", [normalised_by_test_too, stopped_by_test])
def test_a_planted_leak_is_caught(monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]) -> None:
    plant(monkeypatch)
    assert seen_but_for_test(monkeypatch, 1) != seen_but_for_test(monkeypatch, 2)


def test_a_validation_image_that_is_trained_on_is_caught() -> None:
    """The property above would fail for a draw that holds out nothing."""
    arrays = datasets.load("digits")
    wanted = subset.counts(DATASETS.get("digits").meta.train_counts, fraction="0.1")
    chosen = subset.draw(arrays.train_labels, wanted, np.random.default_rng(0))
    leaky = subset.Subset(chosen.drawn, chosen.validation)
    assert content(arrays.train_images[leaky.train]) & content(arrays.train_images[leaky.validation])


def test_normalisation_rests_on_the_training_part_alone() -> None:
    arrays = datasets.load("digits").without_test()
    chosen = trial.held_out(spec(), arrays.train_labels, None)[0]
    changed = arrays.train_images.copy()
    others = np.setdiff1d(np.arange(len(changed)), chosen.train)
    changed[others] = 255 - changed[others]
    resident = [data.Resident(replace(arrays, train_images=images), chosen, Streams.of(spec()), spec().recipe,
                              torch.device("cpu")) for images in (arrays.train_images, changed)]
    assert torch.equal(*(one.batch(0)[0] for one in resident))
