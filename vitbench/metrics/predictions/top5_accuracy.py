"""Top-5 accuracy: whether the label is among five guesses."""

import numpy as np

from vitbench.metrics.classification import Labels, Logits
from vitbench.metrics.registry import METRICS, MetricMeta


@METRICS.add("top5_accuracy", MetricMeta(
    version=1, unit="share of images", better="higher",
    meaning="share of test images whose label has one of the five largest logits (of equal ones the first classes)",
    source="O. Russakovsky et al. (2015). ImageNet Large Scale Visual Recognition Challenge. IJCV 115. "
           "arXiv:1409.0575",
    undefined="below six classes, where five guesses are all there is",
))
def top5_accuracy(logits_IC: Logits, labels_I: Labels) -> float | None:
    """Share of images; None below six classes."""
    if logits_IC.shape[1] < 6:
        return None
    guesses_I5 = np.argsort(-logits_IC, axis=1, kind="stable")[:, :5]
    return float((guesses_I5 == labels_I[:, None]).any(axis=1).mean())
