"""Fused attention in bands of rows: where a window hides most keys, each band of queries meets its own rows alone."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from vitbench.nn.grid import Grid

Band = tuple[slice, slice]  # of queries, and of the keys that their windows touch


def bands(grid: Grid, reach: int) -> list[Band]:
    """The bands of a window that reaches `reach` rows up and down; none where one would hold more than two thirds of
    the rows, for it then saves nothing (benchmarks/attention.py).

    With `reach` + 1 rows of queries a band, neither the keys met for nothing nor the bands are many.
    """
    height, width, rows = grid.height, grid.width, reach + 1
    if 3 * (rows + 2 * reach) > 2 * height:
        return []
    return [(slice(top * width, min(top + rows, height) * width),
             slice(max(top - reach, 0) * width, min(top + rows + reach, height) * width))
            for top in range(0, height, rows)]


def banded_attention(query_BHNK: Tensor, key_BHNK: Tensor, value_BHNK: Tensor, mask: Tensor, of: list[Band],
                     scale: float) -> Tensor:
    """What scaled_dot_product_attention gives with `mask` (... x N x N, which hides all keys outside of the bands)."""
    mixed_BHNK: Tensor = _Banded.apply(of, scale, query_BHNK, key_BHNK, value_BHNK, mask)
    return mixed_BHNK


class _Banded(torch.autograd.Function):
    """Gradients of the bands are added up in place: by itself autograd would fill a tensor of zeros as large as the
    keys for every band, which costs more than the window saves."""

    @staticmethod
    def forward(ctx: Any, of: list[Band], scale: float, *inputs: Tensor) -> Tensor:
        ctx.parts, mixed = [], list[Tensor]()
        for queries, keys in of:
            places = ((..., queries, slice(None)), (..., keys, slice(None)), (..., keys, slice(None)),
                      (..., queries, keys))
            leaves = [x[place].detach().requires_grad_(x.requires_grad)
                      for x, place in zip(inputs, places, strict=True)]
            with torch.enable_grad():
                query, key, value, mask = leaves
                part = F.scaled_dot_product_attention(query, key, value, mask, scale=scale)
            ctx.parts.append((part, leaves, places))
            mixed.append(part.detach())
        ctx.save_for_backward(*inputs)
        return torch.cat(mixed, dim=2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        found = {i: torch.zeros_like(x) for i, x in enumerate(ctx.saved_tensors) if ctx.needs_input_grad[i + 2]}
        for part, leaves, places in ctx.parts:
            gradients = torch.autograd.grad(part, [leaves[i] for i in found], grad[places[0]], retain_graph=True)
            for i, gradient in zip(found, gradients, strict=True):
                found[i][places[i]] += gradient
        return (None, None, *map(found.get, range(len(ctx.saved_tensors))))
