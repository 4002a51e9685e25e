"""Metrics: what is computed from stored logits and curves."""

from vitbench.metrics.classification import accuracy, cross_entropy
from vitbench.metrics.overfitting import FitState, Overfitting, fit_state, over_confident, overfitting
from vitbench.metrics.registry import METRICS, MetricError, MetricMeta, compute

__all__ = ["METRICS", "FitState", "MetricError", "MetricMeta", "Overfitting", "accuracy", "compute", "cross_entropy",
           "fit_state", "over_confident", "overfitting"]
