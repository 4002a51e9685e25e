"""Evidence: what a claim may look at of one study."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vitbench.grid import Run
from vitbench.measurement import Measurement
from vitbench.row import Row
from vitbench.spec import Recipe
from vitbench.verdicts.verdict import Blocked, Unmeasured

DEFAULT = "default"
LITTLE = (5, 50)  # drawn images a class that are *little* data
ALPHA = 0.05


class Condition(NamedTuple):
    """What stays the same while models, sizes and seeds are compared."""

    regime: str
    budget: str
    setting: str


class CellOf(NamedTuple):
    """A cell of the study as claims name it."""

    label: str
    share: str
    condition: Condition


@dataclass(frozen=True)
class Stratum:
    """One condition, and the models that a contrast compares in it, in the contrast's own order.

    Where the contrast is one of conditions, `conditions` holds that of each model in place of `condition`.
    """

    condition: Condition
    models: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """'none, steps:300, default: token_transformer:s against convnet:s'."""
        if self.conditions:
            return " against ".join(f"{label} in {', '.join(condition)}"
                                    for label, condition in zip(self.models, self.conditions, strict=True))
        return f"{', '.join(self.condition)}: {' against '.join(self.models)}"

    def cell(self, place: int, share: str) -> CellOf:
        """Of the model at `place` of `models`, at a size."""
        return CellOf(self.models[place], share, self.conditions[place] if self.conditions else self.condition)


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What is the same in all runs of a model; a count is None where no run tells it."""

    family: str
    model: str  # name@version
    size: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # those that differ from the size's own
    full_options: Mapping[str, Any] = field(default_factory=dict)  # all of them, where the model is one that ships
    recipe: Recipe = field(default_factory=Recipe)  # in the default setting
    params: int | None = None
    macs: int | None = None


