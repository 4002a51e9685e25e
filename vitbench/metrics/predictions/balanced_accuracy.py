"""Balanced accuracy: every class counts alike, however many test images it has."""

from vitbench.metrics.classification import Labels, Logits, recalls
from vitbench.metrics.registry import METRICS, MetricMeta


@METRICS.add("balanced_accuracy", MetricMeta(
    version=1, unit="share of images", better="higher",
    meaning="mean over the classes in the test set of the share of their images classified right",
    source="K. H. Brodersen et al. (2010). The Balanced Accuracy and Its Posterior Distribution. ICPR. "
           "doi:10.1109/ICPR.2010.764",
))
def balanced_accuracy(logits_IC: Logits, labels_I: Labels) -> float:
    """Mean recall of the classes that have a test image."""
    found = [recall for recall in recalls(logits_IC, labels_I) if recall is not None]
    return sum(found) / len(found)
