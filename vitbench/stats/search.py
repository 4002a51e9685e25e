"""What a random search of a given length finds (Dodge et al. 2019, 'Show your work', equation 3)."""

from collections.abc import Sequence

import numpy as np


def expected_best(values_T: Sequence[float], k: int) -> float:
    """Expected largest of `k` draws, with replacement, from the values of trials T.

    The plug-in estimate: sum over sorted values v_(i) of v_(i) ((i/T)^k - ((i-1)/T)^k). Biased low for k near T.
    Raises ValueError without values or for k < 1.
    """
    if not values_T or k < 1:
        raise ValueError(f"an expected best needs one value and one draw at least; found {len(values_T)} and k={k}")
    sorted_T = np.sort(np.asarray(values_T, dtype=np.float64))
    share_T = np.arange(len(sorted_T) + 1) / len(sorted_T)
    return float(sorted_T @ np.diff(share_T**k))


def quartiles(values_T: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median and third quartile, linearly interpolated."""
    low, middle, high = np.quantile(np.asarray(values_T, dtype=np.float64), (0.25, 0.5, 0.75))
    return float(low), float(middle), float(high)
