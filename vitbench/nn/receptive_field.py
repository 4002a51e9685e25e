"""What one place of a convolutional network's last feature map sees: pixels that can reach it, and those that do."""

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import torch
from torch import Tensor, nn

from vitbench.nn.grid import CannotTake

Interval = tuple[int, int]  # first and last


@dataclass(frozen=True)
class ReceptiveField:
    """Of the place in the middle of the last feature map.

    `rows` and `columns` are the first and last pixel that convolutions and pools can bring to it, outside of the image,
    too, which is padded. Statistics over all places (GroupNorm, gates) reach further and are not counted.
    `gradient_HW` is the size of the gradient of the place, summed over its channels, with respect to each pixel:
    absolute, summed over channels of the image, mean over images (Luo et al. 2016, section 3).
    """

    rows: Interval
    columns: Interval
    gradient_HW: Tensor


def receptive_field(model: nn.Module, images: Tensor, *, batch: int = 64) -> ReceptiveField:
    """Of normalised images B x C x H x W. Raises CannotTake for a model that has no last feature map."""
    total_HW = torch.zeros(images.shape[2:], dtype=torch.float64)
    for part in images.split(batch):
        some = part.detach().clone().requires_grad_()
        with torch.enable_grad():
            features_BChw = last_features(model, some)
            row, column = (side // 2 for side in features_BChw.shape[2:])
            of_place = features_BChw[:, :, row, column].sum()
        rows, columns = (seen(features_BChw, some, place, axis) for axis, place in enumerate((row, column)))
        (gradient,) = torch.autograd.grad(of_place, some)
        total_HW += gradient.abs().sum(dim=(0, 1)).double().cpu()
    return ReceptiveField(rows, columns, total_HW / len(images))


def last_features(model: Any, images: Tensor) -> Tensor:
    """The last feature map B x C x h x w: of our networks what `features` gives, of timm's `forward_features`."""
    how = getattr(model, "forward_features", None) or getattr(model, "features", None)
    found = how(images) if callable(how) else None
    if isinstance(found, Tensor) and found.dim() == 4 and found.grad_fn is not None:
        return found
    raise CannotTake(f"{type(model).__name__} has no last feature map to look at: it should have a module `features`, "
                     "or a method `forward_features` as timm's models, that gives images x channels x rows x columns")


def seen(features_BChw: Tensor, images: Tensor, place: int, axis: int) -> Interval:
    """First and last row (axis 0) or column (axis 1) of `images` that can reach the row or column `place`.

    Follows the graph of what was computed, so that branches count: of two ways the wider.
    """
    intervals: dict[Any, Interval] = {features_BChw.grad_fn: (place, place)}
    for node in _from_the_end(features_BChw.grad_fn):
        if getattr(node, "variable", None) is images:
            return intervals[node]
        first, last = _needed(node, *intervals[node], axis)
        for source in _sources(node):
            known = intervals.get(source, (first, last))
            intervals[source] = min(first, known[0]), max(last, known[1])
    raise AssertionError("features are computed from the images")


def _from_the_end(end: Any) -> Iterator[Any]:
    """Each node of the graph after all that use it."""
    used_by: dict[Any, set[Any]] = {end: set()}
    found = [end]
    while found:
        node = found.pop()
        for source in _sources(node):
            if source not in used_by:
                used_by[source] = set()
                found.append(source)
            used_by[source].add(node)
    return iter(TopologicalSorter(used_by).static_order())


def _sources(node: Any) -> list[Any]:
    return [source for source, _ in node.next_functions if source is not None]


def _needed(node: Any, first: int, last: int, axis: int) -> Interval:
    """What an operation takes to give the interval; those that keep places apart take the same."""
    kind, before = node.name(), 0
    if kind.startswith("SliceBackward"):
        if node._saved_dim != 2 + axis:
            return first, last
        return node._saved_start + first * node._saved_step, node._saved_start + last * node._saved_step
    if "Pad" in kind:
        before = (node._saved_pad if kind.startswith("Constant") else node._saved_padding)[2 * (1 - axis)]
        return first - before, last - before
    if kind.startswith("Convolution"):
        kernel, dilation = node._saved_weight.shape[2 + axis], node._saved_dilation[axis]
    elif "Pool2D" in kind and not kind.startswith("Adaptive"):
        kernel, dilation = node._saved_kernel_size[axis], getattr(node, "_saved_dilation", (1, 1))[axis]
    else:
        return first, last
    stride, padding = (node._saved_stride or node._saved_kernel_size)[axis], node._saved_padding[axis]
    return first * stride - padding, last * stride - padding + dilation * (kernel - 1)
