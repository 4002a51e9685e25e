"""How far a study is, as numbers: what `plan` and `status` print, and `status --json` hands out."""

import math
import time
from collections import Counter
from typing import Any

from vitbench.live import Progress
from vitbench.study.folder import StudyFolder
from vitbench.study.searches import once

STATES = ("done", "running", "failed", "to do")


def counts(folder: StudyFolder, live: list[Progress]) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Runs in each state, for each label and in all (a run of two labels once there); opens no record."""
    ended = folder.ended()
    ids = {run.spec.run_id for run in folder.runs if not run.pending}
    failed = folder.store.failed(ended & ids)
    working = {run.run_id for run in live if not run.lost}

    def state(run_id: str) -> str:
        return "failed" if run_id in failed else "done" if run_id in ended else \
            "running" if run_id in working else "to do"

    labels: dict[str, Counter[str]] = {}
    for run in folder.runs:
        labels.setdefault(run.label, Counter())["to do" if run.pending else state(run.spec.run_id)] += 1
    total = Counter(map(state, ids))
    total["to do"] += sum(run.pending for run in folder.runs)
    return labels, total


def as_json(folder: StudyFolder, live: list[Progress]) -> dict[str, Any]:
    """The same with what runs now. Its keys are a promise (docs/guide.md); losses that are not finite are null."""
    labels, total = counts(folder, live)
    label_of = {run.spec.run_id: run.label for run in reversed(folder.runs)}  # the first of two labels
    return {"study": folder.name, "totals": _keyed(total),
            "models": {label: _keyed(count) for label, count in labels.items()},
            "earlier_runs": len(folder.orphans()),
            "trials": trials(folder),
            "running": [{"run_id": run.run_id, "model": label_of.get(run.run_id), "step": run.step,
                         "steps": run.steps, "train_loss": _finite(run.train_loss), "val_loss": _finite(run.val_loss),
                         "test_loss": _finite(run.test_loss), "lost": run.lost,
                         "seconds_since_news": round(max(0.0, time.time() - run.time), 1)} for run in live]}


def trials(folder: StudyFolder) -> dict[str, int]:
    """Of all searches: how many are done, and how many to do."""
    searches = [one.search for one in once(folder.searches)]
    return {"done": sum(len(one.trials) for one in searches), "to_do": sum(one.left for one in searches)}


def _keyed(count: Counter[str]) -> dict[str, int]:
    return {"runs": count.total(), **{state.replace(" ", "_"): count[state] for state in STATES}}


def _finite(loss: float | None) -> float | None:
    return loss if loss is not None and math.isfinite(loss) else None
