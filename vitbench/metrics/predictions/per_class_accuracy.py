"""Accuracy of each class: which ones a model confuses."""

from vitbench.metrics.classification import Labels, Logits, recalls
from vitbench.metrics.registry import METRICS, MetricMeta


@METRICS.add("per_class_accuracy", MetricMeta(
    version=1, unit="share of images", better="higher", per_class=True,
    meaning="share of each class's test images that are classified right (its recall)",
    source="the diagonal of the confusion matrix over its row sums",
    undefined="for a class without test images",
))
def per_class_accuracy(logits_IC: Logits, labels_I: Labels) -> list[float | None]:
    """Recall of each class C, None without test images."""
    return recalls(logits_IC, labels_I)
