"""The residual network for small images of He et al. 2016, section 4.2."""

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn


def _convolution(channels_in: int, channels_out: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False), nn.BatchNorm2d(channels_out)]


class Block(nn.Module):
    """Two 3 x 3 convolutions added to their input. Where they halve the image, the shortcut takes every second
    pixel and fills the new channels with zeros: it has no parameters (option A of the paper)."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.stride, self.new_channels = stride, channels_out - channels_in
        self.residual = nn.Sequential(*_convolution(channels_in, channels_out, stride), nn.ReLU(inplace=True),
                                      *_convolution(channels_out, channels_out, 1))

    def forward(self, x_BCSS: Tensor) -> Tensor:
        """B x C x S x S to B x channels_out x S/stride x S/stride, rounded up."""
        shortcut_BCSS = x_BCSS
        if self.stride > 1 or self.new_channels:
            shortcut_BCSS = F.pad(x_BCSS[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.new_channels))
        return F.relu(shortcut_BCSS + self.residual(x_BCSS))


class ResNet(nn.Module):
    """A 3 x 3 stem of stride 1, three stages of blocks (width, 2 width, 4 width; the second and third begin with
    stride 2), the mean over places, a linear head: 6 blocks_per_stage + 2 layers with weights."""

    def __init__(self, *, channels: int, num_classes: int, width: int, blocks_per_stage: int) -> None:
        super().__init__()
        layers = [*_convolution(channels, width, 1), nn.ReLU(inplace=True)]
        before = width
        for stage in range(3):
            after = width * 2**stage
            for i in range(blocks_per_stage):
                layers.append(Block(before, after, 2 if stage > 0 and i == 0 else 1))
                before = after
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(before, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")  # He et al. 2015

    def forward(self, x_BCSS: Tensor) -> Tensor:
        """Normalised images B x C x S x S to logits B x classes."""
        logits_BC: Tensor = self.head(self.features(x_BCSS).mean(dim=(2, 3)))
        return logits_BC
