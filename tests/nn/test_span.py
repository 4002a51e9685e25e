"""What a token may look at, against a loop over all pairs; a window by bands of rows."""

import numpy as np
import pytest
import torch

from tests.nn import by_hand
from vitbench.nn.grid import Grid
from vitbench.nn.span import Span, band, banded


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("kind", [("global", None), ("window", 1), ("window", 3), ("window", 7), ("causal", None)],
                         ids=str)
@pytest.mark.parametrize("grid", [Grid(4, 4), Grid(2, 5)], ids=["4x4", "2x5"])
def test_a_span_shows_the_pairs_that_it_says(grid: Grid, kind: tuple[str, int | None], extra: int) -> None:
    seen = Span(grid, *kind, bool(extra)).table(grid).numpy()
    np.testing.assert_array_equal(seen, by_hand.seen(grid.height, grid.width, *kind, extra))


def test_the_widest_window_is_the_whole_image() -> None:
    grid = Grid(4, 4)
    assert Span(grid, "window", 7, False).table(grid).all()
    assert not Span(grid, "window", 5, False).table(grid).all()


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_bands_hold_all_that_a_window_sees(rows: int) -> None:
    """In each row of queries, the keys outside of the band are seen by none of them."""
    grid = Grid(6, 4)
    span = Span(grid, "window", rows, False)
    assert span.rows(grid) == rows
    seen_NN = span.table(grid)
    seen_RWB = banded(seen_NN, grid, rows)
    assert seen_RWB.shape == (6, 4, rows * 4)
    assert torch.equal(seen_RWB.sum(2).flatten(), seen_NN.sum(1))  # none is lost
    number_1N1 = torch.arange(24.0).view(1, 1, 24, 1)
    keys_RB = band(number_1N1, grid, rows)[0, :, :, 0].long()
    for row in range(6):
        for column in range(4):
            shown = set(keys_RB[row][seen_RWB[row, column]].tolist())
            assert shown == set(seen_NN[row * 4 + column].nonzero().flatten().tolist())


@pytest.mark.parametrize(("grid", "kind", "extra"), [
    (Grid(4, 4), ("window", 5), 0), (Grid(6, 6), ("window", 3), 1), (Grid(6, 6), ("causal", None), 0),
    (Grid(6, 6, sizes_B2=torch.tensor([[4, 4]])), ("window", 3), 0)])
def test_bands_are_taken_only_where_they_save_and_hold(grid: Grid, kind: tuple[str, int | None], extra: int) -> None:
    assert Span(Grid(6, 6), *kind, bool(extra)).rows(grid) is None
