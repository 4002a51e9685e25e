"""timm's ConvNeXt for small images (Liu et al. 2022): a stem that keeps every pixel, three stages in place of four."""

from timm.models.convnext import ConvNeXt
from torch import nn


def convnext(*, channels: int, num_classes: int, width: int, blocks_per_stage: int, layer_scale: float) -> ConvNeXt:
    """A 3 x 3 stem of stride 1, stages of `width`, 2 and 4 times as many channels; no dropout, no stochastic depth.

    Halving has no padding, as in timm: of an odd side the last row and column are seen by their neighbours alone.
    """
    depths = (blocks_per_stage,) * 3
    model = ConvNeXt(in_chans=channels, num_classes=num_classes, patch_size=3, ls_init_value=layer_scale,
                     depths=(*depths, 0), dims=(width, 2 * width, 4 * width, 4 * width))
    stem = model.stem[0]
    assert isinstance(stem, nn.Conv2d)
    stem.stride, stem.padding = (1, 1), (1, 1)
    model.stages = model.stages[:3]  # timm makes four: the last one would halve the image once more
    return model
