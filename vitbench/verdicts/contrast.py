"""Contrasts: one number a seed and stratum, formed inside the seed before any rule sees it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from vitbench.row import Row
from vitbench.stats import FEW_SEEDS, Interval, sign_flip_p, t_interval, two_way_interval
from vitbench.stats.two_way import two_way
from vitbench.verdicts.evidence import ALPHA, CellOf, Evidence, Stratum
from vitbench.verdicts.verdict import Blocked

FloatArray = npt.NDArray[np.float64]
Place = tuple[int, str]  # position in the stratum's models, share
Rows = Mapping[Place, Row]  # of one seed and stratum
TOLERANCE = 1e-9  # a mean of decimals such as .3 - .29 meets a margin of .01


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """y with layout seeds S x strata K, all finite.

    `images_KSI` holds for each stratum the same contrast image by image, where it is linear in accuracy; an interval is
    then the wider of `seeds` and `seeds x images`.
    """

    y_SK: FloatArray
    strata: tuple[str, ...]
    images_KSI: tuple[FloatArray, ...] = ()
    run_ids: tuple[str, ...] = ()
    alpha: float = ALPHA
    entropy: int = 0  # of the sign patterns, where there are too many seeds to look at all

    def __post_init__(self) -> None:
        shape = self.y_SK.shape
        if len(shape) != 2 or 0 in shape or shape[1] != len(self.strata) or not np.isfinite(self.y_SK).all():
            raise ValueError(f"a contrast has a finite value for each seed and stratum, one at least; found shape "
                             f"{shape} with {len(self.strata)} strata: {self.y_SK.tolist()}")

    @property
    def n(self) -> int:
        """Seeds."""
        return len(self.y_SK)

    @property
    def few_seeds(self) -> bool:
        """True where nothing may rest on it (protocol rule 20)."""
        return self.n < FEW_SEEDS

    @cached_property
    def y_S(self) -> FloatArray:
        """Mean over strata of each seed."""
        return np.asarray(self.y_SK.mean(axis=1))

    @cached_property
    def images_SI(self) -> FloatArray | None:
        """Mean over strata of each seed and test image."""
        return np.mean(self.images_KSI, axis=0) if self.images_KSI else None

    @cached_property
    def interval(self) -> Interval:
        """Of the mean over seeds and strata, at level 1 - alpha."""
        return _wider(self.y_S, self.images_SI, 1 - self.alpha)

    def of_stratum(self, k: int, level: float) -> Interval:
        """Of the mean over seeds in one stratum."""
        return _wider(self.y_SK[:, k], self.images_KSI[k] if self.images_KSI else None, level)

    @cached_property
    def p(self) -> float:
        """Sign-flip p of the means over strata, exact up to 20 seeds."""
        return sign_flip_p(self.y_S, rng=np.random.default_rng(self.entropy))

    def lies_above(self, value: float) -> bool:
        """True where the interval does; never below six seeds."""
        low = self.interval.low
        return not self.few_seeds and low is not None and low > value

    def lies_below(self, value: float) -> bool:
        """True where the interval does; never below six seeds."""
        high = self.interval.high
        return not self.few_seeds and high is not None and high < value

    @property
    def half_width_of_images(self) -> float:
        """What would remain of the interval's half width with seeds without number: the test images' share."""
        if self.images_SI is None or min(self.images_SI.shape) < 2:
            return 0.0
        return float(ndtri(1 - self.alpha / 2)) * sqrt(two_way(self.images_SI).image_variance)


def _wider(y_S: FloatArray, images_SI: FloatArray | None, level: float) -> Interval:
    over_seeds = t_interval(y_S, level=level)
    if images_SI is None or min(images_SI.shape) < 2:
        return over_seeds
    over_both = two_way_interval(images_SI, level=level)
    return over_both if _width(over_both) > _width(over_seeds) + TOLERANCE else over_seeds


def _width(interval: Interval) -> float:
    assert interval.low is not None
    assert interval.high is not None
    return interval.high - interval.low


def contrast(evidence: Evidence, strata: Sequence[Stratum], shares: Sequence[str],
             value: Callable[[Rows], float]) -> Contrast:
    """`value` of the rows of each seed and stratum, at all of `shares`.

    Raises Blocked, naming them, where runs are missing, computed on several devices, or `value` is not finite.
    """
    return _contrast(evidence, strata, _paired(evidence, strata, shares), value)


def accuracy_contrast(evidence: Evidence, strata: Sequence[Stratum], weights: Mapping[Place, float]) -> Contrast:
    """Weighted sum of test accuracies, e.g. {(0, "1"): 1, (1, "1"): -1}: the first model minus the second at share 1.

    Diverged and failed runs count as chance, image by image too. Raises Blocked as `contrast` does.
    """
    paired = _paired(evidence, strata, sorted({share for _, share in weights}))
    images_KSI = tuple(np.array([_by_image(evidence, rows_K[k], weights) for rows_K in paired.values()])
                       for k in range(len(strata)))
    return _contrast(evidence, strata, paired,
                     lambda rows: sum(w * rows[place].counted_accuracy for place, w in weights.items()), images_KSI)


def accuracy_difference(evidence: Evidence, strata: Sequence[Stratum], share: str) -> Contrast:
    """Test accuracy of each stratum's first model minus that of its second, at one size."""
    return accuracy_contrast(evidence, strata, {(0, share): 1.0, (1, share): -1.0})


