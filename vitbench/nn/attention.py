"""One self-attention layer, in parts that can be exchanged: projections, score, normaliser, merge."""

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from vitbench.nn.bands import banded_attention
from vitbench.nn.grid import Grid
from vitbench.nn.positions import RelativeBias, RotaryPositions
from vitbench.nn.span import Span

ScoreKind = Literal["dot", "scaled_dot", "additive"]
Normaliser = Literal["softmax", "relu", "sigmoid", "none"]


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, section 3.2).

    Tokens B x M x D to B x M x D; H heads of width K = D / H. M are the N tokens of the grid, and a class token behind
    them where the model has one.
    """

    written_out = False  # True: never PyTorch's fused attention, which keeps no weights

    def __init__(self, embed_dim: int, num_heads: int, *, score: ScoreKind = "scaled_dot",
                 normaliser: Normaliser = "softmax", span: Span | None = None, relative: RelativeBias | None = None,
                 rotary: RotaryPositions | None = None) -> None:
        super().__init__()
        assert embed_dim % num_heads == 0, "checked by the model's options"
        self.num_heads, self.normaliser = num_heads, normaliser
        self.query_key_value = nn.Linear(embed_dim, 3 * embed_dim)
        self.merge = nn.Linear(embed_dim, embed_dim)
        head_dim = embed_dim // num_heads
        self.score = AdditiveScore(num_heads, head_dim) if score == "additive" else \
            ProductScore(head_dim**-0.5 if score == "scaled_dot" else 1.0)
        self.span, self.relative, self.rotary = span, relative, rotary

    def forward(self, x_BMD: Tensor, grid: Grid) -> Tensor:
        """What each token takes from the tokens that it sees, weighted by how well its query meets their keys."""
        query_BHMK, key_BHMK, value_BHMK = self.project(x_BMD, grid)
        if isinstance(self.score, ProductScore) and self.normaliser == "softmax" and not self.written_out:
            mixed_BHMK = self._fused(query_BHMK, key_BHMK, value_BHMK, grid, self.score.scale)
        else:
            mixed_BHMK = self._weights(query_BHMK, key_BHMK, grid) @ value_BHMK
        merged_BMD: Tensor = self.merge(mixed_BHMK.transpose(1, 2).flatten(2))
        return merged_BMD

    def project(self, x_BMD: Tensor, grid: Grid) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each B x H x M x K, the first two turned by rotary positions."""
        query, key, value = (part_BMD.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
                             for part_BMD in self.query_key_value(x_BMD).chunk(3, dim=2))
        if self.rotary is not None:
            query, key = self.rotary(query, grid), self.rotary(key, grid)
        return query, key, value

    def weights(self, x_BMD: Tensor, grid: Grid) -> Tensor:
        """The weights B x H x M x M, written out: each row is one token's look at all tokens."""
        query_BHMK, key_BHMK, _ = self.project(x_BMD, grid)
        return self._weights(query_BHMK, key_BHMK, grid)

    def _weights(self, query_BHMK: Tensor, key_BHMK: Tensor, grid: Grid) -> Tensor:
        score_BHMM = self.score(query_BHMK, key_BHMK)
        bias_HMM = self._bias(grid)
        if bias_HMM is not None:
            score_BHMM = score_BHMM + bias_HMM
        return NORMALISERS[self.normaliser](score_BHMM, None if self.span is None else self.span.seen(grid))

    def _bias(self, grid: Grid) -> Tensor | None:
        if self.relative is None:
            return None
        bias_HNN: Tensor = self.relative(grid)
        if self.span is None or not self.span.extra:
            return bias_HNN  # not padded by nothing, which would copy it
        return F.pad(bias_HNN, (0, 1, 0, 1))  # a class token has no place, so no offset

    def _fused(self, query_BHMK: Tensor, key_BHMK: Tensor, value_BHMK: Tensor, grid: Grid, scale: float) -> Tensor:
        """The same by PyTorch's fused attention; a window in bands of rows, so that it costs less."""
        seen, bands = (None, []) if self.span is None else (self.span.seen(grid), self.span.bands(grid))
        mask = _mask(self._bias(grid), seen)
        if mask is not None and bands:
            return banded_attention(query_BHMK, key_BHMK, value_BHMK, mask, bands, scale)
        return F.scaled_dot_product_attention(query_BHMK, key_BHMK, value_BHMK, mask, scale=scale)


class ProductScore(nn.Module):
    """Query times key, times a scale: 1 over the root of K keeps the variance of unit queries and keys at 1."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, query_BHMK: Tensor, key_BHMK: Tensor) -> Tensor:
        """Scores B x H x M x M."""
        return (query_BHMK * self.scale) @ key_BHMK.mT  # not the product scaled: it is the larger of the two


class AdditiveScore(nn.Module):
    """A trained vector times the hyperbolic tangent of query plus key (Bahdanau et al. 2015, section A.1.2). It holds
    M x M x K numbers a head at once, where the product holds M x M."""

    def __init__(self, num_heads: int, head_dim: int) -> None:
        super().__init__()
        self.direction_HK1 = nn.Parameter(torch.empty(num_heads, head_dim, 1))
        nn.init.normal_(self.direction_HK1, std=head_dim**-0.5)

    def forward(self, query_BHMK: Tensor, key_BHMK: Tensor) -> Tensor:
        """Scores B x H x M x M."""
        sum_BHMMK = torch.tanh(query_BHMK[..., :, None, :] + key_BHMK[..., None, :, :])
        return (sum_BHMMK @ self.direction_HK1[:, None]).squeeze(-1)


def _softmax(score: Tensor, seen: Tensor | None) -> Tensor:
    return torch.softmax(score if seen is None else score.masked_fill(~seen, -torch.inf), dim=-1)


def _relu(score: Tensor, seen: Tensor | None) -> Tensor:
    """ReLU over the number of tokens that are seen (Wortsman et al. 2023, section 3)."""
    return _of_seen(torch.relu(score), seen)


def _sigmoid(score: Tensor, seen: Tensor | None) -> Tensor:
    """Sigmoid of the score less the logarithm of the number of tokens seen (Ramapuram et al. 2024, section 3)."""
    if seen is None:
        return torch.sigmoid(score - math.log(score.shape[-1]))
    return torch.sigmoid(score - _count(seen).to(score.dtype).log()) * seen


def _linear(score: Tensor, seen: Tensor | None) -> Tensor:
    """The score itself over the number of tokens that are seen."""
    return _of_seen(score, seen)


NORMALISERS: dict[Normaliser, Callable[[Tensor, Tensor | None], Tensor]] = {
    "softmax": _softmax, "relu": _relu, "sigmoid": _sigmoid, "none": _linear}
"""From scores ... x M x M and what each query sees (bool, None: everything) to weights of the same shape."""


def _of_seen(weight: Tensor, seen: Tensor | None) -> Tensor:
    return weight / weight.shape[-1] if seen is None else weight * seen / _count(seen)


def _count(seen: Tensor) -> Tensor:
    return seen.sum(dim=-1, keepdim=True)


def _mask(bias: Tensor | None, seen: Tensor | None) -> Tensor | None:
    """Both in one, as fused attention takes them: 0 or the bias where a key is seen, minus infinity where not."""
    if bias is None or seen is None:
        return seen if bias is None else bias
    return bias.masked_fill(~seen, -torch.inf)
