"""Two things far apart on an empty canvas; are they of one kind? To answer, the whole image must be seen at once."""

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from vitbench.datasets import DATASETS, Arrays, UInt8, _made_up
from vitbench.datasets._made_up import PAIR_CLASSES, PAIRS_KEEP, THING, Draws, Ints, MadeUp, pair


class Options(_made_up.Options):
    """A square window narrower than `distance` - 4 pixels never holds a part of both things."""

    distance: Annotated[int, Field(ge=THING, description="pixels between the centres, in rows or in columns")] = 20

    @field_validator("distance")
    @classmethod
    def _fits(cls, distance: int, info: ValidationInfo) -> int:
        canvas = info.data.get("canvas")
        if canvas is not None and distance > canvas - THING:
            raise ValueError(f"should be at most {canvas - THING} on a canvas of {canvas} pixels, where each thing "
                             f"takes {THING}")
        return distance


def _draw(draws: Draws, labels: Ints, options: Options) -> UInt8:
    return pair(draws, labels, options, distance=options.distance)


FAR_PAIRS = MadeUp("far_pairs", Options, PAIR_CLASSES, _draw,
                   keeps_labels=PAIRS_KEEP,
                   sha256="38cd1ab570810e17b7674ab0ba483d7abb90a7852566922aebf25a745b269a0f")


@DATASETS.add("far_pairs", FAR_PAIRS.meta())
def far_pairs(options: Options) -> Arrays:
    """Class 1 where both things are of one of three kinds, class 0 where they differ."""
    return FAR_PAIRS.arrays(options)
