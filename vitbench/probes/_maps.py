"""Maps of what a model looks at in its images: attention rolled out over layers, single heads, gradients."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vitbench.probes._attention import layers
from vitbench.probes._spread import Floats, shares_of

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class Map:
    """Of one model: what it shows, and B x rows x columns of one number a token or pixel."""

    kind: str  # rollout, head or gradient
    of_BRC: Floats
    layer: int | None = None
    head: int | None = None


def maps(model: "nn.Module", images: "Tensor", *, heads: bool) -> list[Map]:
    """Of a model that attends, what its pooling takes from each token: by the rollout, and by each head alone. Of
    others the gradient."""
    from vitbench.nn.looking import attention_layers

    if not attention_layers(model):
        return [Map("gradient", gradient(model, images))]
    given = layers(model, images)
    grid, shares = given[0][1][1], [shares_of(layer.weights(*inputs).detach()).cpu().numpy() for layer, inputs in given]
    pooled_BM = pooled(model, images, shares[0].shape[-1])

    def on_grid(of_BM: Floats) -> Floats:
        return of_BM[:, :grid.tokens].reshape(-1, grid.height, grid.width)

    found = [Map("rollout", on_grid(_rows(pooled_BM, rollout(shares))))]
    return found + [Map("head", on_grid(_rows(pooled_BM, share_BHMM[:, head])), layer, head)
                    for layer, share_BHMM in enumerate(shares) for head in range(share_BHMM.shape[1]) if heads]


def rollout(shares: list[Floats]) -> Floats:
    """B x M x M of the shares B x H x M x M of each layer, the first first (Abnar and Zuidema 2020, section 3): half
    of a token is passed on as it is, half is the mean of heads; layers are multiplied."""
    rolled: Floats = np.eye(shares[0].shape[-1])
    for share_BHMM in shares:
        passed_BMM = share_BHMM.mean(axis=1) + np.eye(share_BHMM.shape[-1])
        rolled = passed_BMM / passed_BMM.sum(axis=2, keepdims=True) @ rolled
    return rolled


def pooled(model: "nn.Module", images: "Tensor", tokens: int) -> Floats:
    """What the pooling takes of each of M tokens after the last layer, B x M: of a class token that alone, of attention
    its weights, else the same of all (max takes each number from another token)."""
    import torch

    from vitbench.nn.pooling import AttentionPooling, ClassToken

    pooling, B, M = getattr(model, "pooling", None), len(images), tokens
    if isinstance(pooling, ClassToken):
        return np.tile(np.eye(M)[-1], (B, 1))
    if not isinstance(pooling, AttentionPooling):
        return np.full((B, M), 1 / M)
    seen: list[Tensor] = []
    hook = pooling.score.register_forward_hook(lambda _module, _inputs, score_BM1: seen.append(score_BM1))
    try:
        with torch.no_grad():
            model(images)
    finally:
        hook.remove()
    return np.asarray(seen[0].squeeze(2).double().softmax(dim=1).cpu().numpy())


def gradient(model: "nn.Module", images: "Tensor") -> Floats:
    """B x H x W: of each image's largest logit with respect to the pixels, absolute, summed over channels (Simonyan et
    al. 2014, section 3, has the largest channel)."""
    import torch

    images = images.detach().clone().requires_grad_()
    with torch.enable_grad():
        (gradient_BCHW,) = torch.autograd.grad(model(images).amax(dim=1).sum(), images, allow_unused=True)
    if gradient_BCHW is None:  # nothing passes a model that looks codes up
        return np.zeros((len(images), *images.shape[2:]))
    return np.asarray(gradient_BCHW.abs().sum(dim=1).double().cpu().numpy())


def half_area(of_RC: Floats) -> float:
    """The least share of the places that holds half of what there is: one half where it is even."""
    falling = np.sort(of_RC.ravel())[::-1]
    return float((np.searchsorted(falling.cumsum(), falling.sum() / 2 * (1 - 1e-9)) + 1) / falling.size)


def _rows(pooled_BM: Floats, of_BMM: Floats) -> Floats:
    return np.asarray((pooled_BM[:, None] @ of_BMM)[:, 0])
