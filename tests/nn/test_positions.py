"""Positions against their formulas, where they end, and what they know about offsets."""

import numpy as np
import pytest
import torch

from tests.nn import by_hand
from vitbench.nn.grid import CannotTake, Grid, OfGrid
from vitbench.nn.positions import (
    LearnedPositions,
    NoPositions,
    RelativeBias,
    RotaryPositions,
    SinusoidalPositions,
    set_beyond,
    sinusoids,
)


def zeros(grid: Grid, D: int) -> torch.Tensor:
    return torch.zeros(1, grid.tokens, D)


@pytest.mark.parametrize("D", [4, 6, 5])
def test_sinusoidal_positions_follow_the_formula_in_raster_order(D: int) -> None:
    grid = Grid(2, 4)
    table_ND = SinusoidalPositions(grid, D)(zeros(grid, D), grid)[0].numpy()
    np.testing.assert_allclose(table_ND, [by_hand.sinusoids(n, D) for n in range(8)], atol=1e-6)


@pytest.mark.parametrize("D", [4, 7, 16])
def test_in_two_dimensions_half_tells_the_row_and_half_the_column(D: int) -> None:
    grid = Grid(3, 2)
    table_ND = SinusoidalPositions(grid, D, dimensions=2)(zeros(grid, D), grid)[0].numpy()
    expected = [np.r_[by_hand.sinusoids(y, D // 2), by_hand.sinusoids(x, D - D // 2)]
                for y in range(3) for x in range(2)]
    np.testing.assert_allclose(table_ND, expected, atol=1e-6)


@pytest.mark.parametrize("shift", [1, 3, 10])
def test_a_shifted_place_is_a_linear_map_of_the_place(shift: int) -> None:
    """A turn of each pair by the shift's angle (Vaswani et al. 2017, section 3.5): the same map for all places."""
    D, places = 16, torch.arange(40)
    turn_DD = np.zeros((D, D))
    for k in range(0, D, 2):
        angle = shift / 10_000 ** (k / D)
        turn_DD[k:k + 2, k:k + 2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    np.testing.assert_allclose(sinusoids(places, D).double().numpy() @ turn_DD.T,
                               sinusoids(places + shift, D).numpy(), atol=1e-6)


def test_a_table_of_another_grid_is_made_when_asked_and_agrees_where_both_have_the_place() -> None:
    small, large = Grid(3, 3), Grid(5, 5)
    for D, dimensions in ((8, 1), (8, 2)):
        positions = SinusoidalPositions(small, D, dimensions)
        on_large = positions(zeros(large, D), large)[0]
        assert on_large.shape == (25, D)
        if dimensions == 2:  # in raster order a place has another number on a wider grid
            torch.testing.assert_close(on_large.unflatten(0, (5, 5))[:3, :3].flatten(0, 1), positions.kept)


@pytest.mark.parametrize("make", [lambda grid: LearnedPositions(grid, 6), lambda grid: RelativeBias(grid, 2)],
                         ids=["learned", "relative"])
def test_trained_positions_end_where_they_were_trained(make: object) -> None:
    module, larger = make(Grid(4, 4)), Grid(5, 4)

    def use(grid: Grid) -> torch.Tensor:
        return module(grid) if isinstance(module, RelativeBias) else module(zeros(grid, 6), grid)

    with pytest.raises(CannotTake, match=r"positions: \w+ end at the 4 x 4 tokens .*; found 5 x 4. .*interpolated"):
        use(larger)
    set_beyond(module, "interpolate")
    assert use(larger).shape[-2] == 20
    assert torch.equal(use(Grid(4, 4)), use(Grid(4, 4)))
    set_beyond(module, "refuse")
    with pytest.raises(CannotTake):
        use(larger)


def test_interpolated_positions_keep_their_corners() -> None:
    positions, larger = LearnedPositions(Grid(4, 4), 6), Grid(7, 9)
    set_beyond(positions, "interpolate")
    found_HWD = positions(zeros(larger, 6), larger)[0].unflatten(0, (7, 9))
    own_HWD = positions.table_ND.unflatten(0, (4, 4))
    for y, x in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        torch.testing.assert_close(found_HWD[y, x], own_HWD[y, x])


def test_a_smaller_grid_takes_the_upper_left_places() -> None:
    positions, small = LearnedPositions(Grid(4, 4), 6), Grid(2, 3)
    assert torch.equal(positions(zeros(small, 6), small)[0].unflatten(0, (2, 3)),
                       positions.table_ND.unflatten(0, (4, 4))[:2, :3])
    bias = RelativeBias(Grid(4, 4), 2)
    of_large = bias(Grid(4, 4)).unflatten(2, (4, 4)).unflatten(1, (4, 4))[:, :2, :3, :2, :3]
    assert torch.equal(bias(small), of_large.flatten(3, 4).flatten(1, 2))


def test_relative_bias_is_looked_up_by_offset() -> None:
    grid = Grid(3, 4)
    bias = RelativeBias(grid, 2)
    np.testing.assert_array_equal(bias(grid).detach().numpy(),
                                  by_hand.relative(bias.table_HO.detach().numpy(), 3, 4))


@pytest.mark.parametrize("head_dim", [4, 8, 10])
def test_rotary_positions_turn_pairs_by_row_and_column(head_dim: int) -> None:
    grid = Grid(3, 4)
    x_BHMK = torch.randn(1, 1, 12 + 1, head_dim, dtype=torch.float64)
    turned = RotaryPositions(grid, head_dim).double()(x_BHMK, grid)[0, 0]
    np.testing.assert_allclose(turned.numpy(), by_hand.rotated(x_BHMK[0, 0].numpy(), 4, 12), atol=1e-6)
    assert torch.equal(turned[12], x_BHMK[0, 0, 12])  # a class token has no place
    torch.testing.assert_close(turned.norm(dim=-1), x_BHMK[0, 0].norm(dim=-1), atol=1e-6, rtol=0)


def test_turned_products_depend_on_the_offset_alone() -> None:
    grid = Grid(5, 5)
    rotary = RotaryPositions(grid, 8).double()
    query, key = (torch.randn(8, dtype=torch.float64).expand(1, 1, 25, 8) for _ in range(2))
    product = (rotary(query, grid) @ rotary(key, grid).mT)[0, 0].unflatten(0, (5, 5)).unflatten(2, (5, 5))
    torch.testing.assert_close(product[0, 1, 2, 4], product[2, 0, 4, 3], atol=1e-6, rtol=0)
    assert (product[0, 1, 2, 4] - product[0, 1, 2, 3]).abs() > 1e-3


def test_no_positions_leave_the_tokens_alone() -> None:
    x_BND = torch.randn(2, 4, 3)
    assert NoPositions()(x_BND, Grid(2, 2)) is x_BND


def test_tables_of_the_grid_are_no_part_of_the_weights() -> None:
    for module in (SinusoidalPositions(Grid(2, 2), 4), RotaryPositions(Grid(2, 2), 4)):
        assert isinstance(module, OfGrid)
        assert not module.state_dict()
