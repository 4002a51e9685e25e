"""Weights read out of a model, fused or not; a head taken away."""

import pytest
import torch

from vitbench.models import build
from vitbench.nn.looking import attention_layers, looks, without_head
from vitbench.spec import ImageSpec


def model_of(**options: object) -> torch.nn.Module:
    torch.manual_seed(1)
    return build("token_transformer", "s", {"depth": 2, "num_heads": 4} | options, ImageSpec(8, 1), 5).eval()


def images() -> torch.Tensor:
    return torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("options", [{}, {"positions": "relative"}, {"span": "window", "window": 3},
                                     {"positions": "rotary", "pooling": "cls"}], ids=str)
def test_weights_are_the_same_whether_the_layer_is_fused_or_not(options: dict) -> None:
    model = model_of(**options)
    fused = looks(model, images())
    for layer in attention_layers(model).values():
        layer.written_out = True
    for one, other in zip(fused, looks(model, images()), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)
        assert one.shape == (3, 4, *[16 + (options.get("pooling") == "cls")] * 2)
        torch.testing.assert_close(one.sum(-1), torch.ones(one.shape[:3]))


def test_a_model_without_attention_has_nothing_to_look_at() -> None:
    assert looks(build("convnet", "xs", {}, ImageSpec(8, 1), 5), images()) == []


def test_without_a_head_its_part_of_the_merge_has_nothing_to_do() -> None:
    model = model_of()
    layer = attention_layers(model)["blocks.1.attention"]
    before = model(images())
    with without_head(layer, 2):
        removed = model(images())
    layer.merge.weight.data[:, 32:48] = 0  # of head 2: 16 numbers each
    torch.testing.assert_close(model(images()), removed)
    assert (removed - before).abs().max() > 1e-3


def test_all_is_as_before_when_it_was_looked_at() -> None:
    model = model_of()
    before = model(images())
    looks(model, images())
    with without_head(attention_layers(model)["blocks.0.attention"], 0):
        pass
    assert torch.equal(model(images()), before)
