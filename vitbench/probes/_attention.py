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
    """Each self-attention layer with what it was given, in the order of the forward pass: `layer.weights(*given)`,
    `layer.project(*given)`. Raises ProbeError for a model that has none of ours."""
    import torch

    from vitbench.nn.looking import attention_layers

    found: list[tuple[SelfAttention, tuple[Tensor, Grid]]] = []
    hooks = [layer.register_forward_pre_hook(lambda layer, given: found.append((layer, given)))
             for layer in attention_layers(model).values()]
    if not hooks:
        raise ProbeError(f"{type(model).__name__} has no layer of vitbench.nn.attention.SelfAttention to look into; "
                         "models of token_transformer have")
    try:
        with torch.no_grad():
            model(images)
    finally:
        for hook in hooks:
            hook.remove()
    return found


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
