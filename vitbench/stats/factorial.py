"""Family against size: the 2 x 2 contrasts of claim `family_not_size`, one of each a seed."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitbench.stats.arrays import FloatArray, finite


@dataclass(frozen=True, eq=False)
class Factorial:
    """Contrasts of each seed S, in the unit of the errors."""

    family_S: FloatArray
    size_S: FloatArray
    interaction_S: FloatArray


def factorial_2x2(errors_FZS: Sequence[Sequence[Sequence[float]]] | FloatArray) -> Factorial:
    """Of errors, family F (attention, convolution) x size Z (small, large) x seeds S.

    family = ((a_s + a_l) - (c_s + c_l))/2, size = ((a_l + c_l) - (a_s + c_s))/2,
    interaction = ((a_l - a_s) - (c_l - c_s))/2 (Fisher 1935). Raises ValueError for another layout.
    """
    array_FZS = finite(errors_FZS, "FZS")
    if array_FZS.shape[:2] != (2, 2):
        raise ValueError(f"expected two families x two sizes x seeds; found shape {array_FZS.shape}: {errors_FZS!r}")
    (a_s, a_l), (c_s, c_l) = array_FZS
    return Factorial((a_s + a_l - c_s - c_l) / 2, (a_l + c_l - a_s - c_s) / 2, (a_l - a_s - c_l + c_s) / 2)
