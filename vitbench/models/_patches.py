"""What models that cut images into patches have in common."""

from typing import Annotated, Protocol

from pydantic import Field

from vitbench.models import Card, check_patch_size, default_patch_size
from vitbench.spec import ImageSpec

PatchSize = Annotated[int, Field(ge=1, le=64)] | None  # None: 16 tokens or more, see `default_patch_size`


class Patched(Protocol):
    """Options of such a model."""

    @property
    def patch_size(self) -> int | None:
        """As it was chosen; None leaves it to the image size."""


def patch_size(options: Patched, image: ImageSpec) -> int:
    """The chosen patch size, or the default at this image size."""
    return options.patch_size or default_patch_size(image)


def tokens_a_side(options: Patched, image: ImageSpec) -> int:
    """Patches in a row of the image."""
    return image.size // patch_size(options, image)


def whole_image(tokens_a_side: int) -> int:
    """The window from which every token sees every other."""
    return 2 * tokens_a_side - 1


def nearest_window(window: int, most: int) -> int:
    """Itself, where it is odd and at most `most`; else the nearest that is."""
    return min(window - 1 + window % 2, most)


def check(options: Patched, image: ImageSpec) -> None:
    """Raise ModelError where the patches do not fit the image."""
    check_patch_size(patch_size(options, image), image)


def card(options: Patched, image: ImageSpec) -> Card:
    """Patches are embedded as they are; every block normalises by LayerNorm."""
    return {"stem": "none", "patch": patch_size(options, image), "tokens": tokens_a_side(options, image) ** 2,
            "normalisation": "LayerNorm"}
