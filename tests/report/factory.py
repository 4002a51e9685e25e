"""Synthetic frames through the real study, grid and record classes."""

import json
import math
from collections.abc import Callable
from typing import Any

from vitbench.config import Study
from vitbench.expansion import expand
from vitbench.grid import ModelFacts, Resolved, Run, counts_of
from vitbench.record import Cost, Curves, Data, Execution, Failure, Final, RunRecord
from vitbench.report.frame import Frame, build

STEPS = (1, 2, 5, 12, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300)
FAMILIES = {"token_transformer": "attention", "convnet": "convolution", "linear": "control", "mlp": "control"}
COUNTS = (142, 146, 142, 146, 145, 145, 145, 143, 139, 144)  # of digits
HASH = "a" * 64
Found = RunRecord | Failure | None | Exception


def study(**values: Any) -> Study:
    """A study of two models, two shares and three seeds unless told otherwise."""
    raw: dict[str, Any] = {"question": "Who overfits?", "dataset": "digits",
                           "models": ["token_transformer:xs", "convnet:xs"], "fractions": [0.1, 1], "seeds": 3}
    return Study.model_validate_json(json.dumps({**raw, **values}))


def resolved(of: Study) -> Resolved:
    """The definite names of a study, as if its dataset were digits."""
    facts = {entry.label: ModelFacts(versioned=f"{entry.name}@1", family=FAMILIES.get(entry.name, "hybrid"),
                                     options=entry.options) for entry in of.models}
    return Resolved(dataset="digits@1", train_counts=COUNTS, test_images=360, num_classes=10, models=facts, plugins={})


def curves(run: Run, drawn: tuple[int, int, int], *, end: int | None = None) -> Curves:
    """Smooth curves that differ from run to run; from step `end` on all is lost."""
    spec = run.spec
    skill = 1.5 + 0.3 * math.log(drawn[1]) + (0.7 if spec.model.startswith("conv") else 0) + 0.1 * (spec.seed % 7)
    columns: dict[str, list[float | None]] = {key: [] for key in ("tl", "ta", "vl", "va", "el", "ea")}
    for step in STEPS:
        lost = end is not None and step >= end
        learned = 1 - math.exp(-step * skill / 200)
        harm = 0.002 * max(0, step - 120) / math.log(drawn[1] + 2)
        train, test = min(1.0, 0.1 + learned), min(0.99, 0.1 + learned * (0.6 + 0.02 * skill)) - harm / 8
        values = (2.3 * (1 - learned) + 1e-4, train, 2.3 - 2 * learned * 0.7 + harm, test, 2.3 - 1.4 * learned + harm,
                  test)
        for key, value in zip(columns, values, strict=True):
            columns[key].append(None if lost else round(value, 6))
    c = {key: tuple(values) for key, values in columns.items()}
    return Curves(step=STEPS, images_seen=tuple(32 * s for s in STEPS), learning_rate=(0.001,) * len(STEPS),
                  gradient_norm=(1.0,) * len(STEPS), train_loss=c["tl"], train_accuracy=c["ta"],
                  val_loss=c["vl"] if drawn[2] else None, val_accuracy=c["va"] if drawn[2] else None,
                  test_loss=c["el"], test_accuracy=c["ea"])


def record(run: Run, facts: Resolved, *, test_accuracy: float | None = None, train_accuracy: float | None = None,
           diverged: str | None = None, device: str = "cpu", shared: bool = False, seconds: float = 12.0) -> RunRecord:
    """A record as a store reads it, hash set. `diverged` is the reason."""
    counts = counts_of(run, facts)
    drawn = sum(counts.drawn), sum(counts.train), sum(counts.validation)
    along = curves(run, drawn, end=150 if diverged else None)
    final = Final() if diverged else Final(
        train_loss=along.train_loss[-1],
        train_accuracy=along.train_accuracy[-1] if train_accuracy is None else train_accuracy,
        val_loss=along.val_loss[-1] if along.val_loss else None, test_loss=along.test_loss[-1],
        val_accuracy=along.val_accuracy[-1] if along.val_accuracy else None,
        test_accuracy=along.test_accuracy[-1] if test_accuracy is None else test_accuracy)
    made = RunRecord(
        run_id=run.spec.run_id, spec=run.spec, family=facts.models[run.label].family,
        outcome="diverged" if diverged else "done", reason=diverged,
        data=Data(drawn_images=drawn[0], train_images=drawn[1], val_images=drawn[2], test_images=facts.test_images,
                  num_classes=10, subset=HASH, dataset_sha256=HASH),
        card={"patch": 2},
        cost=Cost(params=19834, macs=1234567, activations=5000, train_images_per_second=800.0,
                  peak_memory_bytes=10**8, train_seconds=seconds, eval_seconds=1.0, seconds=seconds, shared=shared),
        curves=along, final=final,
        execution=Execution(device=device, threads=1, deterministic=True, environment="e" * 16, code_version="0.1.0"),
        started="2026-01-01T00:00:00Z", finished="2026-01-01T00:00:12Z")
    return RunRecord.from_json(made.to_json().encode())


def augmented(run: Run, facts: Resolved) -> RunRecord:
    """A record whose card tells what its regime did."""
    cards = {"light": {"augmentation": "shift; not flip", "regularisers": "weight decay 0.05"},
             "strong": {"augmentation": "mixup", "regularisers": "label smoothing 0.1, no stochastic depth"}}
    made = record(run, facts).model_copy(update={"card": cards.get(run.spec.regime, {}), "sha256": ""})
    return RunRecord.from_json(made.to_json().encode())


def failure(run: Run, reason: str = "out of memory") -> Failure:
    return Failure(run_id=run.spec.run_id, spec=run.spec, reason=reason, started="2026-01-01T00:00:00Z",
                   finished="2026-01-01T00:00:01Z")


def frame(of: Study | None = None, make: Callable[[Run, Resolved], Found] = record, *, name: str = "quick") -> Frame:
    """A frame whose runs `make` supplies: a record, a failure, None for a missing one, or an error to raise."""
    of = of or study()
    facts = resolved(of)
    grid = expand(of, facts)
    found = {run.spec.run_id: make(run, facts) for run in grid}

    def read(run_id: str) -> RunRecord | Failure:
        ended = found[run_id]
        if ended is None:
            raise KeyError(run_id)
        if isinstance(ended, Exception):
            raise ended
        return ended

    return build(name, grid, read, facts, of.fit)
