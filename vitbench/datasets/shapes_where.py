"""One shape on an empty canvas; in which quarter does it stand? Only its place decides."""

from math import lcm

import numpy as np

from vitbench.datasets import DATASETS, Arrays, UInt8
from vitbench.datasets._made_up import Draws, Ints, MadeUp, Options, canvas_of, stamp

SIDE = 7  # of a shape, in pixels
_Y, _X = np.mgrid[-3:4, -3:4]
# Disc, frame, cross, triangle: what it is says nothing.
SHAPES = np.stack([_Y**2 + _X**2 <= 10, np.maximum(abs(_Y), abs(_X)) == 3, (abs(_Y) <= 1) | (abs(_X) <= 1),
                   abs(_X) <= (_Y + 3) // 2]).astype(np.uint8)
FEWEST_PATCHES = 4  # a side


def places(canvas: int) -> int:
    """Rows, and columns, at which a shape may begin in each quarter.

    A multiple of every patch size that does not divide half the canvas, so that the place of a shape within its patch
    is the same in all quarters, and a model that knows no places is left with nothing.
    """
    patches = [p for p in range(1, canvas // FEWEST_PATCHES + 1) if canvas % p == 0 and canvas // 2 % p]
    step, free = lcm(*patches), canvas // 2 - SIDE + 1
    return free // step * step


def _draw(draws: Draws, labels: Ints, options: Options) -> UInt8:
    images, free = canvas_of(draws, options), places(options.canvas)
    corners = [quarter * (options.canvas // 2) + draws.below(free) for quarter in (labels // 2, labels % 2)]
    stamp(images, SHAPES[draws.below(len(SHAPES))], corners, draws)
    return images


# Nothing that moves the shape.
SHAPES_WHERE = MadeUp("shapes_where", Options, ("top left", "top right", "bottom left", "bottom right"), _draw,
                      keeps_labels=("intensity", "contrast", "sharpness"),
                      sha256="e961c813a80b688d8e5d2a2da23965a8663e281cb1bc1430c56ddd2d317c367b")


@DATASETS.add("shapes_where", SHAPES_WHERE.meta())
def shapes_where(options: Options) -> Arrays:
    """A disc, frame, cross or triangle in one of four quarters."""
    return SHAPES_WHERE.arrays(options)
