"""Metrics: what is computed from stored logits and curves."""

from vitbench.metrics.classification import accuracy, cross_entropy
from vitbench.metrics.overfitting import FitState, Overfitting, fit_state, over_confident, overfitting

__all__ = ["FitState", "Overfitting", "accuracy", "cross_entropy", "fit_state", "over_confident", "overfitting"]
