"""Looking into a model that attends: the weights of every layer, whichever way the layer computes its output."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from vitbench.nn.attention import SelfAttention
from vitbench.nn.grid import Grid


def attention_layers(model: nn.Module) -> dict[str, SelfAttention]:
    """The self-attention layers of a model by the name of their module, the first first."""
    return {name: module for name, module in model.named_modules() if isinstance(module, SelfAttention)}


def inputs_of_layers(model: nn.Module, images: Tensor) -> list[tuple[SelfAttention, tuple[Tensor, Grid]]]:
    """Each self-attention layer with the tokens B x M x D and the grid that it was given for normalised images, in the
    order of the forward pass: `layer.weights(*given)`, `layer.project(*given)`."""
    found: list[tuple[SelfAttention, tuple[Tensor, Grid]]] = []
    hooks = [layer.register_forward_pre_hook(lambda layer, given: found.append((layer, given)))
             for layer in attention_layers(model).values()]
    try:
        with torch.no_grad():
            model(images)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def looks(model: nn.Module, images: Tensor) -> list[Tensor]:
    """The weights of each layer on normalised images, B x H x M x M: rows are queries.

    The layers run as they do in training, fused where they can; the weights are written out beside it.
    """
    given = inputs_of_layers(model, images)
    with torch.no_grad():
        return [layer.weights(*inputs) for layer, inputs in given]


@contextmanager
def without_head(layer: SelfAttention, head: int) -> Iterator[None]:
    """Within, what one head has mixed is 0 before heads are merged."""
    def silence(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        by_head = inputs[0].unflatten(2, (layer.num_heads, -1)).clone()
        by_head[:, :, head] = 0
        return (by_head.flatten(2),)

    hook = layer.merge.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        hook.remove()
