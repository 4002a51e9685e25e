"""Accuracy and cross-entropy from logits, in float64."""

import numpy as np
import numpy.typing as npt

Logits = npt.NDArray[np.floating]
Labels = npt.NDArray[np.integer]


def correct(logits_IC: Logits, labels_I: Labels) -> npt.NDArray[np.bool_]:
    """True for each image whose largest logit (the first of equal ones) is its label's."""
    return np.asarray(logits_IC.argmax(axis=1) == labels_I)


def accuracy(logits_IC: Logits, labels_I: Labels) -> float:
    """Share of images classified right."""
    return float(correct(logits_IC, labels_I).mean())


def recalls(logits_IC: Logits, labels_I: Labels) -> list[float | None]:
    """For each class C the share of its images classified right, None where it has none."""
    classes = logits_IC.shape[1]
    images_C = np.bincount(labels_I, minlength=classes)
    right_C = np.bincount(labels_I[correct(logits_IC, labels_I)], minlength=classes)
    return [right / images if images else None for right, images in zip(right_C.tolist(), images_C.tolist(),
                                                                        strict=True)]


def cross_entropy(logits_IC: Logits, labels_I: Labels) -> float:
    """Mean negative log-likelihood of the labels, in nats."""
    wide_IC = logits_IC.astype(np.float64)
    shifted_IC = wide_IC - wide_IC.max(axis=1, keepdims=True)
    log_sum_I = np.log(np.exp(shifted_IC).sum(axis=1))
    return float((log_sum_I - shifted_IC[np.arange(len(labels_I)), labels_I]).mean())
