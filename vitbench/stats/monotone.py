"""The non-increasing curve that lies closest to measured errors."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Values = Sequence[float] | FloatArray


def falling_blocks(errors_N: Values, weights_N: Values | None = None) -> tuple[slice, ...]:
    """The runs of neighbours whose weighted means are the least-squares non-increasing estimate.

    Pool adjacent violators (Ayer et al. 1955). Raises ValueError without errors, on one that is not finite, or on a
    weight that is not above 0.
    """
    errors = np.asarray(errors_N, dtype=np.float64)
    weights = np.ones_like(errors) if weights_N is None else np.asarray(weights_N, dtype=np.float64)
    if not errors.size or errors.shape != (errors.size,) or weights.shape != errors.shape or not (
            np.isfinite(errors).all() and np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError(f"it takes finite errors with a weight above 0 each; found {errors.tolist()} and "
                         f"{weights.tolist()}")
    blocks: list[tuple[float, float, int]] = []  # mean, weight, sizes
    for error, weight in zip(errors.tolist(), weights.tolist(), strict=True):
        block = (error, weight, 1)
        while blocks and block[0] > blocks[-1][0]:
            mean, total, count = blocks.pop()
            # A step from the smaller mean: rounding cannot take it out of the two that it lies between.
            share = block[1] / (total + block[1])
            block = (mean + share * (block[0] - mean), total + block[1], count + block[2])
        blocks.append(block)
    ends = np.cumsum([0, *(count for _, _, count in blocks)]).tolist()
    return tuple(slice(start, end) for start, end in pairwise(ends))


def falling(errors_N: Values, weights_N: Values | None = None) -> FloatArray:
    """The estimate itself, at each size. Raises ValueError as `falling_blocks` does."""
    return pooled(np.asarray(errors_N, dtype=np.float64), falling_blocks(errors_N, weights_N), weights_N)


def pooled(errors_N: FloatArray, blocks: Sequence[slice], weights_N: Values | None = None) -> FloatArray:
    """Errors ... x N with the mean of its block in the place of each."""
    weights = np.ones(errors_N.shape[-1]) if weights_N is None else np.asarray(weights_N, dtype=np.float64)
    found = np.empty_like(errors_N)
    for block in blocks:
        found[..., block] = np.average(errors_N[..., block], axis=-1, weights=weights[block])[..., None]
    return found
