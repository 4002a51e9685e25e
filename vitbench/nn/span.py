"""What a token may look at: all tokens, a window around it, or those before it."""

from typing import Literal

import torch
from torch import Tensor

from vitbench.nn.grid import Grid, OfGrid

Kind = Literal["global", "window", "causal"]


class Span(OfGrid):
    """Which keys each query sees. A class token, where there is one, stands last and sees everything; under `window`
    no other token sees it, for what passes through it would come from outside the window."""

    def __init__(self, grid: Grid, kind: Kind, window: int | None, class_token: bool) -> None:
        self.kind, self.reach, self.extra = kind, (window or 1) // 2, int(class_token)
        super().__init__(grid)

    def table(self, grid: Grid) -> Tensor:
        """M x M, or B x 1 x M x M where sizes differ, M all tokens: True where the query (row) sees the key."""
        N, extra = grid.tokens, self.extra
        seen_MM = torch.ones(N + extra, N + extra, dtype=torch.bool, device=grid.device)
        if self.kind == "causal":
            seen_MM = seen_MM.tril()
        elif self.kind == "window":
            far_NN = (grid.places_N2[None] - grid.places_N2[:, None]).abs().amax(dim=2)
            seen_MM[:N, :N] = far_NN <= self.reach
            seen_MM[:N, N:] = False
        if grid.real_BN is None:
            return seen_MM
        real_BM = torch.cat([grid.real_BN, grid.real_BN.new_ones(len(grid.real_BN), extra)], dim=1)
        # A token of padding sees itself, so that its weights, which nobody uses, are numbers.
        itself_MM = torch.eye(N + extra, dtype=torch.bool, device=grid.device)
        return (seen_MM & (real_BM[:, None] | itself_MM))[:, None]

    def seen(self, grid: Grid) -> Tensor | None:
        """The table of `grid`; None where everything is seen."""
        return None if self.kind == "global" and grid.sizes_B2 is None else self.of(grid)

    def rows(self, grid: Grid) -> int | None:
        """Rows of the grid that a query's window can touch; None where keys cannot be taken row by row."""
        rows = 2 * self.reach + 1
        banded = self.kind == "window" and not self.extra and grid.sizes_B2 is None and rows < grid.height
        return rows if banded else None


def band(x: Tensor, grid: Grid, rows: int) -> Tensor:
    """Keys or values B x H x N x K as B x (H R) x (rows W) x K: for each row of queries (R, each of W) the rows that
    its window can touch. At the upper and lower border the band stands still, so that all are equally large."""
    first_R = (torch.arange(grid.height, device=x.device) - rows // 2).clamp(0, grid.height - rows)
    of_row = (first_R[:, None] + torch.arange(rows, device=x.device)).flatten()
    x_BHRWK = x.unflatten(2, (grid.height, grid.width))
    band_BHRWK: Tensor = x_BHRWK[:, :, of_row].unflatten(2, (grid.height, rows)).flatten(3, 4).flatten(1, 2)
    return band_BHRWK


def banded(table: Tensor, grid: Grid, rows: int) -> Tensor:
    """A table ... x N x N of queries and keys as ... x R x W x (rows W), for the same bands."""
    table = table.unflatten(-1, (grid.height, grid.width)).unflatten(-3, (grid.height, grid.width))
    first_R = (torch.arange(grid.height, device=table.device) - rows // 2).clamp(0, grid.height - rows)
    of_row_RB = first_R[:, None] + torch.arange(rows, device=table.device)
    each_R1 = torch.arange(grid.height, device=table.device)[:, None]
    # Indices apart from each other put their dimensions first: R x rows x ... x W x W.
    chosen = table.movedim((-4, -2), (0, 1))[each_R1, of_row_RB]
    return chosen.movedim((0, 1), (-4, -2)).flatten(-2)
