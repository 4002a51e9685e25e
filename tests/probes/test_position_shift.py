"""Shifts as linear maps, against tables whose answer is known."""

import numpy as np
import pytest
import torch

from vitbench.nn.grid import Grid
from vitbench.nn.positions import SinusoidalPositions
from vitbench.probes._measure import Question
from vitbench.probes.position_shift import fitted_residual, pairs, residual, rotation, rotation_2d
from vitbench.study.folder import StudyFolder


def waves(place_N: np.ndarray, width: int) -> np.ndarray:
    """Vaswani et al. 2017, section 3.5, number by number in float64."""
    return np.array([[(np.sin if i % 2 == 0 else np.cos)(place / 10_000 ** (2 * (i // 2) / width))
                      for i in range(width)] for place in place_N])


def waves_2d(side: int, width: int) -> np.ndarray:
    row_N, column_N = np.divmod(np.arange(side**2), side)
    return np.concatenate([waves(row_N, width // 2), waves(column_N, width // 2)], axis=1)


def test_pairs_lie_one_shift_apart_inside_the_grid() -> None:
    found = {direction: list(zip(*(part.tolist() for part in pairs(3, 2, direction)), strict=True))
             for direction in ("sequence", "right", "down")}
    assert found == {"sequence": [(i, i + 2) for i in range(7)], "right": [(0, 2), (3, 5), (6, 8)],
                     "down": [(0, 6), (1, 7), (2, 8)]}


@pytest.mark.parametrize("shift", [1, 5, 17])
def test_a_shift_of_sinusoidal_positions_is_a_rotation(shift: int) -> None:
    place, further = pairs(20, shift, "sequence")
    table_ND = waves(np.arange(400), 32)
    assert residual(table_ND[place], table_ND[further], rotation(32, shift)) < 1e-12
    models = SinusoidalPositions(Grid(20, 20), 32).table(Grid(20, 20))
    assert models.dtype == torch.float32
    assert residual(models.numpy()[place], models.numpy()[further], rotation(32, shift)) < 1e-5
    assert residual(table_ND[place], table_ND[further], rotation(32, shift + 1)) > 0.1  # another shift's


@pytest.mark.parametrize("direction", ["right", "down"])
def test_in_two_dimensions_a_shift_turns_one_half(direction: str) -> None:
    place, further = pairs(12, 3, direction)
    table_ND = waves_2d(12, 32)
    assert residual(table_ND[place], table_ND[further], rotation_2d(32, 3, direction)) < 1e-12
    grid = Grid(12, 12)
    models = SinusoidalPositions(grid, 32, 2).table(grid).numpy()
    assert residual(models[place], models[further], rotation_2d(32, 3, direction)) < 1e-5


def test_a_linear_map_is_found_and_holds_on_places_that_it_was_not_fitted_to() -> None:
    rng = np.random.default_rng(0)
    map_DD = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    before = rng.normal(size=(100, 8))
    assert fitted_residual(before, before @ map_DD.T, np.arange(100), 3, rng) < 1e-12


def test_random_tables_of_any_size_have_no_such_map() -> None:
    """With more places than numbers, and with fewer, where any map fits the places it was fitted to."""
    rng = np.random.default_rng(0)
    for places, width in ((500, 8), (20, 64)):
        table_ND = rng.normal(size=(places, width))
        assert 0.95 < fitted_residual(table_ND[:-1], table_ND[1:], np.arange(places - 1), 4, rng) < 1.5


def test_rows_of_a_sum_of_row_and_column_vectors_are_held_out_whole() -> None:
    """A random vector of the row plus one of the column: no map leads down, though one fits every row that it saw."""
    rng, side = np.random.default_rng(0), 12
    table_ND = (rng.normal(size=(side, 1, 64)) + rng.normal(size=(1, side, 64))).reshape(side**2, 64)
    place, further = pairs(side, 1, "down")
    assert fitted_residual(table_ND[place], table_ND[further], place, 2, rng) < 1e-10  # single places held out
    assert fitted_residual(table_ND[place], table_ND[further], place // side, 2, rng) > 0.5


def test_the_probe_tells_sinusoidal_from_learned_and_random(tmp_path: object) -> None:
    found = Question("position_shift", {"side": 16, "width": 16, "max_shift": 2}, tmp_path).measured(print)  # type: ignore[arg-type]
    of = {(row["kind"], row["direction"], row["shift"]): row["residual"] for row in found.rows}
    for direction in ("sequence", "right", "down"):
        assert of["sinusoidal", direction, 2] < 1e-4
        assert of["sinusoidal, rotation", direction, 2] < 1e-6
        assert of["learned, untrained", direction, 2] > 0.9
        assert of["random", direction, 2] > 0.9
    assert of["sinusoidal 2-D, rotation", "down", 1] < 1e-6
    assert of["sinusoidal 2-D", "sequence", 1] > 0.01
    assert ("sinusoidal 2-D, rotation", "sequence", 1) not in of


def test_trained_tables_stand_beside_untrained_ones_of_their_size(kept: StudyFolder) -> None:
    attention = tuple(run for run in kept.runs if run.label == "token_transformer:xs")
    found = Question("position_shift", {}, kept.store.folder.parent, kept, attention).measured(print)
    assert {(row["side"], row["width"]) for row in found.rows} == {(4, 28)}
    trained = [row for row in found.rows if row["kind"] == "learned, trained"]
    assert {row["run"] for row in trained} == {attention[0].spec.run_id}
    assert {row["shift"] for row in trained} == {1, 2, 3}
    assert {row["run"] for row in found.rows if row["kind"] == "random"} == {None}
