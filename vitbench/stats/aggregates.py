"""Aggregates of scores: over runs, over datasets, and over pairs of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import stdtrit

from vitbench.stats.arrays import FloatArray, finite
from vitbench.stats.intervals import t_interval

FEW_DATASETS = 5
"""Below this many datasets there is no aggregate over them (protocol rule 23)."""


def interquartile_mean(scores_DR: Sequence[Sequence[float]]) -> float:
    """Mean of all scores, datasets D x runs R, without the floor(n/4) lowest and highest of them (Agarwal et al. 2021).

    Datasets may have different numbers of runs. Raises ValueError without a score or for one that is not finite.
    """
    sorted_N = np.sort(finite([score for scores_R in scores_DR for score in scores_R], "N"))
    cut = sorted_N.size // 4
    return float(sorted_N[cut:sorted_N.size - cut].mean())


@dataclass(frozen=True)
class MeanOverDatasets:
    """A mean over fixed datasets, all of the same weight: it generalises to other seeds, not to other datasets."""

    mean: float
    low: float
    high: float
    df: float
    datasets: int


def mean_over_datasets(differences_DS: Sequence[Sequence[float] | FloatArray], *, level: float = 0.95,
                       least: int = FEW_DATASETS) -> MeanOverDatasets:
    """Mean of the datasets' mean differences +- t((1 + level)/2, df) sqrt(sum v_d)/D, v_d = sd_d^2/S_d.

    df = (sum v_d)^2 / sum(v_d^2/(S_d - 1)) (Satterthwaite 1946); sum(S_d - 1) where no dataset's values vary. Raises
    ValueError below `least` datasets, two seeds a dataset, or for what is not finite.
    """
    if len(differences_DS) < least:
        raise ValueError(f"a mean over datasets needs {least} at least; found {len(differences_DS)}")
    parts = [t_interval(finite(differences_S, "S", least=2)) for differences_S in differences_DS]
    mean, datasets = float(np.mean([part.mean for part in parts])), len(parts)
    variance_D = np.array([(part.sd or 0.0) ** 2 / part.n for part in parts])
    df_D = np.array([part.n - 1 for part in parts])
    total = float(variance_D.sum())
    if total == 0:
        return MeanOverDatasets(mean, mean, mean, float(df_D.sum()), datasets)
    df = 1 / float(((variance_D / total) ** 2 / df_D).sum())
    half = float(stdtrit(df, (1 + level) / 2)) * sqrt(total) / datasets
    return MeanOverDatasets(mean, mean - half, mean + half, df, datasets)


def probability_of_improvement(a_S: Sequence[float] | FloatArray, b_S: Sequence[float] | FloatArray, *,
                               paired: bool) -> float:
    """Share of pairs of runs in which a scores higher than b, a tie counting one half (Agarwal et al. 2021).

    `paired`: the same seed of each; else every run of a with every run of b (Mann-Whitney U / (n m)). Raises
    ValueError for an empty or non-finite input, or pairs of unequal length.
    """
    a, b = finite(a_S, "S"), finite(b_S, "S")
    if paired and a.size != b.size:
        raise ValueError(f"pairs need the same seeds of both; found {a_S!r} and {b_S!r}")
    signs = np.sign(a - b) if paired else np.sign(a[:, None] - b[None, :])
    return float((1 + signs.mean()) / 2)
