"""Made-up images: image i follows from seed, part and i alone, whatever their number, chunk or order.

Its random bytes come from Philox (Salmon et al. 2011), a generator that is a function of a counter, and each image has
counters of its own. Only raw bits are taken, which NumPy promises never to change, and only whole numbers are computed,
so that every machine draws the same images.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from vitbench.datasets import Arrays, DatasetMeta, UInt8
from vitbench.spec import Duplicates, Frozen, ImageSpec

Ints = npt.NDArray[np.int64]
TRAIN, TEST = 0, 1  # random streams
CHUNK = 1024  # images drawn at once: their arrays stay near the processor's caches
NUMBERS = 16  # of 32 bits, of each image as a whole; the bytes of its pixels follow
NOISE_LEVELS = 64  # of grey, on every canvas
FAINTEST, BRIGHTEST = 49, 192  # what a shape adds to the noise; 63 + 192 is white
HIDDEN = 32  # one shape in so many is eight times fainter: no model is right always, so that good ones can still differ


class Options(Frozen):
    """What every made-up dataset takes."""

    canvas: Annotated[int, Field(ge=16, le=128, multiple_of=4, description="pixels a side")] = 28
    images: Annotated[int, Field(ge=100, le=100_000_000, description="of training")] = 20_000
    test_images: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    seed: Annotated[int, Field(ge=0, lt=2**32, description="of the images; no run's seed")] = 0


class Draws:
    """Random numbers of `count` images from `first` on."""

    def __init__(self, key: tuple[int, int], first: int, count: int, pixels: int) -> None:
        blocks = -(-(4 * NUMBERS + pixels) // 32)  # a counter gives 32 bytes
        philox = np.random.Philox(key=np.array(key, np.uint64), counter=first * blocks)
        words = philox.random_raw(4 * blocks * count).astype("<u8", copy=False)
        rows = words.view(np.uint8).reshape(count, 32 * blocks)
        self._numbers = rows[:, :4 * NUMBERS].copy().view("<u4").astype(np.int64)
        self._pixels = rows[:, 4 * NUMBERS:]
        self._taken = 0

    def below(self, limit: int | Ints) -> Ints:
        """The next number of each image: 0 to limit - 1, evenly but for a share of limit / 2^32."""
        number = self._numbers[:, self._taken]
        self._taken += 1
        return number * limit >> 32

    def noise(self, side: int) -> UInt8:
        """Evenly spread bytes, images x side x side."""
        return self._pixels[:, :side * side].reshape(-1, side, side)


@dataclass(frozen=True)
class MadeUp:
    """One made-up dataset. `draw` gives images x canvas x canvas of the given labels; `margin` is what it needs of
    noise beyond the canvas. `sha256` is that of the dataset with its default options."""

    name: str
    options: type[Options]
    class_names: tuple[str, ...]
    draw: Callable[[Draws, Ints, Any], UInt8]
    keeps_labels: tuple[str, ...]
    sha256: str
    margin: int = 0

    def labels(self, first: int, count: int) -> Ints:
        """Classes take turns, so that their numbers are known before anything is drawn."""
        return np.arange(first, first + count) % len(self.class_names)

    def images(self, options: Options, part: int, first: int, count: int) -> UInt8:
        """Images `first` to first + count - 1 of a part, count x 1 x canvas x canvas."""
        images = np.empty((count, 1, options.canvas, options.canvas), np.uint8)
        for start in range(0, count, CHUNK):
            chunk = images[start:start + CHUNK, 0]
            draws = Draws((options.seed, part), first + start, len(chunk), (options.canvas + self.margin) ** 2)
            chunk[:] = self.draw(draws, self.labels(first + start, len(chunk)), options)
        return images

    def arrays(self, options: Options) -> Arrays:
        """Both parts, from separate streams."""
        train, test = options.images, options.test_images
        return Arrays(self.images(options, TRAIN, 0, train), self.labels(0, train).astype(np.uint8),
                      self.images(options, TEST, 0, test), self.labels(0, test).astype(np.uint8))

    def meta(self, options: Options | None = None) -> DatasetMeta:
        """What is known of it without drawing. No two images are alike: `load` counts, and refuses others."""
        asked, classes = options or self.options(), len(self.class_names)
        train, test = asked.images, asked.test_images
        return DatasetMeta(
            version=1, image=ImageSpec(size=asked.canvas, channels=1), class_names=self.class_names,
            train_counts=tuple(len(range(c, train, classes)) for c in range(classes)),
            test_counts=tuple(len(range(c, test, classes)) for c in range(classes)),
            source=f"made up by vitbench.datasets.{self.name}", licence="Apache-2.0",
            citation="made up by vitbench; its random numbers: J. Salmon, M. Moraes, R. Dror, D. Shaw (2011). Parallel "
                     "Random Numbers: as Easy as 1, 2, 3. doi:10.1145/2063384.2063405",
            split=f"made up: {train:,} training and {test:,} test images from separate random streams of seed "
                  f"{asked.seed}",
            keeps_labels=self.keeps_labels, sha256=None if options else self.sha256,
            duplicates=Duplicates(test_in_train=0, within_train=0), at_hand=lambda: "made up when it is needed",
            options=self.options, variant=self.meta)


def canvas_of(draws: Draws, options: Options) -> UInt8:
    """An empty canvas: faint noise, which makes every image another."""
    return draws.noise(options.canvas) // (256 // NOISE_LEVELS)


def stamp(images: UInt8, shapes: UInt8, corners: Sequence[Ints], draws: Draws) -> None:
    """Add to each image its shape (of zeros and ones), as bright as chance has it; corners are rows and columns."""
    side = np.arange(shapes.shape[-1])
    brightness = FAINTEST + draws.below(BRIGHTEST - FAINTEST + 1)
    brightness[draws.below(HIDDEN) == 0] //= 8
    rows, columns = (corner[:, None] + side for corner in corners)
    images[np.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None]] += (
        shapes * brightness.astype(np.uint8)[:, None, None])


THING = 6  # pixels a side
_Y, _X = np.mgrid[:THING, :THING]
# Lying stripes, standing stripes, chequers: half of the pixels of each are lit, so that brightness tells none apart.
THINGS = np.stack([_Y % 2 == 0, _X % 2 == 0, (_Y + _X) % 2 == 0]).astype(np.uint8)
PAIR_CLASSES = ("different", "same")
# Not shift and erase: a thing could go. Not rotate, shear and sharpness: stripes of one pixel would blur.
PAIRS_KEEP = ("flip", "intensity", "contrast")


def pair(draws: Draws, labels: Ints, options: Options, *, distance: int) -> UInt8:
    """Two things, their centres `distance` apart in rows or in columns and no further in the other; the class is
    whether they are of one kind.

    In both classes each of the two is of every kind equally often, and places depend on neither.
    """
    kinds = draws.below(len(THINGS))
    others = (kinds + (1 - labels) * (1 + draws.below(len(THINGS) - 1))) % len(THINGS)
    far, aside = distance * (2 * draws.below(2) - 1), draws.below(2 * distance + 1) - distance
    turned = draws.below(2) == 1
    offsets = np.where(turned, far, aside), np.where(turned, aside, far)
    free = options.canvas - THING + 1
    first = [draws.below(free - np.abs(offset)) + np.maximum(0, -offset) for offset in offsets]
    images = canvas_of(draws, options)
    stamp(images, THINGS[kinds], first, draws)
    stamp(images, THINGS[others], [corner + offset for corner, offset in zip(first, offsets, strict=True)], draws)
    return images
