"""How a token's place enters: added to it, turned into its query and key, or as a bias of the score."""

from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from vitbench.nn.grid import CannotTake, Grid, OfGrid

Beyond = Literal["refuse", "interpolate"]
ROTARY_BASE = 100.0  # places are tens, not thousands (Heo et al. 2024, section 3.1)


class NoPositions(nn.Module):
    """Leaves tokens as they are: attention is then blind to their order."""

    def forward(self, x_BND: Tensor, _grid: Grid) -> Tensor:
        """The same tokens."""
        return x_BND


class LearnedPositions(nn.Module):
    """Adds a trained vector to each place (Dosovitskiy et al. 2021, equation 1). It ends where it was trained:
    `beyond` says whether a larger grid is refused or gets interpolated vectors (section 3.2 there)."""

    beyond: Beyond = "refuse"

    def __init__(self, grid: Grid, embed_dim: int) -> None:
        super().__init__()
        self.height, self.width = grid.height, grid.width
        self.table_ND = nn.Parameter(torch.empty(grid.tokens, embed_dim))
        nn.init.normal_(self.table_ND, std=0.02)

    def forward(self, x_BND: Tensor, grid: Grid) -> Tensor:
        """Tokens with their place added. Raises CannotTake on a larger grid."""
        if (grid.height, grid.width) == (self.height, self.width):
            return x_BND + self.table_ND
        table_DHW: Tensor = self.table_ND.T.unflatten(1, (self.height, self.width))
        if grid.height > self.height or grid.width > self.width:
            _refuse_beyond(self, "learned", grid)
            table_DHW = _resized(table_DHW, grid.height, grid.width)
        return x_BND + table_DHW[:, :grid.height, :grid.width].flatten(1).T


class SinusoidalPositions(OfGrid):
    """Adds sines and cosines of the place (Vaswani et al. 2017, section 3.5), defined for a grid of any size.

    In one dimension the place is the number in raster order; in two, half of the vector tells the row and half the
    column (Dosovitskiy et al. 2021, appendix D.4).
    """

    def __init__(self, grid: Grid, embed_dim: int, dimensions: int = 1) -> None:
        self.embed_dim, self.dimensions = embed_dim, dimensions
        super().__init__(grid)

    def table(self, grid: Grid) -> Tensor:
        """N x D, or B x N x D where sizes differ and places are counted in raster order."""
        if self.dimensions == 1:
            return sinusoids(grid.raster, self.embed_dim)
        rows_N, columns_N = grid.places_N2.unbind(1)
        of_rows = self.embed_dim // 2
        return torch.cat([sinusoids(rows_N, of_rows), sinusoids(columns_N, self.embed_dim - of_rows)], dim=1)

    def forward(self, x_BND: Tensor, grid: Grid) -> Tensor:
        """Tokens with their place added."""
        return x_BND + self.of(grid)


def sinusoids(places: Tensor, embed_dim: int) -> Tensor:
    """Sine and cosine of `places` (any shape) at rates 10000^(-2k/D), in turn: the shape with D more, float32."""
    rate_K = 10_000.0 ** (-torch.arange(0, embed_dim, 2, dtype=torch.float64, device=places.device) / embed_dim)
    angles = places[..., None] * rate_K
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :embed_dim].float()


class RelativeBias(nn.Module):
    """A trained number for each head and each offset between two places, added to the score (Liu et al. 2021,
    equation 4). `beyond`, as in LearnedPositions: larger offsets than in training are refused or interpolated."""

    beyond: Beyond = "refuse"

    def __init__(self, grid: Grid, num_heads: int) -> None:
        super().__init__()
        self.height, self.width = grid.height, grid.width
        self.table_HO = nn.Parameter(torch.empty(num_heads, (2 * grid.height - 1) * (2 * grid.width - 1)))
        nn.init.normal_(self.table_HO, std=0.02)
        self.number = _OffsetNumber(grid)

    def forward(self, grid: Grid) -> Tensor:
        """H x N x N: of each key's place seen from each query's. Raises CannotTake on a larger grid."""
        height, width = max(grid.height, self.height), max(grid.width, self.width)
        table_HO: Tensor = self.table_HO
        if (height, width) != (self.height, self.width):
            _refuse_beyond(self, "relative", grid)
            table_HYX = table_HO.unflatten(1, (2 * self.height - 1, 2 * self.width - 1))
            table_HO = _resized(table_HYX, 2 * height - 1, 2 * width - 1).flatten(1)
        own = grid.is_whole(self.height, self.width)
        number_NN = self.number.kept if own else offset_number(grid, height, width)
        return table_HO[:, number_NN]


class _OffsetNumber(OfGrid):
    def table(self, grid: Grid) -> Tensor:
        return offset_number(grid, grid.height, grid.width)


def offset_number(grid: Grid, height: int, width: int) -> Tensor:
    """N x N: the raster number, among all offsets of a grid of `height` x `width`, of key place minus query place."""
    down_NN, right_NN = grid.offsets_NN2.unbind(2)
    return (down_NN + height - 1) * (2 * width - 1) + right_NN + width - 1


class RotaryPositions(OfGrid):
    """Turns pairs of a query's or key's numbers by angles proportional to its row and column, so that their product
    depends on the offset alone (Su et al. 2021; in two dimensions Heo et al. 2024, section 3.1).

    Of a head's K numbers the first 2 (K // 4) turn with the row, as many with the column; what is left does not.
    """

    def __init__(self, grid: Grid, head_dim: int) -> None:
        self.pairs = head_dim // 4
        super().__init__(grid)

    def table(self, grid: Grid) -> Tensor:
        """Cosine and sine of each token's angles, 2 x N x P, P the pairs of row and column."""
        rate_P = ROTARY_BASE ** (-torch.arange(self.pairs, dtype=torch.float64, device=grid.device) / self.pairs)
        angle_NP = (grid.places_N2[..., None] * rate_P).flatten(1)
        return torch.stack([angle_NP.cos(), angle_NP.sin()]).float()

    def forward(self, x_BHNK: Tensor, grid: Grid) -> Tensor:
        """Queries or keys, turned; tokens behind those of the grid (a class token) have no place and stay."""
        cos_NP, sin_NP = self.of(grid).to(x_BHNK.dtype)
        placed_BHNK, others = x_BHNK[:, :, :grid.tokens], x_BHNK[:, :, grid.tokens:]
        even, odd = placed_BHNK[..., :4 * self.pairs].unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack([even * cos_NP - odd * sin_NP, even * sin_NP + odd * cos_NP], dim=-1).flatten(-2)
        turned = torch.cat([turned, placed_BHNK[..., 4 * self.pairs:]], dim=-1)
        return torch.cat([turned, others], dim=2) if others.shape[2] else turned


def set_beyond(model: nn.Module, beyond: Beyond) -> None:
    """Whether positions that end where they were trained are refused beyond, or interpolated."""
    for module in model.modules():
        if isinstance(module, LearnedPositions | RelativeBias):
            module.beyond = beyond


def _refuse_beyond(positions: LearnedPositions | RelativeBias, name: str, grid: Grid) -> None:
    if positions.beyond == "refuse":
        raise CannotTake(f"positions: {name} end at the {positions.height} x {positions.width} tokens that they were "
                         f"trained on; found {grid.height} x {grid.width}. They can be interpolated (set_beyond)")


def _resized(table_CHW: Tensor, height: int, width: int) -> Tensor:
    return F.interpolate(table_CHW[None], (height, width), mode="bicubic", align_corners=True)[0]
