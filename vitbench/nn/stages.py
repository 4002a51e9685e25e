"""The skeleton of our convolutional networks: a stem, three stages, the mean over places, a linear head."""

from collections.abc import Callable, Iterable
from math import gcd

from torch import Tensor, nn

NORMALISATIONS: dict[str, Callable[[int], nn.Module]] = {
    "batch": nn.BatchNorm2d,
    "layer": lambda channels: nn.GroupNorm(1, channels),  # over channels and places (Ba et al. 2016); as many weights
    "group": lambda channels: nn.GroupNorm(gcd(channels, 8), channels),  # a count that divides every width
}


def convolution(channels_in: int, channels_out: int, stride: int, normalisation: str) -> list[nn.Module]:
    """A 3 x 3 convolution and its normalisation."""
    return [nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False),
            NORMALISATIONS[normalisation](channels_out)]


class Stages(nn.Module):
    """A 3 x 3 stem of stride 1, three stages of parts (width, 2 width, 4 width; the second and third begin with
    stride 2), the mean over places, a linear head. `part` gives the modules of (channels in, channels out, stride)."""

    def __init__(self, part: Callable[[int, int, int], Iterable[nn.Module]], *, channels: int, num_classes: int,
                 width: int, parts_per_stage: int, normalisation: str) -> None:
        super().__init__()
        layers = [*convolution(channels, width, 1, normalisation), nn.ReLU(inplace=True)]
        before = width
        for stage in range(3):
            after = width * 2**stage
            for i in range(parts_per_stage):
                layers += part(before, after, 2 if stage > 0 and i == 0 else 1)
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
