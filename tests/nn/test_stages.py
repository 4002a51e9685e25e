"""The normalisations of our convolutional networks against a few lines of float64 NumPy."""

import numpy as np
import pytest
import torch

from vitbench.models import MODELS, build, resolve
from vitbench.nn.stages import NORMALISATIONS
from vitbench.spec import ImageSpec


def normalised(x_BCSS: np.ndarray, groups: int) -> np.ndarray:
    """Mean 0 and variance 1 over the channels of a group and all places, image by image."""
    B, C, S, _ = x_BCSS.shape
    x_BGR = x_BCSS.reshape(B, groups, -1)
    return ((x_BGR - x_BGR.mean(2, keepdims=True)) / np.sqrt(x_BGR.var(2, keepdims=True) + 1e-5)).reshape(B, C, S, S)


@pytest.mark.parametrize(("normalisation", "channels", "groups"), [
    ("layer", 12, 1), ("group", 12, 4), ("group", 32, 8), ("group", 14, 2), ("group", 9, 1)])
def test_layer_and_group_normalisation_are_what_the_formula_says(normalisation: str, channels: int,
                                                                 groups: int) -> None:
    x_BCSS = torch.randn(2, channels, 5, 5, dtype=torch.float64) * 3 + 1
    found = NORMALISATIONS[normalisation](channels).double()(x_BCSS)
    np.testing.assert_allclose(found.detach().numpy(), normalised(x_BCSS.numpy(), groups), atol=1e-12)


@pytest.mark.parametrize("name", ["convnet", "resnet"])
@pytest.mark.parametrize("size", ["xs", "s", "m", "l", "xl"])
def test_every_normalisation_has_as_many_parameters_and_a_name_on_the_card(name: str, size: str) -> None:
    image, counts, named = ImageSpec(8, 1), set(), []
    for normalisation in NORMALISATIONS:
        options = {"normalisation": normalisation}
        with torch.device("meta"):
            counts.add(sum(p.numel() for p in build(name, size, options, image, 10).parameters()))
        named.append(MODELS.get(name).meta.card(resolve(name, size, options)[0], image)["normalisation"])
    assert len(counts) == 1
    assert named == ["BatchNorm", "LayerNorm", "GroupNorm, gcd(channels, 8) groups"]


@pytest.mark.parametrize(("normalisation", "alone"), [("batch", False), ("layer", True), ("group", True)])
def test_in_training_batch_normalisation_alone_looks_at_the_other_images(normalisation: str, alone: bool) -> None:
    model = build("resnet", "xs", {"normalisation": normalisation}, ImageSpec(8, 1), 10).train()
    images = torch.randn(4, 1, 8, 8)
    assert torch.allclose(model(images)[:2], model(images[:2]), atol=1e-5) is alone
