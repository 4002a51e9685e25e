"""Arrays as statistics take them: finite, one axis a letter of their layout, long enough."""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def finite(values: Any, layout: str, *, least: int = 1) -> FloatArray:
    """`values` as float64 with one axis a letter of `layout` ("MS": models x seeds), each `least` long or longer.

    Raises ValueError, with the values, for any other shape, rows of unequal length, nan or infinity.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except ValueError:  # numpy's message names no value
        array = np.empty(0)
    if array.ndim != len(layout) or min(array.shape) < least or not np.isfinite(array).all():
        axes = " x ".join(f"{letter} >= {least}" for letter in layout)
        raise ValueError(f"expected finite values of layout {axes}; found {values!r}")
    return array
