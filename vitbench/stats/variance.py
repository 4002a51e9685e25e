"""Where the spread between runs comes from: subset, initialisation, order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitbench.stats.arrays import FloatArray, finite


@dataclass(frozen=True)
class VarianceParts:
    """Variances of a score, in its unit squared. One below 0 is an estimate like any other and is shown as it is."""

    subset: float
    initialisation: float
    interaction: float  # of subset and initialisation
    order: float  # of orders within a subset and an initialisation, with all else that is left


def variance_parts(scores_UVW: Sequence[Sequence[Sequence[float]]] | FloatArray) -> VarianceParts:
    """Of a balanced crossed design: subsets U x initialisations V x orders W within each pair (protocol rule 26).

    Random-effects analysis of variance by moments (Searle, Casella and McCulloch 1992, chapter 4; ddof 1 throughout):
    order = MS_W, interaction = (MS_UV - MS_W)/W, subset = (MS_U - MS_UV)/(V W), initialisation = (MS_V - MS_UV)/(U W).
    Raises ValueError below two of each or for what is not finite.
    """
    array_UVW = finite(scores_UVW, "UVW", least=2)
    U, V, W = array_UVW.shape
    mean_UV = array_UVW.mean(axis=2)
    mean_U, mean_V = mean_UV.mean(axis=1), mean_UV.mean(axis=0)
    rest_UV = mean_UV - mean_U[:, None] - mean_V + mean_UV.mean()
    ms_u, ms_v = V * W * mean_U.var(ddof=1), U * W * mean_V.var(ddof=1)
    ms_uv = W * np.square(rest_UV).sum() / ((U - 1) * (V - 1))
    ms_w = array_UVW.var(axis=2, ddof=1).mean()
    return VarianceParts(subset=float(ms_u - ms_uv) / (V * W), initialisation=float(ms_v - ms_uv) / (U * W),
                         interaction=float(ms_uv - ms_w) / W, order=float(ms_w))
