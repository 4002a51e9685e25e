"""Probes: one file each, a statement about a mechanism, and how it is measured. Also what such a file is made of.

A probe is a function of a `Look` that gives a `Measured`:

    @PROBES.add("entropy", ProbeMeta(
        statement="Attention looks at fewer tokens as it is trained.", source="where it is said: paper, section",
        looks_at=("runs",), families=("attention",), options=Options))
    def entropy(look: Look) -> Measured:
        import torch  # in here: `vitbench list probes` loads no torch
        rows = []
        for run in look.runs:
            trained = look.trained(run)                 # the model in evaluation mode, and the run's data
            images, labels_N = trained.images("test", 64)
            with torch.no_grad():
                logits_BC = trained.module(images)
            rows.append({**named(run), "entropy": ...})
        columns = (*RUN, Column(name="entropy", unit="nats", meaning="of a row of weights, mean over ..."))
        chart = altair.Chart(ROWS).mark_point().encode(x="share:O", y="entropy:Q")   # ROWS: the rows of the table
        return Measured(columns, rows, chart, summary="One or two sentences that state what was found, with numbers.")

The same rows in the same order come out of the same options and runs: what is drawn comes from `look.rng`. Numbers may
have any precision; they are kept with 6 significant digits. `filled(columns, rows)` puts None where rows of several
kinds lack a column. A sentence for the user is a ProbeError. In figures `by_kind` of vitbench.probes._figure tells
kinds apart. Files that begin with _ are no probes; torch modules stand in vitbench.nn.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import altair as alt
import numpy as np

from vitbench.grid import Run
from vitbench.measurement import Column, Value
from vitbench.models import Family
from vitbench.options import NoOptions
from vitbench.record import RunRecord
from vitbench.registry import PluginError, Registry, nearest
from vitbench.report.frame import Frame
from vitbench.report.vega import WIDTH
from vitbench.spec import Frozen
from vitbench.study.folder import StudyFolder
from vitbench.study.trained import AtPoint, Trained, trained, untrained

__all__ = ["HEAD_COLUMN", "LAYER_COLUMN", "PROBES", "ROWS", "RUN", "WIDTH", "AtPoint", "Column", "Look", "LooksAt",
           "Measured", "ProbeError", "ProbeMeta", "Trained", "filled", "named"]

LooksAt = Literal["mechanism", "runs", "study"]
ROWS = alt.NamedData(name="rows")
RUN = (Column(name="run", unit="", meaning="run id"),
       Column(name="label", unit="", meaning="the model's name in the study"),
       Column(name="share", unit="", meaning="the fraction as the study writes it, or 'N a class'"),
       Column(name="seed", unit="", meaning="of the run"))
"""The columns of `named`."""
LAYER_COLUMN = Column(name="layer", unit="", meaning="attention layer, from 0")
HEAD_COLUMN = Column(name="head", unit="", meaning="from 0")


class ProbeError(ValueError):
    """A probe that cannot be done as asked; the message says why and what would help."""


@dataclass(frozen=True)
class ProbeMeta:
    """What is known about a probe without measuring.

    `looks_at` says what it is done on: `mechanism` needs no study, `runs` looks at the trained models of a study's
    runs, `study` at its records alone. With ("mechanism", "runs") it is done without a study, and with one on its runs,
    too.
    `families` limits the runs to models of these; () takes all. A changed definition raises `version`.
    """

    statement: str
    source: str
    looks_at: tuple[LooksAt, ...]
    options: type[Frozen] = NoOptions
    version: int = 1
    families: tuple[Family, ...] = ()

    def __post_init__(self) -> None:
        if not (self.statement.strip() and self.source.strip()):
            raise PluginError("statement and source: each says something; found an empty one")
        for key, found, allowed in (("looks_at", self.looks_at, get_args(LooksAt)),
                                    ("families", self.families, get_args(Family))):
            wrong = [found] if isinstance(found, str) else [each for each in found if each not in allowed]
            if wrong or (key == "looks_at" and not found):
                raise PluginError(f"{key}: should be a tuple of {', '.join(allowed)}; found {found!r}."
                                  f"{nearest(wrong[0], allowed) if wrong else ''}")


@dataclass(frozen=True)
class Measured:
    """What a probe gives: a row is a flat mapping with a value (None: missing) for each column, in any order of keys.

    `figure` is an Altair chart of ROWS, or of data of its own. `summary` states what was found, with numbers.
    """

    columns: Sequence[Column]
    rows: Sequence[dict[str, Value]]
    figure: Any
    summary: str


@dataclass(frozen=True)
class Look:
    """What a probe is to look at. `runs` are those chosen that are done, in the grid's order; none without a study."""

    options: Any  # of the probe's own class
    seed: int  # of what the probe draws: the same whatever the runs are
    folder: StudyFolder | None = None
    runs: tuple[Run, ...] = ()
    tell: Callable[[str], object] = lambda _line: None  # progress, for people
    weights: dict[str, str] = field(default_factory=dict)  # run id -> how its model was had
    _records: dict[str, RunRecord] = field(default_factory=dict)  # those that were read

    @cached_property
    def rng(self) -> np.random.Generator:
        """The one source of what the probe draws."""
        return np.random.default_rng(self.seed)

    @property
    def study(self) -> StudyFolder:
        """The study's folder; only for a probe that was given one."""
        assert self.folder is not None, "a probe of runs or of a study looks at look.runs first"
        return self.folder

    def frame(self) -> Frame:
        """The tidy frame of the chosen runs: `frame.rows` has accuracies, harms and costs; needs no torch."""
        return self.study.frame(list(self.runs))

    def record(self, run: Run) -> RunRecord:
        """The record of a chosen run."""
        run_id = run.spec.run_id
        if run_id not in self._records:
            found = self.study.store.read(run_id)
            assert isinstance(found, RunRecord), "only runs that are done are chosen"
            self._records[run_id] = found
        return self._records[run_id]

    def trained(self, run: Run, at_point: AtPoint | None = None) -> Trained:
        """The model of a chosen run after its last step: from kept weights, or trained again and held to its record.

        With `at_point` it is trained again in any case, and at_point(module, step) is called at step 0 (untrained) and
        at every curve point, with the module (`module.model`, `module.data`) in evaluation mode. Raises NotTheRun.
        """
        self.tell(f"run {self.runs.index(run) + 1} of {len(self.runs)}: {run.label}, share {run.spec.share}, seed "
                  f"{run.spec.seed}")
        found = trained(self.study.store, self.record(run), at_point)
        self.weights[run.spec.run_id] = found.how
        return found

    def untrained(self, run: Run) -> Trained:
        """The model of a chosen run as it was before its first step, with the run's data. Raises NotTheRun."""
        return untrained(self.record(run))


def named(run: Run) -> dict[str, Value]:
    """The first columns of a row about a run: RUN."""
    return {"run": run.spec.run_id, "label": run.label, "share": run.spec.share, "seed": run.spec.seed}


def filled(columns: Iterable[Column], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, with None in each column that a row has not."""
    empty = dict.fromkeys(column.name for column in columns)
    return [{**empty, **row} for row in rows]


PROBES: Registry[ProbeMeta] = Registry("probe", "vitbench.probes")
