"""Models that no other beats in both cost and accuracy."""

from collections.abc import Sequence

import numpy as np

from vitbench.stats.arrays import FloatArray, finite


def pareto_front(cost_M: Sequence[float] | FloatArray, accuracy_M: Sequence[float] | FloatArray) -> list[int]:
    """Numbers of the models that none dominates: no dearer, no worse, and better in one of the two. Equal ones stay.

    Raises ValueError without a model, for unequal lengths or what is not finite.
    """
    cost, accuracy = finite(cost_M, "M"), finite(accuracy_M, "M")
    if cost.size != accuracy.size:
        raise ValueError(f"each model has a cost and an accuracy; found {cost_M!r} and {accuracy_M!r}")
    no_worse_MM = (cost[None, :] <= cost[:, None]) & (accuracy[None, :] >= accuracy[:, None])
    better_MM = (cost[None, :] < cost[:, None]) | (accuracy[None, :] > accuracy[:, None])
    return [int(m) for m in np.flatnonzero(~(no_worse_MM & better_MM).any(axis=1))]
