"""What a token may look at: all tokens, a window around it, or those before it."""

from typing import Literal

import torch
from torch import Tensor

from vitbench.nn.bands import Band, bands
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
            far_NN = grid.offsets_NN2.abs().amax(dim=2)
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

    def bands(self, grid: Grid) -> list[Band]:
        """Bands of rows in which a window can be computed apart; none where that does not hold or saves nothing."""
        apart = self.kind == "window" and not self.extra and grid.sizes_B2 is None
        return bands(grid, self.reach) if apart else []
