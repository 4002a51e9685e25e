"""Stochastic depth is there where a regime sets it, and nowhere else."""

import copy

import pytest
import torch
from torch import nn
from torchvision.ops import StochasticDepth

from vitbench.models import build
from vitbench.nn.stochastic_depth import set_stochastic_depth, stochastic_depth_of
from vitbench.spec import ImageSpec

GREY, COLOUR = ImageSpec(8, 1), ImageSpec(32, 3)
WITH = [("token_transformer", "s", GREY, [0.05, 0.1]), ("resnet", "xs", GREY, [1 / 30, 2 / 30, 0.1]),
        ("window_fc", "s", GREY, [0.05, 0.1]), ("convnext", "xs", GREY, [1 / 30, 2 / 30, 0.1]),
        ("mixer", "s", GREY, [0.05, 0.1]),
        ("timm/test_resnet", None, COLOUR, [0.025, 0.05, 0.075, 0.1]),  # drop_path is None
        ("timm/test_vit", None, COLOUR, [i / 60 for i in range(1, 7)]),  # Identity
        ("timm/nest_tiny_jx", None, COLOUR, None)]  # DropPath, switched off by us
WITHOUT = [("convnet", "xs", GREY), ("linear", None, GREY), ("mlp", "xs", GREY), ("timm/densenet121", None, COLOUR),
           ("timm/ghostnet_050", None, COLOUR)]  # whose one place for it has no shortcut


def made(name: str, size: str | None, image: ImageSpec) -> nn.Module:
    torch.manual_seed(4)
    model = build(name, size, {}, image, 10)
    for parameter in model.parameters():
        if parameter.abs().max() < 1e-5:  # of branches that begin as nothing, or nearly
            nn.init.normal_(parameter)
    return model


def images(image: ImageSpec) -> torch.Tensor:
    return torch.randn(6, image.channels, image.size, image.size, generator=torch.Generator().manual_seed(0))


def rates(model: nn.Module) -> list[float]:
    return [m.p for m in model.modules() if isinstance(m, StochasticDepth) and m.p]


@pytest.mark.parametrize(("name", "size", "image", "expected"), WITH)
def test_blocks_are_left_out_the_more_the_deeper(name: str, size: str | None, image: ImageSpec,
                                                 expected: list[float] | None) -> None:
    model = made(name, size, image)
    assert rates(model) == []
    assert stochastic_depth_of(model) == 0.0
    set_stochastic_depth(model, 0.1, image)
    found = rates(model)
    assert stochastic_depth_of(model) == 0.1
    assert sorted(found) == found
    assert found[-1] == 0.1
    assert expected is None or sorted(set(found)) == pytest.approx(expected)


@pytest.mark.parametrize(("name", "size", "image", "expected"), WITH)
def test_training_draws_by_image_and_evaluation_stays_as_it_was(name: str, size: str | None, image: ImageSpec,
                                                                expected: object) -> None:
    model, plain, x = made(name, size, image), made(name, size, image), images(image)
    set_stochastic_depth(model, 0.5, image)
    assert model.training
    assert list(model.state_dict()) == list(plain.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), plain.state_dict().values(), strict=True))
    with torch.no_grad():
        assert torch.equal(model.eval()(x), plain.eval()(x))
        for module in model.modules():  # so that chance alone can make training differ
            module.training = isinstance(module, StochasticDepth)
        torch.manual_seed(1)
        other = (model(x) - plain(x)).abs().amax(dim=1) > 1e-6
        torch.manual_seed(1)
        assert torch.equal((model(x) - plain(x)).abs().amax(dim=1) > 1e-6, other)
    assert other.any()


@pytest.mark.parametrize(("name", "size", "image"), WITHOUT)
def test_a_model_without_residual_branches_has_none(name: str, size: str | None, image: ImageSpec) -> None:
    model, x = made(name, size, image), images(image)
    before = copy.deepcopy(model)
    set_stochastic_depth(model, 0.9, image)
    assert rates(model) == []
    assert stochastic_depth_of(model) == 0.0
    state = torch.get_rng_state()
    model(x)
    assert torch.equal(state, torch.get_rng_state()) or any(isinstance(m, nn.Dropout) for m in before.modules())


def test_a_model_as_built_draws_nothing_and_counts_no_new_part() -> None:
    for name, size, image, _ in WITH[:5]:
        model = made(name, size, image)
        state = torch.get_rng_state()
        model(images(image))
        assert torch.equal(state, torch.get_rng_state())
        assert not any(isinstance(module, StochasticDepth) for module in model.modules())
