"""The attention layers of a model while it looks at images, and the offsets that their heads look at."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vitbench.probes import ProbeError, Trained

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vitbench.nn.attention import SelfAttention
    from vitbench.nn.grid import Grid


def layers(model: "nn.Module", images: "Tensor") -> "list[tuple[SelfAttention, tuple[Tensor, Grid]]]":
    """`inputs_of_layers` of vitbench.nn.looking. Raises ProbeError for a model that has no layer of ours."""
    from vitbench.nn.looking import attention_layers, inputs_of_layers

    if not attention_layers(model):
        raise ProbeError(f"{type(model).__name__} has no layer of vitbench.nn.attention.SelfAttention to look into; "
                         "models of token_transformer and hybrid have")
    return inputs_of_layers(model, images)


def mean_weights(trained: Trained, count: int) -> Iterator[npt.NDArray[np.float64]]:
    """Of each layer H x N x N: the mean over `count` test images; a class token is left out."""
    images, _ = trained.images("test", count)
    for layer, (x_BMD, grid) in layers(trained.module.model, images):
        weight_HNN = layer.weights(x_BMD, grid).detach().mean(dim=0)[:, :grid.tokens, :grid.tokens]
        yield weight_HNN.cpu().double().numpy()


def fixed_offset(weight_NN: npt.NDArray[np.float64]) -> tuple[float, tuple[int, int]]:
    """The offset (down, right) at which most of a head's attention lies, and its share of it.

    The share is the mean over the query places from which the offset stays inside the image; offsets that leave it
    from more than three quarters of the places are left out, since a few places could be anything.
    """
    side = round(len(weight_NN)**0.5)
    place_N2 = np.stack(np.divmod(np.arange(len(weight_NN)), side), axis=1)
    best, where = -1.0, (0, 0)
    for down in range(1 - side, side):
        for right in range(1 - side, side):
            target_N2 = place_N2 + np.array([down, right])
            inside_N = ((target_N2 >= 0) & (target_N2 < side)).all(axis=1)
            if 4 * inside_N.sum() >= len(weight_NN):
                share = float(weight_NN[inside_N, target_N2[inside_N] @ (side, 1)].mean())
                if share > best:
                    best, where = share, (down, right)
    return best, where
