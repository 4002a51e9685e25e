"""Two things side by side on an empty canvas; are they of one kind? As `far_pairs`, but a small window can tell."""

from vitbench.datasets import DATASETS, Arrays, UInt8
from vitbench.datasets._made_up import PAIR_CLASSES, PAIRS_KEEP, THING, Draws, Ints, MadeUp, Options, pair


def _draw(draws: Draws, labels: Ints, options: Options) -> UInt8:
    return pair(draws, labels, options, distance=THING)  # they touch


NEAR_PAIRS = MadeUp("near_pairs", Options, PAIR_CLASSES, _draw,
                    keeps_labels=PAIRS_KEEP,
                    sha256="0b9c0135fa5e9d16c16013921e2fbb02114f533cbd5e98e341fe25d49df27b01")


@DATASETS.add("near_pairs", NEAR_PAIRS.meta())
def near_pairs(options: Options) -> Arrays:
    """The same things, brightnesses and questions as in `far_pairs` of the same seed; they touch."""
    return NEAR_PAIRS.arrays(options)
