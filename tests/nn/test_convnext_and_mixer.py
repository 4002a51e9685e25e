"""timm's ConvNeXt and MLP-Mixer as they are made here: stem, stages, and nothing left out by chance."""

import pytest
import torch
from torch import nn

from vitbench.models import build
from vitbench.nn.timm_model import switch_off_regularisers
from vitbench.spec import ImageSpec


def test_the_stem_keeps_every_pixel_and_two_of_three_stages_halve_the_image() -> None:
    model = build("convnext", "xs", {}, ImageSpec(28, 3), 10)
    sides, x = [], torch.randn(2, 3, 28, 28)
    for part in (model.stem, *model.stages):
        x = part(x)
        sides.append((x.shape[1], x.shape[2]))
    assert sides == [(9, 28), (9, 28), (18, 14), (36, 7)]


def test_every_pixel_reaches_the_logits() -> None:
    images = torch.randn(1, 1, 8, 8, requires_grad=True)
    build("convnext", "xs", {"layer_scale": 1.0}, ImageSpec(8, 1), 10)(images).square().sum().backward()
    assert (images.grad != 0).all()


@pytest.mark.parametrize("layer_scale", [1e-6, 0.5])
def test_branches_begin_multiplied_by_the_layer_scale(layer_scale: float) -> None:
    model = build("convnext", "s", {"layer_scale": layer_scale}, ImageSpec(8, 1), 10)
    scales = [p for name, p in model.named_parameters() if name.endswith("gamma")]
    assert len(scales) == 3 * 2
    assert all(torch.allclose(p, torch.full_like(p, layer_scale)) for p in scales)


@pytest.mark.parametrize("name", ["convnext", "mixer"])
def test_no_dropout_is_on(name: str) -> None:
    model = build(name, "s", {}, ImageSpec(8, 1), 10)
    assert switch_off_regularisers(model) == []
    next(module for module in model.modules() if isinstance(module, nn.Dropout)).p = 0.5
    assert len(switch_off_regularisers(model)) == 1  # it would have been seen
