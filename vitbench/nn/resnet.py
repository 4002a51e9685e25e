"""The residual network for small images of He et al. 2016, section 4.2."""

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from vitbench.nn.stages import Stages, convolution


class Block(nn.Module):
    """Two 3 x 3 convolutions added to their input. Where they halve the image, the shortcut takes every second
    pixel and fills the new channels with zeros: it has no parameters (option A of the paper)."""

    def __init__(self, channels_in: int, channels_out: int, stride: int, normalisation: str) -> None:
        super().__init__()
        self.stride, self.new_channels = stride, channels_out - channels_in
        self.residual = nn.Sequential(*convolution(channels_in, channels_out, stride, normalisation),
                                      nn.ReLU(inplace=True), *convolution(channels_out, channels_out, 1, normalisation))
        self.drop_path: nn.Module | None = None  # vitbench.nn.stochastic_depth sets it

    def forward(self, x_BCSS: Tensor) -> Tensor:
        """B x C x S x S to B x channels_out x S/stride x S/stride, rounded up."""
        shortcut_BCSS = x_BCSS
        if self.stride > 1 or self.new_channels:
            shortcut_BCSS = F.pad(x_BCSS[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.new_channels))
        residual_BCSS = self.residual(x_BCSS)
        return F.relu(shortcut_BCSS + (residual_BCSS if self.drop_path is None else self.drop_path(residual_BCSS)))


def resnet(*, channels: int, num_classes: int, width: int, blocks_per_stage: int, normalisation: str) -> Stages:
    """Stages of blocks: 6 blocks_per_stage + 2 layers with weights."""
    return Stages(lambda before, after, stride: [Block(before, after, stride, normalisation)],
                  channels=channels, num_classes=num_classes, width=width, parts_per_stage=blocks_per_stage,
                  normalisation=normalisation)
