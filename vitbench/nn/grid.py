"""Where the tokens of a batch lie: rows and columns in raster order, and which of them are padding."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn


class CannotTake(ValueError):
    """Images that a built model has no answer for; the message says what it can take."""


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid of `height` x `width` tokens, shared by all images of a batch.

    Where images of several sizes are padded to it, `sizes_B2` holds the rows and columns of each: its tokens are
    those of the upper left corner.
    """

    height: int
    width: int
    device: torch.device | None = None
    sizes_B2: Tensor | None = None

    @property
    def tokens(self) -> int:
        """Places of the grid, N."""
        return self.height * self.width

    def is_whole(self, height: int, width: int) -> bool:
        """True for that many rows and columns without padding."""
        return self.sizes_B2 is None and (self.height, self.width) == (height, width)

    @cached_property
    def places_N2(self) -> Tensor:
        """Row and column of each token."""
        rows_N = torch.arange(self.height, device=self.device).repeat_interleave(self.width)
        columns_N = torch.arange(self.width, device=self.device).repeat(self.height)
        return torch.stack([rows_N, columns_N], dim=1)

    @property
    def offsets_NN2(self) -> Tensor:
        """Rows and columns from each query's place to each key's."""
        return self.places_N2[None] - self.places_N2[:, None]

    @cached_property
    def raster(self) -> Tensor:
        """Number of each token in the raster order of its own image, N, or B x N where sizes differ."""
        rows_N, columns_N = self.places_N2.unbind(1)
        if self.sizes_B2 is None:
            return rows_N * self.width + columns_N
        return rows_N * self.sizes_B2[:, 1:] + columns_N

    @cached_property
    def real_BN(self) -> Tensor | None:
        """False where a token is padding; None where none is."""
        if self.sizes_B2 is None:
            return None
        return (self.places_N2 < self.sizes_B2[:, None]).all(dim=2)


class OfGrid(nn.Module, ABC):
    """A table that depends on the grid alone. The one of the training images is kept, others are made when asked."""

    kept: Tensor

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self._shape = (grid.height, grid.width)
        self.register_buffer("kept", self.table(grid), persistent=False)

    @abstractmethod
    def table(self, grid: Grid) -> Tensor:
        """The table of a grid."""

    def of(self, grid: Grid) -> Tensor:
        """The table of `grid`."""
        return self.kept if grid.is_whole(*self._shape) else self.table(grid).to(self.kept)


def padded(images: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Images C x H x W of any sizes as one batch B x C x H x W, filled with zeros to the right and below, and the
    height and width of each, B x 2, as `TokenTransformer.forward` takes them. Raises CannotTake."""
    shapes = [tuple(image.shape) for image in images]
    if not shapes or any(len(shape) != 3 or 0 in shape or shape[0] != shapes[0][0] for shape in shapes):
        raise CannotTake(f"images: should be one or more of channels x height x width, all with the same channels; "
                         f"found {', '.join(map(str, shapes)) or 'none'}")
    sizes_B2 = torch.tensor([image.shape[1:] for image in images])
    batch = images[0].new_zeros(len(images), images[0].shape[0], *sizes_B2.amax(dim=0).tolist())
    for place, image in zip(batch, images, strict=True):
        place[:, :image.shape[1], :image.shape[2]] = image
    return batch, sizes_B2.to(batch.device)
