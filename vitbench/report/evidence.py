"""From the tidy frame to what claims look at."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from vitbench.config.controls import ANCHOR, MAIN
from vitbench.grid import counts_of
from vitbench.measurement import Measurement
from vitbench.report.anchors import anchors
from vitbench.report.cells import content_sha256
from vitbench.report.frame import Frame
from vitbench.report.saturation import saturation
from vitbench.verdicts import Evidence
from vitbench.verdicts.evidence import CellOf, Condition, ModelFacts, models_of

WORST_FIRST = ("below", "missing", "within", "above")


def evidence_of(frame: Frame, *, looks: int = 0, space: Mapping[str, Any] = MappingProxyType({}),
                pairs: tuple[tuple[str, str], ...] = (),
                measured: Callable[[str], Iterable[Measurement]] = lambda _probe: (),
                elsewhere: Callable[[str], tuple[Evidence, ...]] = lambda _dataset: ()) -> Evidence:
    """The frame as evidence; `looks` is the number of declared looks, 0 meaning one at the end, `space` what tuning
    searched, `pairs` the comparisons that the study declares.

    `measured` gives what is kept of a probe by name; of this, what rests on the frame's records as they are counts.
    `elsewhere` gives the evidence of the other studies on a dataset.
    """
    grid, beside = frame.main, frame.of(lambda control: control not in (MAIN, ANCHOR))
    ended = {row.key for row in beside.rows}

    @lru_cache(maxsize=2**14)  # claims look at the same runs again and again; 164 MB at 10,000 test images
    def correct_I(run_id: str) -> npt.NDArray[np.bool_] | None:
        return frame.records[run_id].correct_I() if run_id in frame.records else None

    def on_these(probe: str) -> tuple[Measurement, ...]:
        return tuple(found for found in measured(probe) if found.rests_on(frame.records))

    return Evidence(study=frame.study, rows=grid.rows, planned=grid.runs, models=_models(grid),
                    beside=tuple(run for run in beside.runs if run.key in ended),
                    drawn={run.spec.share: counts_of(run, frame.resolved).drawn for run in grid.runs},
                    correct_I=correct_I, sha256=content_sha256(frame), looks=max(1, looks),
                    measured=on_these, elsewhere=elsewhere, space=space, pairs=pairs,
                    limited={CellOf(label, share, Condition(*condition)): limited
                             for (label, share, *condition), limited in saturation(frame).items()},
                    exploratory=frame.exploratory, edges=_edges(frame), anchors=_anchors(frame))


def _models(grid: Frame) -> dict[str, ModelFacts]:
    facts = grid.resolved.models
    return models_of(grid.runs, grid.rows, {label: of.family for label, of in facts.items()},
                     {label: of.full_options or of.options for label, of in facts.items()})


def _edges(frame: Frame) -> frozenset[CellOf]:
    return frozenset(CellOf(one.label, one.share, Condition(one.regime, one.budget, one.setting))
                     for one in frame.searches if one.edge)


def _anchors(frame: Frame) -> dict[str, str]:
    """By family the state of its anchor, of several the worst."""
    found: dict[str, str] = {}
    for one in anchors(frame):
        found[one.cell.family] = min(found.get(one.cell.family, one.state), one.state, key=WORST_FIRST.index)
    return found
