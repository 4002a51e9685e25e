"""Stochastic depth (Huang et al. 2016): in training, residual branches are left out at random, image by image."""

from functools import partial

import torch
from torch import nn
from torchvision.ops import StochasticDepth

from vitbench.spec import ImageSpec


def set_stochastic_depth(model: nn.Module, rate: float, image: ImageSpec) -> None:
    """Leave out branches of the last block at `rate`, of earlier ones linearly less; nothing where there are none.

    A block is a module with an attribute `drop_path...` that does nothing yet (None, Identity, timm's DropPath): a
    module takes its place. Blocks are counted in the order in which an image passes their branches; some of timm's
    have no shortcut, and are passed by. Parameters, buffers and their names stay, and the model is in training mode.
    """
    passed: dict[nn.Module, list[StochasticDepth]] = {}
    hooks = []
    for block, name in [(module, name) for module in model.modules() for name in _places(module)]:
        branch = StochasticDepth(0.0, mode="row")
        setattr(block, name, branch)
        hooks.append(branch.register_forward_hook(partial(_note, passed, block)))
    with torch.no_grad():
        model.eval()(torch.zeros(1, image.channels, image.size, image.size))
    for hook in hooks:
        hook.remove()
    for depth, branches in enumerate(passed.values(), start=1):
        for branch in branches:
            branch.p = rate * (depth / len(passed))
    model.train()


def stochastic_depth_of(model: nn.Module) -> float:
    """The largest rate that is set; 0 where there is none."""
    return max((module.p for module in model.modules() if isinstance(module, StochasticDepth)), default=0.0)


def _places(block: nn.Module) -> list[str]:
    return [name for name, value in {**vars(block), **dict(block.named_children())}.items()
            if name.startswith("drop_path")
            and (value is None or isinstance(value, nn.Identity) or type(value).__name__ == "DropPath")]


def _note(passed: dict[nn.Module, list[StochasticDepth]], block: nn.Module, branch: StochasticDepth,
          *_: object) -> None:
    passed.setdefault(block, []).append(branch)
