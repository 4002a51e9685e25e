"""Metrics of stored predictions: known answers, scikit-learn's where it has them, and what must hold for any logits."""

import re
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.known_answers import agrees, known
from vitbench.metrics import METRICS, accuracy, compute

SHAPE = st.tuples(st.integers(1, 40), st.integers(2, 12))
LOGITS = SHAPE.flatmap(lambda s: arrays(np.float16, s, elements=st.floats(-20, 20, width=16)))
DISTINCT = st.integers(0, 10**6).map(lambda seed: _distinct(np.random.default_rng(seed)))


def _distinct(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Logits without ties, up to 12 classes, and labels."""
    images, classes = rng.integers(1, 60), rng.integers(2, 13)
    logits_IC = rng.permuted(np.tile(np.arange(classes), (images, 1)), axis=1) * 0.25
    return logits_IC.astype(np.float16), rng.integers(0, classes, images).astype(np.uint8)


def labels_for(logits_IC: np.ndarray, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, logits_IC.shape[1], len(logits_IC)).astype(np.uint8)


def softmax(logits_IC: np.ndarray) -> np.ndarray:
    raised = np.exp(logits_IC.astype(np.float64) - logits_IC.max(axis=1, keepdims=True).astype(np.float64))
    return raised / raised.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("vector", known("metrics_from_logits"))
def test_values_are_the_known_ones(vector: dict[str, Any]) -> None:
    logits_IC, labels_I = np.array(vector["inputs"]["logits"]), np.array(vector["inputs"]["labels"])
    names = {"balanced_accuracy": "balanced_accuracy", "nll": "negative_log_likelihood", "ece15": "calibration_error"}
    assert agrees(accuracy(logits_IC, labels_I), vector, "accuracy")
    for key, name in names.items():
        assert agrees(compute(name, logits_IC, labels_I), vector, key), name
    assert {*names, "accuracy"} == set(vector["expected"])


@given(DISTINCT)
def test_scikit_learn_gives_the_same_where_it_has_the_metric(made: tuple[np.ndarray, np.ndarray]) -> None:
    logits_IC, labels_I = made
    classes, guess_I = np.arange(logits_IC.shape[1]), logits_IC.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of guesses at classes without an image
        assert compute("balanced_accuracy", logits_IC, labels_I) == pytest.approx(
            sklearn.metrics.balanced_accuracy_score(labels_I, guess_I))
        recalls = sklearn.metrics.recall_score(labels_I, guess_I, labels=classes, average=None, zero_division=np.nan)
        found = [np.nan if value is None else value for value in compute("per_class_accuracy", logits_IC, labels_I)]
        assert found == pytest.approx(recalls, nan_ok=True)
    assert compute("negative_log_likelihood", logits_IC, labels_I) == pytest.approx(
        sklearn.metrics.log_loss(labels_I, softmax(logits_IC), labels=classes), rel=1e-6, abs=1e-6)
    if len(classes) > 5:
        assert compute("top5_accuracy", logits_IC, labels_I) == pytest.approx(
            sklearn.metrics.top_k_accuracy_score(labels_I, logits_IC, k=5, labels=classes))


@given(LOGITS)
def test_calibration_error_is_that_of_bins_filled_one_by_one(logits_IC: np.ndarray) -> None:
    labels_I = labels_for(logits_IC)
    inside: dict[int, list[tuple[float, bool]]] = {}
    for row, label in zip(softmax(logits_IC), labels_I, strict=True):
        # The bin (b/15, (b+1)/15] that holds the confidence, without rounding.
        place = next(b for b in range(15) if Fraction(row.max()) <= Fraction(b + 1, 15) or b == 14)
        inside.setdefault(place, []).append((row.max(), row.argmax() == label))
    expected = sum(abs(sum(hit for _, hit in found) - sum(p for p, _ in found)) for found in inside.values())
    if all(abs(row.max() * 15 - round(row.max() * 15)) > 1e-9 for row in softmax(logits_IC)):
        assert compute("calibration_error", logits_IC, labels_I) == pytest.approx(expected / len(labels_I), abs=1e-12)


@pytest.mark.parametrize(("confidences", "hits", "expected"), [
    ([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0], 0.15), ([0.7, 0.95], [1, 0], (0.3 + 0.95) / 2), ([0.5] * 4, [1, 1, 0, 0], 0.0),
    ([0.91, 0.925], [1, 0], abs(1 - 0.91 - 0.925) / 2),  # one bin: (13/15, 14/15]
    ([0.93, 0.94], [1, 0], (0.07 + 0.94) / 2),  # two bins, with the edge 14/15 between them
])
def test_calibration_errors_worked_out_by_hand(confidences: list[float], hits: list[int], expected: float) -> None:
    logits_IC = np.log([[p, 1 - p] for p in confidences])
    assert compute("calibration_error", logits_IC, 1 - np.array(hits)) == pytest.approx(expected, abs=1e-12)


@given(LOGITS)
def test_accuracies_are_shares_and_losses_no_less_than_nothing(logits_IC: np.ndarray) -> None:
    labels_I = labels_for(logits_IC)
    for name in METRICS.names():
        value = compute(name, logits_IC, labels_I)
        for number in value if isinstance(value, tuple) else [value]:
            assert number is None or number >= 0
            assert number is None or METRICS.get(name).meta.unit == "nats" or number <= 1 + 1e-12


@given(LOGITS, st.randoms(use_true_random=False))
def test_the_order_of_images_is_irrelevant(logits_IC: np.ndarray, random: Any) -> None:
    labels_I, order = labels_for(logits_IC), list(range(len(logits_IC)))
    random.shuffle(order)
    for name in METRICS.names():
        assert compute(name, logits_IC[order], labels_I[order]) == pytest.approx(compute(name, logits_IC, labels_I))


@given(DISTINCT)
def test_class_accuracies_are_the_accuracy_in_parts(made: tuple[np.ndarray, np.ndarray]) -> None:
    logits_IC, labels_I = made
    parts = compute("per_class_accuracy", logits_IC, labels_I)
    counts = np.bincount(labels_I, minlength=logits_IC.shape[1])
    assert [part is None for part in parts] == [count == 0 for count in counts]
    assert sum(p * c for p, c in zip(parts, counts, strict=True) if p is not None) / len(labels_I) == pytest.approx(
        accuracy(logits_IC, labels_I))
    assert compute("balanced_accuracy", logits_IC, labels_I) == pytest.approx(
        np.mean([part for part in parts if part is not None]))


@given(DISTINCT)
def test_five_guesses_hit_no_less_often_than_one(made: tuple[np.ndarray, np.ndarray]) -> None:
    logits_IC, labels_I = made
    found = compute("top5_accuracy", logits_IC, labels_I)
    assert (found is None) == (logits_IC.shape[1] < 6)
    assert found is None or found >= accuracy(logits_IC, labels_I)


def test_of_equal_logits_the_first_classes_are_the_five_guesses() -> None:
    logits_IC = np.zeros((6, 6), np.float16)
    assert compute("top5_accuracy", logits_IC, np.arange(6, dtype=np.uint8)) == 5 / 6
    logits_IC[:, 5] = 1
    assert compute("top5_accuracy", logits_IC, np.array([4] * 6, dtype=np.uint8)) == 0
    assert compute("top5_accuracy", logits_IC, np.array([3, 5] * 3, dtype=np.uint8)) == 1


@pytest.mark.parametrize("name", METRICS.names())
def test_a_metric_says_what_it_is(name: str) -> None:
    meta = METRICS.get(name).meta
    assert meta.version >= 1
    assert meta.unit in ("share of images", "nats")
    assert len(meta.meaning) > 20
    assert "\n" not in meta.meaning
    assert re.search(r"doi:|arXiv:|confusion matrix", meta.source)
    value = compute(name, np.eye(7), np.arange(7))
    assert isinstance(value, tuple) is meta.per_class


def test_the_five_are_there_and_modules_beside_them_are_no_metrics() -> None:
    assert METRICS.names() == ("balanced_accuracy", "calibration_error", "negative_log_likelihood",
                               "per_class_accuracy", "top5_accuracy")
