"""How the attention of a layer is spread over pairs of places: what distances, locality and maps are taken from."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vitbench.probes._attention import layers

if TYPE_CHECKING:
    from torch import Tensor, nn

Floats = npt.NDArray[np.float64]
CHUNK = 16  # images: 784 pixel tokens and four heads then take 160 MB


@dataclass(frozen=True)
class Spread:
    """Of one layer, a mean over images: shares of each head H that sum to 1 over all pairs of query and key, N x N.

    Weights are taken absolute and divided by their sum in each row: of softmax they stay as they are, of `relu`,
    `sigmoid` and `none` they become shares. Rows without any weight, as relu can leave them, are left out, and
    `empty_H` is the share of them; a head that has no other is all 0. A class token is left out, as query and as key.
    `even_NN` is what attention without a preference gives: the same to each token that a token may see.
    """

    share_HNN: Floats
    even_NN: Floats
    empty_H: Floats
    grid_width: int  # tokens
    side: float  # pixels of a token

    @cached_property
    def offsets_NN2(self) -> Floats:
        """From query to key, down and right, in tokens."""
        place_N2 = np.stack(np.divmod(np.arange(len(self.even_NN)), self.grid_width), axis=1)
        return np.asarray(place_N2[None] - place_N2[:, None], dtype=np.float64)

    @property
    def distance_NN(self) -> Floats:
        """Between the centres of tokens, in pixels."""
        return np.asarray(np.linalg.norm(self.offsets_NN2, axis=2) * self.side)

    def within(self, radius: int) -> npt.NDArray[np.bool_]:
        """N x N: whether the key lies in the square of 2 radius + 1 tokens a side around the query."""
        return np.asarray(np.abs(self.offsets_NN2).max(axis=2) <= radius)

    def mean_H(self, of_NN: npt.NDArray[np.generic]) -> list[float | None]:
        """The mean of a quantity of pairs under the attention of each head; None for a head without any weight."""
        return [float((share_NN * of_NN).sum()) if share_NN.any() else None for share_NN in self.share_HNN]


def shares_of(weight: "Tensor") -> "Tensor":
    """Weights ... x N x N, absolute and divided by the sum of each row, in float64; a row without any stays 0."""
    size = weight.double().abs()
    total = size.sum(dim=-1, keepdim=True)
    return size / total.masked_fill(total == 0, 1)


def spreads(model: "nn.Module", images: "Tensor") -> list[Spread]:
    """Of each layer, the first first. Raises ProbeError for a model that has no layer to look into."""
    import torch

    given = [layers(model, some) for some in images.split(CHUNK)]
    found = []
    for of_layer in zip(*given, strict=True):
        layer, (_, grid) = of_layer[0]
        N, total, live = grid.tokens, torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for _, (x_BMD, _) in of_layer:
            with torch.no_grad():
                share_BHNN = shares_of(layer.weights(x_BMD, grid)[..., :N, :N])
            total = total + share_BHNN.sum(dim=0).cpu()
            live = live + share_BHNN.any(dim=3).sum(dim=(0, 2)).cpu()
        seen = None if layer.span is None else layer.span.seen(grid)
        seen_NN = np.ones((N, N)) if seen is None else seen[:N, :N].cpu().numpy().astype(np.float64)
        found.append(Spread((total / live.clamp_min(1).view(-1, 1, 1)).numpy(),
                            seen_NN / seen_NN.sum(axis=1, keepdims=True) / N, 1 - live.numpy() / (len(images) * N),
                            grid.width, images.shape[3] / grid.width))
    return found
