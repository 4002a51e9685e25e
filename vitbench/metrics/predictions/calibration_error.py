"""Expected calibration error: whether confidence is the share of hits."""

import numpy as np

from vitbench.metrics.classification import Labels, Logits, correct
from vitbench.metrics.registry import METRICS, MetricMeta

BINS = 15


@METRICS.add("calibration_error", MetricMeta(
    version=1, unit="share of images", better="lower",
    meaning="mean over 15 equal-width bins (low, high] of the largest softmax probability, weighted by their images, "
            "of |share of hits - mean probability|; biased upwards for few images",
    source="C. Guo et al. (2017). On Calibration of Modern Neural Networks, equation 3 with M = 15. ICML. "
           "arXiv:1706.04599",
))
def calibration_error(logits_IC: Logits, labels_I: Labels) -> float:
    """Sum over bins b of |hits in b - confidence in b| / I; softmax in float64."""
    wide_IC = logits_IC.astype(np.float64)
    confidence_I = 1 / np.exp(wide_IC - wide_IC.max(axis=1, keepdims=True)).sum(axis=1)
    inner_edges = np.arange(1, BINS) / BINS
    bin_I = np.digitize(confidence_I, inner_edges, right=True)
    surplus_b = np.bincount(bin_I, weights=correct(logits_IC, labels_I) - confidence_I, minlength=BINS)
    return float(np.abs(surplus_b).sum() / len(labels_I))
