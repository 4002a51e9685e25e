"""Pairing: contrasts formed inside each seed before any rule sees them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitbench.row import Row
from vitbench.verdicts.contrast import Contrast, FloatArray
from vitbench.verdicts.evidence import CellOf, Evidence, Stratum
from vitbench.verdicts.verdict import Blocked

Float32Array = npt.NDArray[np.float32]
Place = tuple[int, str]  # position in the stratum's models, share
Rows = Mapping[Place, Row]  # of one seed and stratum
LOST = "Every seed has a run that diverged or failed"


class Side(NamedTuple):
    """What a contrast between two studies takes of each."""

    evidence: Evidence
    strata: Sequence[Stratum]
    shares: Sequence[str]


def contrast_of(evidence: Evidence, strata: Sequence[Stratum], shares: Sequence[str],
             value: Callable[[Rows], float]) -> Contrast:
    """`value` of the rows of each seed and stratum, at all of `shares`.

    Raises Blocked, naming them, where runs are missing, computed on several devices, or `value` is not finite.
    """
    return _contrast(evidence, strata, _paired(evidence, strata, shares), value)


def accuracy_contrast(evidence: Evidence, strata: Sequence[Stratum], weights: Mapping[Place, float]) -> Contrast:
    """Weighted sum of test accuracies, e.g. {(0, "1"): 1, (1, "1"): -1}: the first model minus the second at share 1.

    Diverged and failed runs count as chance, image by image too. Raises Blocked as `contrast_of` does.
    """
    paired = _paired(evidence, strata, sorted({share for _, share in weights}))
    images_KSI = tuple(np.array([_by_image(evidence, rows_K[k], weights) for rows_K in paired.values()], np.float32)
                       for k in range(len(strata)))
    return _contrast(evidence, strata, paired,
                     lambda rows: sum(w * rows[place].counted_accuracy for place, w in weights.items()), images_KSI)


def accuracy_difference(evidence: Evidence, strata: Sequence[Stratum], share: str) -> Contrast:
    """Test accuracy of each stratum's first model minus that of its second, at one size."""
    return accuracy_contrast(evidence, strata, {(0, share): 1.0, (1, share): -1.0})


def contrast_between(first: Side, second: Side, value: Callable[[Rows], float]) -> Contrast:
    """`value` of the rows of each seed and stratum of two studies, whose strata stand in the same order. The places of
    the second's models come behind those of the first's, and the strata have the first's names.

    Raises Blocked as `contrast_of` does, and where one study asks for seeds that the other does not.
    """
    studies = (first, second)
    seeds = [{seed for cells in _cells(*one[1:]) for cell in cells.values() for seed in one.evidence.seeds[cell]}
             for one in studies]
    for one, other, lacking in ((first, second, seeds[0] - seeds[1]), (second, first, seeds[1] - seeds[0])):
        if lacking:
            missing = _listed([str(seed) for seed in sorted(lacking)])
            raise Blocked(f"Study {other.evidence.study} asks for no runs of the seeds {missing}, which study "
                          f"{one.evidence.study} has: each seed is compared with itself")
    sides = [_paired(*one) for one in studies]
    paired = {seed: [{**a, **{(len(stratum.models) + place, share): row for (place, share), row in b.items()}}
                     for stratum, a, b in zip(first.strata, sides[0][seed], sides[1][seed], strict=True)]
              for seed in sides[0] if seed in sides[1]}
    if not paired:
        raise Blocked(LOST)
    _one_machine(row for rows_K in paired.values() for rows in rows_K for row in rows.values())
    found = _contrast(first.evidence, first.strata, paired, value)
    return replace(found, alpha=min(one.evidence.alpha for one in studies))


