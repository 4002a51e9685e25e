"""Accuracy of one model, or of several, for each seed at every size of a condition."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite

import numpy as np
import numpy.typing as npt

from vitbench.report.cells import Cell, cells
from vitbench.report.frame import Frame
from vitbench.row import Row
from vitbench.stats.intervals import FEW_SEEDS


@dataclass(frozen=True)
class SeedCurves:
    """Cells of models K at sizes N of training images, and the seeds S that ended in all of them."""

    cells_KN: tuple[tuple[Cell, ...], ...]
    sizes_N: tuple[int, ...]
    seeds: tuple[int, ...]
    planned: int  # seeds that the study asks for
    missing: tuple[str, ...]  # shares at which a model has no run
    lost: int  # runs that diverged or failed

    @property
    def accuracy_KSN(self) -> npt.NDArray[np.float64]:
        """Test accuracy; a run that diverged or failed counts as chance (protocol rule 13)."""
        rows_KN = [[_by_seed(cell) for cell in cells_N] for cells_N in self.cells_KN]
        return np.array([[[rows[seed].counted_accuracy for rows in rows_N] for seed in self.seeds]
                         for rows_N in rows_KN]).reshape(len(rows_KN), len(self.seeds), len(self.sizes_N))

    def without_lost(self) -> "SeedCurves":
        """For the second analysis of protocol rule 13: without the seeds that a lost run belongs to."""
        whole = [cell for cells_N in self.cells_KN for cell in cells_N]
        return replace(self, lost=0, seeds=tuple(
            seed for seed in self.seeds if all(_by_seed(cell)[seed].outcome == "done" for cell in whole)))

    @property
    def notes(self) -> list[str]:
        """What a reader must know of it before using its numbers."""
        left_out, n = self.planned - len(self.seeds), len(self.seeds)
        return [text for text, applies in (
            ("one seed", n == 1), ("few seeds", 1 < n < FEW_SEEDS), ("one size", len(self.sizes_N) == 1),
            (f"{left_out} of {self.planned} seeds left out: a run is missing", left_out > 0 and n > 0),
            (f"missing at share {', '.join(self.missing)}", bool(self.missing)),
            (f"{self.lost} diverged or failed", self.lost > 0)) if applies]


def curves_of(frame: Frame, *labels: str, condition: str) -> SeedCurves | None:
    """The models' common sizes and seeds; None where the study does not ask for all of them under the condition.

    A share at which a model has no run at all is left out and named, and so is a share that draws as many images as
    another, for they are the same ones.
    """
    by_share: dict[str, dict[str, Cell]] = {}
    for cell in cells(frame):
        if cell.condition == condition and cell.label in labels:
            by_share.setdefault(cell.share, {})[cell.label] = cell
    asked = {share: [of[label] for label in labels] for share, of in by_share.items() if len(of) == len(labels)}
    begun = {share: all(map(_by_seed, cells_K)) for share, cells_K in asked.items()}
    by_size = {cells_K[0].train_images: cells_K for share, cells_K in asked.items() if begun[share]}
    missing = tuple(share for share in asked if not begun[share])
    return _curves([by_size[size] for size in sorted(by_size)], missing, list(asked.values())) if asked else None


def _curves(cells_NK: Sequence[Sequence[Cell]], missing: tuple[str, ...],
            planned_NK: Sequence[Sequence[Cell]]) -> SeedCurves:
    used = [cell for cells_K in cells_NK for cell in cells_K]
    seeds = set.intersection(*(set(_by_seed(cell)) for cell in used)) if used else set()
    asked = {run.spec.seed for cells_K in planned_NK for cell in cells_K for run in cell.runs}
    lost = sum(_by_seed(cell)[seed].outcome != "done" for cell, seed in product(used, seeds))
    return SeedCurves(tuple(zip(*cells_NK, strict=True)), tuple(cells_K[0].train_images for cells_K in cells_NK),
                      tuple(sorted(seeds)), len(asked), missing, lost)


def _by_seed(cell: Cell) -> dict[int, Row]:
    return {row.seed: row for row in cell.rows if isfinite(row.counted_accuracy)}
