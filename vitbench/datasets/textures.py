"""Noise whose neighbours along one of four directions are alike: local statistics decide, places say nothing."""

import numpy as np

from vitbench.datasets import DATASETS, Arrays, UInt8
from vitbench.datasets._made_up import Draws, Ints, MadeUp, Options

# Where a pixel's neighbour lies: rows and columns from the pixel's own place in the noise, which has a margin of 1.
DIRECTIONS = {"lying": ((0, 0), (0, 1)), "standing": ((0, 0), (1, 0)),
              "falling": ((0, 0), (1, 1)), "rising": ((0, 1), (1, 0))}
OWN, NEIGHBOUR = 7, 1  # weights: neighbours along the direction correlate by 7 / (7^2 + 1^2) = .14, others not at all


def _draw(draws: Draws, labels: Ints, options: Options) -> UInt8:
    noise = draws.noise(options.canvas + 1).astype(np.uint16)
    images = np.empty((len(labels), options.canvas, options.canvas), np.uint8)
    for label, places in enumerate(DIRECTIONS.values()):
        own, other = (noise[labels == label, y:y + options.canvas, x:x + options.canvas] for y, x in places)
        images[labels == label] = (OWN * own + NEIGHBOUR * other) // (OWN + NEIGHBOUR)
    return images


# Not flip: it turns falling into rising. A part of a texture has the statistics of the whole.
TEXTURES = MadeUp("textures", Options, tuple(DIRECTIONS), _draw,
                  keeps_labels=("shift", "intensity", "contrast", "erase", "mixup", "cutmix"), margin=1,
                  sha256="5f3879602e1878a9d8bb9d626fb60a1f2a7d5cb364c3ebe881ac99a2bf35028b")


@DATASETS.add("textures", TEXTURES.meta())
def textures(options: Options) -> Arrays:
    """Each pixel alone, and each mean over images, is the same in all four classes."""
    return TEXTURES.arrays(options)
