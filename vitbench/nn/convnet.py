"""A plain convolutional network whose first layer keeps every pixel, for small images."""

from torch import nn

from vitbench.nn.stages import Stages, convolution


def convnet(*, channels: int, num_classes: int, width: int, convs_per_stage: int) -> Stages:
    """3 x 3 convolutions, each followed by batch normalisation and ReLU."""
    return Stages(lambda before, after, stride: [*convolution(before, after, stride), nn.ReLU(inplace=True)],
                  channels=channels, num_classes=num_classes, width=width, parts_per_stage=convs_per_stage)
