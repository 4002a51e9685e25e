"""What a token may look at, against a loop over all pairs; a window by bands of rows."""

import numpy as np
import pytest
import torch

from tests.nn import by_hand
from vitbench.nn.bands import banded_attention
from vitbench.nn.grid import Grid
from vitbench.nn.span import Span


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


@pytest.mark.parametrize(("height", "reach"), [(6, 0), (6, 1), (9, 1), (11, 2), (15, 3)])
def test_bands_hold_each_query_once_and_all_that_it_sees(height: int, reach: int) -> None:
    grid = Grid(height, 4)
    span = Span(grid, "window", 2 * reach + 1, False)
    seen_NN, hidden_NN = span.table(grid), torch.ones(4 * height, 4 * height, dtype=torch.bool)
    of = span.bands(grid)
    for queries, keys in of:
        hidden_NN[queries, keys] = False
    assert not (seen_NN & hidden_NN).any()
    assert hidden_NN.any()  # that the bands save something
    assert torch.equal(torch.cat([torch.arange(4 * height)[queries] for queries, _ in of]), torch.arange(4 * height))


@pytest.mark.parametrize(("grid", "kind", "extra"), [
    (Grid(4, 4), ("window", 5), 0), (Grid(6, 6), ("window", 3), 1), (Grid(6, 6), ("causal", None), 0),
    (Grid(6, 6, sizes_B2=torch.tensor([[4, 4]])), ("window", 3), 0)])
def test_bands_are_taken_only_where_they_save_and_hold(grid: Grid, kind: tuple[str, int | None], extra: int) -> None:
    assert Span(Grid(6, 6), *kind, bool(extra)).bands(grid) == []


def test_banded_attention_in_evaluation_is_that_of_training() -> None:
    grid = Grid(6, 3)
    span = Span(grid, "window", 3, False)
    query, key, value = torch.randn(3, 2, 2, 18, 4).unbind(0)
    trained = banded_attention(query, key, value, span.table(grid), span.bands(grid), 0.5)
    with torch.inference_mode():
        evaluated = banded_attention(query, key, value, span.table(grid), span.bands(grid), 0.5)
    assert torch.equal(trained, evaluated)
