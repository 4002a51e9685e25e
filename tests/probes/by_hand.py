"""Transformers whose weights are known: even ones, where all queries are 0, and ones that look at themselves alone."""

from typing import Any

import torch
from torch import Tensor

from vitbench.models.token_transformer import Options, token_transformer
from vitbench.nn.attention import SelfAttention
from vitbench.nn.looking import attention_layers
from vitbench.nn.token_transformer import TokenTransformer
from vitbench.spec import ImageSpec


def transformer(*, side: int = 2, image: int = 8, **options: Any) -> TokenTransformer:
    """One of two layers with two heads, in evaluation mode; weights from a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        of_side = {"tokens": "pixel"} if side == 1 else {"patch_size": side}
        given = Options(**{"embed_dim": 8, "depth": 2, "num_heads": 2, **of_side, **options})
        model = token_transformer(ImageSpec(image, 1), 3, given)
        assert isinstance(model, TokenTransformer)
        return model.eval()


def even(**options: Any) -> TokenTransformer:
    """Every query is 0, so all scores are."""
    model = transformer(**options)
    for layer in attention_layers(model).values():
        silent(layer)
    return model


def silent(layer: SelfAttention) -> None:
    """Queries of 0."""
    D = layer.merge.in_features
    layer.query_key_value.weight.data[:D] = 0
    layer.query_key_value.bias.data[:D] = 0


def selfish(**options: Any) -> TokenTransformer:
    """Relative positions so strong that every token sees itself alone."""
    model = even(positions="relative", **options)
    for layer in attention_layers(model).values():
        assert layer.relative is not None
        table_HO = layer.relative.table_HO.data
        table_HO[:] = 0
        table_HO[:, table_HO.shape[1] // 2] = 1e4  # the offset of no step stands in the middle
    return model


def images(count: int = 3, side: int = 8) -> Tensor:
    return torch.randn(count, 1, side, side, generator=torch.Generator().manual_seed(1))
