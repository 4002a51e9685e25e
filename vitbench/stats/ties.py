"""Which models share the first place of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitbench.stats.arrays import FloatArray, finite
from vitbench.stats.intervals import FEW_SEEDS
from vitbench.stats.multiplicity import holm
from vitbench.stats.paired import paired_t

TOLERANCE = 1e-12  # of the scores: models that differ by rounding alone do not differ


@dataclass(frozen=True)
class Best:
    """`bold`: the model of the highest mean and all not separable from it, sorted; empty below six seeds."""

    best: str
    bold: tuple[str, ...]
    holm_p: Mapping[str, float]  # of every other model against the best; empty below six seeds


def best_or_tied(scores: Mapping[str, Sequence[float] | FloatArray], *, alpha: float = 0.05) -> Best:
    """Of scores over the same seeds, higher is better: paired t of the highest mean against each other model, Holm.

    Bold are all with an adjusted p above `alpha` (protocol rule 23). Of equal means the first name is the best, so that
    the order of models changes nothing. Raises ValueError without a model, for unequal lengths or what is not finite.
    """
    names = sorted(scores)
    scores_MS = finite([scores[name] for name in names], "MS")
    mean_M = scores_MS.mean(axis=1)
    rounding = TOLERANCE * float(np.abs(scores_MS).max())
    first = int(np.argmax(mean_M >= mean_M.max() - rounding))
    best, others = names[first], [m for m in range(len(names)) if m != first]
    if scores_MS.shape[1] < FEW_SEEDS:
        return Best(best, (), {})
    differences_MS = scores_MS[first] - scores_MS[others]
    differences_MS[np.abs(differences_MS) <= rounding] = 0
    p_M = [paired_t(differences_S).p for differences_S in differences_MS]
    holm_p = {names[m]: float(p) for m, p in zip(others, holm(p_M) if p_M else [], strict=True)}
    return Best(best, tuple(name for name in names if name == best or holm_p[name] > alpha), holm_p)