def _contrast(evidence: Evidence, strata: Sequence[Stratum], paired: Mapping[int, Sequence[Rows]],
              value: Callable[[Rows], float], images_KSI: tuple[Float32Array, ...] = ()) -> Contrast:
    y_SK = np.array([[value(rows) for rows in rows_K] for rows_K in paired.values()], dtype=np.float64)
    names = tuple(stratum.name for stratum in strata)
    odd = [f"seed {seed}, {name}" for seed, y_K in zip(paired, y_SK, strict=True)
           for name, y in zip(names, y_K, strict=True) if not isfinite(y)]
    if odd:
        raise Blocked(f"The contrast is no finite number at {_listed(odd)}")
    run_ids = {row.run_id for rows_K in paired.values() for rows in rows_K for row in rows.values()}
    return Contrast(y_SK=y_SK, strata=names, images_KSI=images_KSI, run_ids=tuple(sorted(run_ids)),
                    alpha=evidence.alpha, entropy=int(evidence.sha256[:16], 16))


def _paired(evidence: Evidence, strata: Sequence[Stratum], shares: Sequence[str]) -> dict[int, list[Rows]]:
    """Seed -> rows of each stratum, for the seeds that lack none. A run left out takes its seed with it."""
    cells = _cells(strata, shares)
    seeds = sorted({seed for cells_of in cells for cell in cells_of.values() for seed in evidence.seeds.get(cell, ())})
    wanted = {(cell, seed): evidence.by_cell.get(cell, {}).get(seed)
              for seed in seeds for cells_of in cells for cell in cells_of.values()}
    _refuse(wanted, evidence)
    found: dict[int, list[Rows]] = {}
    for seed in seeds:
        rows_K = [{place: row for place, cell in of.items() if (row := wanted[cell, seed])} for of in cells]
        if all(len(rows) == len(of) for rows, of in zip(rows_K, cells, strict=True)):
            found[seed] = list(rows_K)
    if not found:
        raise Blocked(LOST)
    return found


def _cells(strata: Sequence[Stratum], shares: Sequence[str]) -> list[dict[Place, CellOf]]:
    return [{(place, share): stratum.cell(place, share) for place in range(len(stratum.models)) for share in shares}
            for stratum in strata]


def _refuse(wanted: Mapping[tuple[CellOf, int], Row | None], evidence: Evidence) -> None:
    """Raise Blocked where a run is missing: a look at some of the seeds would be one that nobody declared (rule 22).

    So do tuned cells on an edge (rule 11), and runs of several devices or numerics.
    """
    if not wanted:
        raise Blocked("The study has none of the runs that it rests on")
    missing = [f"{cell.label} at {cell.share}, seed {seed}" for (cell, seed), row in wanted.items()
               if row is None and (cell, seed) not in evidence.left_out]
    if missing:
        raise Blocked(f"{len(missing)} of the {len(wanted)} runs that it rests on are missing ({_listed(missing)}); "
                      f"`vitbench run {evidence.study}` does them")
    edges = sorted({f"{cell.label} at {cell.share}" for cell, _ in wanted if cell in evidence.edges})
    if edges:
        raise Blocked(f"The best trial of its tuning lies on the edge of what was searched ({_listed(edges)}): search "
                      "wider")
    _one_machine(row for row in wanted.values() if row)


def _one_machine(rows: Iterable[Row]) -> None:
    """Raise Blocked for runs of several devices, or of two versions of the numbers (as two studies may be)."""
    each = list(rows)
    devices, numerics = {row.device for row in each if row.device}, {row.numerics for row in each}
    if len(devices) > 1:
        raise Blocked(f"Its runs were computed on {', '.join(sorted(devices))}; a verdict rests on one device")
    if len(numerics) > 1:
        raise Blocked(f"Its runs are of numerics {', '.join(map(str, sorted(numerics)))}; a verdict rests on one")


def _by_image(evidence: Evidence, rows: Rows, weights: Mapping[Place, float]) -> FloatArray:
    """The weighted sum of hits for each test image I."""
    found_I = np.zeros(evidence.test_images)
    for place, weight in weights.items():
        row = rows[place]
        hits_I = evidence.correct_I(row.run_id) if row.outcome == "done" else row.chance_accuracy
        if hits_I is None:
            raise Blocked(f"Run {row.run_id} keeps no hits of single test images, which the interval over seeds x "
                          "images needs")
        found_I += weight * hits_I
    return found_I


def _listed(texts: Sequence[str], most: int = 3) -> str:
    return "; ".join(texts[:most]) + (f"; and {len(texts) - most} more" if len(texts) > most else "")
