from fractions import Fraction
from math import log

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vitbench.metrics import accuracy, cross_entropy
from vitbench.metrics.classification import correct

SHAPE = st.tuples(st.integers(1, 20), st.integers(2, 12))


def logits_within(bound: float) -> st.SearchStrategy[np.ndarray]:
    return SHAPE.flatmap(lambda s: arrays(np.float16, s, elements=st.floats(-bound, bound, width=16)))


LOGITS = logits_within(6e4)


def labels_for(logits_IC: np.ndarray, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, logits_IC.shape[1], len(logits_IC)).astype(np.uint8)


@given(LOGITS)
def test_cross_entropy_is_that_of_a_float64_reference(logits_IC: np.ndarray) -> None:
    labels_I = labels_for(logits_IC)
    reference = -scipy.special.log_softmax(logits_IC.astype(np.float64), axis=1)[np.arange(len(labels_I)), labels_I]
    assert cross_entropy(logits_IC, labels_I) == pytest.approx(reference.mean(), rel=1e-12, abs=1e-12)


@given(LOGITS)
def test_accuracy_is_the_share_of_hits_counted_one_by_one(logits_IC: np.ndarray) -> None:
    labels_I = labels_for(logits_IC)
    hits = sum(row.index(max(row)) == label
               for row, label in zip(logits_IC.tolist(), labels_I.tolist(), strict=True))
    assert accuracy(logits_IC, labels_I) == float(Fraction(hits, len(labels_I)))


def test_the_first_of_equal_logits_is_the_prediction() -> None:
    logits = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0]], dtype=np.float16)
    assert correct(logits, np.array([0, 2, 0], dtype=np.uint8)).tolist() == [True, False, True]


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_equal_logits_cost_the_logarithm_of_the_classes(classes: int) -> None:
    assert cross_entropy(np.zeros((3, classes), np.float16), np.zeros(3, np.uint8)) == pytest.approx(log(classes))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_huge_logits_overflow_nothing(dtype: type) -> None:
    logits = np.array([[6e4, -6e4], [-6e4, 6e4]], dtype=dtype)
    gap = float(logits.astype(np.float64)[0, 0]) * 2
    assert cross_entropy(logits, np.array([0, 1])) == 0.0
    assert cross_entropy(logits, np.array([1, 0])) == gap


def test_sums_are_taken_in_float64() -> None:
    # In float16 the sum of 4,000 ones ends at 2,048, and a mean of many small losses is lost.
    logits = np.zeros((1, 4000), np.float16)
    assert cross_entropy(logits, np.array([0])) == pytest.approx(log(4000), rel=1e-12)


@given(logits_within(1000), st.integers(-50, 50))
def test_adding_a_constant_to_all_logits_changes_nothing(logits_IC: np.ndarray, shift: int) -> None:
    labels_I = labels_for(logits_IC)
    wide = logits_IC.astype(np.float64)
    assert cross_entropy(wide + shift, labels_I) == pytest.approx(cross_entropy(wide, labels_I), rel=1e-9, abs=1e-9)
