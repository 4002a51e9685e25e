"""From the tidy frame to what claims look at."""

import numpy as np
import numpy.typing as npt

from vitbench.report.cells import content_sha256
from vitbench.report.frame import Frame, counts_of
from vitbench.verdicts import Evidence
from vitbench.verdicts.evidence import models_of


def evidence_of(frame: Frame, *, looks: int = 0) -> Evidence:
    """The frame as evidence; `looks` is the number of declared looks, 0 meaning one at the end."""
    families = {label: facts.family for label, facts in frame.resolved.models.items()}

    def correct_I(run_id: str) -> npt.NDArray[np.bool_] | None:
        return frame.records[run_id].correct_I() if run_id in frame.records else None

    return Evidence(study=frame.study, rows=frame.rows, planned=frame.runs, models=models_of(families, frame.rows),
                    drawn={run.spec.share: counts_of(run, frame.resolved).drawn for run in frame.runs},
                    correct_I=correct_I, sha256=content_sha256(frame), looks=max(1, looks),
                    exploratory=frame.exploratory)
