"""Which differences of test accuracy the planned seeds can show."""

from dataclasses import dataclass
from itertools import combinations
from statistics import median, stdev

from vitbench.report.cells import Cell, cells
from vitbench.report.frame import Frame
from vitbench.stats.intervals import FEW_SEEDS
from vitbench.stats.power import smallest_detectable

LEAST_PAIRS = 3  # of seeds: a deviation over two says nothing


@dataclass(frozen=True)
class Resolution:
    """Smallest true paired difference that `seeds` show with power .8 at `alpha`, two-sided; shares of images."""

    seeds: int
    alpha: float  # .05 over the number of looks (protocol rule 22)
    sd: float  # of paired differences between two models over seeds
    difference: float
    source: str  # where the deviation comes from

    @property
    def sentence(self) -> str:
        """For people, in points of test accuracy."""
        few = "" if self.seeds >= FEW_SEEDS else f" (no test is made below {FEW_SEEDS} seeds)"
        return (f"{self.seeds} seeds show a difference of {100 * self.difference:.2g} points of test accuracy or more "
                f"(paired t test at {self.alpha:.2g}, power .8){few}, for a deviation of {100 * self.sd:.2g} points: "
                f"{self.source}")


def resolution(seeds: int, looks: int, *, stated: float | None, earlier: Frame | None) -> Resolution | None:
    """At one of `looks`; from a stated deviation (a share of images), else from earlier records.

    None without either, or for one seed.
    """
    if seeds < 2:
        return None
    alpha = 0.05 / max(1, looks)
    if stated is not None:
        return Resolution(seeds, alpha, stated, smallest_detectable(seeds, stated, alpha=alpha), "as stated")
    found = deviations(cells(earlier)) if earlier else []
    if not found:
        return None
    typical = median(found)
    return Resolution(seeds, alpha, typical, smallest_detectable(seeds, typical, alpha=alpha),
                      f"the median over {len(found)} pairs of cells on record, {100 * min(found):.2g} to "
                      f"{100 * max(found):.2g}")


def deviations(found: tuple[Cell, ...]) -> list[float]:
    """Deviations over seeds of the paired difference of test accuracy, for each pair of models under one condition."""
    by_condition: dict[tuple[str, str], list[dict[int, float]]] = {}
    for cell in found:
        accuracy = {row.seed: row.test_accuracy for row in cell.done if row.test_accuracy is not None}
        by_condition.setdefault((cell.share, cell.condition), []).append(accuracy)
    differences = [[a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())]
                   for alike in by_condition.values() for a, b in combinations(alike, 2)]
    return [stdev(values) for values in differences if len(values) >= LEAST_PAIRS]