def models_of(planned: Iterable[Run], rows: Iterable[Row], families: Mapping[str, str],
              full_options: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, ModelFacts]:
    """The facts of each label of `families`: of its runs in the default setting, and of those that ended, lost ones
    included."""
    found, full = {}, full_options or {}
    params, macs = ({row.label: count for row in rows if (count := getattr(row, column)) is not None}
                    for column in ("params", "macs"))
    for run in planned:
        label, spec = run.label, run.spec
        if run.setting == DEFAULT and label not in found:
            found[label] = ModelFacts(family=families[label], model=spec.model, size=spec.size, options=spec.options,
                                      full_options=full.get(label, spec.options), recipe=spec.recipe,
                                      params=params.get(label), macs=macs.get(label))
    return found


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One study's runs. The order of `rows` and `planned`, and repeats among them, change nothing that is read from it.

    A run that diverged or failed has a row; one that is missing stands in `planned` only. Runs of the study's controls
    are `beside`: they are no evidence for a claim, but for what was looked at.
    """

    study: str
    rows: tuple[Row, ...]  # of the runs that ended with a result
    planned: tuple[Run, ...]  # the whole grid
    beside: tuple[Run, ...] = ()  # of the study's controls, those that ended
    models: Mapping[str, ModelFacts]  # by label
    drawn: Mapping[str, tuple[int, ...]]  # images drawn of each class, by share
    correct_I: Callable[[str], npt.NDArray[np.bool_] | None]  # hits of a run id for each test image
    sha256: str  # content hash of the study: seeds what is drawn
    looks: int = 1  # declared looks at the verdicts
    exploratory: str | None = None  # why no verdict is more than that (protocol rule 22)
    edges: frozenset[CellOf] = frozenset()  # tuned cells whose best trial lies on the edge of its range (rule 11)
    anchors: Mapping[str, str] = field(default_factory=dict)  # by family: within, below, above, missing (rule 19)
    left_out: frozenset[tuple[CellOf, int]] = frozenset()  # cells and seeds of the runs that `without_lost` dropped
    measured: Callable[[str], tuple[Measurement, ...]] = lambda _probe: ()  # what a probe found on these records
    elsewhere: Callable[[str], tuple["Evidence", ...]] = lambda _dataset: ()  # the folder's other studies on a dataset
    limited: Mapping[CellOf, bool] = field(default_factory=dict)  # by the saturation check, in cells where it was done
    space: Mapping[str, Any] = field(default_factory=dict)  # what tuning searched
    pairs: tuple[tuple[str, str], ...] = ()  # of labels: the comparisons that the study declares

    def probe(self, name: str) -> tuple[Measurement, ...]:
        """What the probe `name` measured on runs of this study as they are on record, then what it measured without a
        study; several where it was given several options or choices of runs. Raises Unmeasured where there is nothing.
        """
        found = self.measured(name)
        if not found:
            raise Unmeasured(f"It rests on what the probe {name} measures, which is not there for these records: "
                             f"run `vitbench probe {name} {self.study}`, or without the study where it looks at a "
                             "mechanism alone")
        return found

    def on(self, dataset: str) -> tuple["Evidence", ...]:
        """The other studies of the results folder on `dataset`. Raises Unmeasured where there is none."""
        found = self.elsewhere(dataset)
        if not found:
            raise Unmeasured(f"It also rests on a study of the dataset {dataset}, which is not there: run one with the "
                             "same models, recipe and seeds into the same results folder")
        return found

    @property
    def alpha(self) -> float:
        """.05 over the number of declared looks (protocol rule 22)."""
        return ALPHA / self.looks

    @cached_property
    def shares(self) -> tuple[str, ...]:
        """The study's sizes as it writes them, the smallest first."""
        return tuple(sorted(self.drawn, key=lambda share: (sum(self.drawn[share]), share)))

    @property
    def smallest(self) -> str:
        """The smallest size of the study. Raises Blocked where it has none."""
        return self._size(0)

    @property
    def full(self) -> str:
        """The largest size of the study. Raises Blocked where it has none."""
        return self._size(-1)

    def _size(self, place: int) -> str:
        if not self.shares:
            raise Blocked("The study has no runs")
        return self.shares[place]

    def described(self, share: str) -> str:
        """'0.1 (144 drawn images)'."""
        return f"{share} ({sum(self.drawn[share]):,} drawn images)"

    @property
    def little(self) -> tuple[str, ...]:
        """The sizes with 5 to 50 drawn images of every class."""
        low, high = LITTLE
        return tuple(s for s in self.shares if low <= min(self.drawn[s]) and max(self.drawn[s]) <= high)

    @cached_property
    def by_cell(self) -> Mapping[CellOf, Mapping[int, Row]]:
        """The runs that ended, by cell and seed."""
        found: defaultdict[CellOf, dict[int, Row]] = defaultdict(dict)
        for row in self.rows:
            found[cell_of(row)][row.seed] = row
        return found

    @cached_property
    def seeds(self) -> Mapping[CellOf, frozenset[int]]:
        """The seeds that the study asks for in each cell."""
        found: defaultdict[CellOf, set[int]] = defaultdict(set)
        for run in self.planned:
            found[cell_of(run)].add(run.spec.seed)
        return {cell: frozenset(seeds) for cell, seeds in found.items()}

    @property
    def lost(self) -> tuple[Row, ...]:
        """Runs that diverged or failed: results, which count as chance (protocol rule 13)."""
        return tuple(row for row in self.rows if row.outcome != "done")

    def without_lost(self) -> "Evidence":
        """For the second analysis of protocol rule 13: the seeds that a lost run belongs to are left out, those of
        other studies, too."""
        lost = frozenset((cell_of(row), row.seed) for row in self.lost)
        return replace(self, rows=tuple(row for row in self.rows if row.outcome == "done"), left_out=lost,
                       elsewhere=lambda dataset: tuple(one.without_lost() for one in self.elsewhere(dataset)))

    @cached_property
    def test_images(self) -> int:
        """In the test set, as the runs that ended well saw it; 0 where none did."""
        return max((row.test_images for row in self.rows if row.outcome == "done"), default=0)

    def strata(self, groups: Iterable[tuple[str, ...]], shares: Iterable[str]) -> tuple[Stratum, ...]:
        """Every condition in which the study asks for a group of labels at all of `shares`, sorted.

        Raises Blocked where there is none.
        """
        sizes = tuple(shares)
        found = [Stratum(condition, group) for group in groups for condition in {cell.condition for cell in self.seeds}
                 if all(CellOf(label, share, condition) in self.seeds for label in group for share in sizes)]
        if not found:
            raise Blocked("No condition of the study has the models that the claim compares at the sizes it needs")
        return tuple(sorted(found, key=lambda stratum: (stratum.condition, stratum.models)))


def cell_of(run: Row | Run) -> CellOf:
    """Of a run that ended, or of a planned one."""
    named = run if isinstance(run, Row) else run.spec
    return CellOf(run.label, named.share, Condition(named.regime, run.budget, run.setting))