def _contrast(evidence: Evidence, strata: Sequence[Stratum], paired: Mapping[int, Sequence[Rows]],
              value: Callable[[Rows], float], images_KSI: tuple[FloatArray, ...] = ()) -> Contrast:
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
    cells = [{(place, share): CellOf(label, share, stratum.condition) for place, label in enumerate(stratum.models)
              for share in shares} for stratum in strata]
    seeds = sorted({seed for cells_of in cells for cell in cells_of.values() for seed in evidence.seeds.get(cell, ())})
    wanted = {(cell, seed): evidence.by_cell.get(cell, {}).get(seed)
              for seed in seeds for cells_of in cells for cell in cells_of.values()}
    missing = [f"{cell.label} at {cell.share}, seed {seed}" for (cell, seed), row in wanted.items()
               if row is None and (cell, seed) not in evidence.left_out]
    if missing or not seeds:
        # A look at some of the seeds would be a look that nobody declared (protocol rule 22).
        raise Blocked(f"{len(missing)} of the {len(wanted)} runs that it rests on are missing ({_listed(missing)}); "
                      f"`vitbench run` does them" if seeds else "The study has none of the runs that it rests on")
    found: dict[int, list[Rows]] = {}
    for seed in seeds:
        rows_K = [{place: row for place, cell in of.items() if (row := wanted[cell, seed])} for of in cells]
        if all(len(rows) == len(of) for rows, of in zip(rows_K, cells, strict=True)):
            found[seed] = list(rows_K)
    if not found:
        raise Blocked("Every seed has a run that diverged or failed")
    devices = {row.device for row in wanted.values() if row and row.device}
    if len(devices) > 1:
        raise Blocked(f"Its runs were computed on {', '.join(sorted(devices))}; a verdict rests on one device")
    return found


def _by_image(evidence: Evidence, rows: Rows, weights: Mapping[Place, float]) -> FloatArray:
    """The weighted sum of hits for each test image I."""
    parts = []
    for place, weight in weights.items():
        row = rows[place]
        if row.outcome != "done":
            parts.append(np.full(row.test_images, weight * row.chance_accuracy))
            continue
        hits_I = evidence.correct_I(row.run_id)
        if hits_I is None:
            raise Blocked(f"Run {row.run_id} keeps no hits of single test images, which the interval over seeds x "
                          "images needs")
        parts.append(weight * hits_I)
    return np.asarray(np.sum(parts, axis=0))


def _listed(texts: Sequence[str], most: int = 3) -> str:
    return "; ".join(texts[:most]) + (f"; and {len(texts) - most} more" if len(texts) > most else "")
