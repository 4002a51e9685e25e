"""Negative log-likelihood: a proper score, which punishes confident mistakes."""

from vitbench.metrics.classification import Labels, Logits, cross_entropy
from vitbench.metrics.registry import METRICS, MetricMeta


@METRICS.add("negative_log_likelihood", MetricMeta(
    version=1, unit="nats", better="lower",
    meaning="mean of minus the logarithm of the probability given to the label; the test loss of the record",
    source="the logarithmic score: I. J. Good (1952). Rational Decisions. J. R. Stat. Soc. B 14. "
           "doi:10.1111/j.2517-6161.1952.tb00104.x",
))
def negative_log_likelihood(logits_IC: Logits, labels_I: Labels) -> float:
    """Mean over images, softmax in float64."""
    return cross_entropy(logits_IC, labels_I)
