"""A plain convolutional network whose first layer keeps every pixel, for small images."""

from torch import nn

from vitbench.nn.stages import Stages, convolution


def convnet(*, channels: int, num_classes: int, width: int, convs_per_stage: int,
            normalisation: str) -> Stages:
    """3 x 3 convolutions, each followed by normalisation and ReLU."""
    def part(before: int, after: int, stride: int) -> list[nn.Module]:
        return [*convolution(before, after, stride, normalisation), nn.ReLU(inplace=True)]

    return Stages(part, channels=channels, num_classes=num_classes, width=width, parts_per_stage=convs_per_stage,
                  normalisation=normalisation)
