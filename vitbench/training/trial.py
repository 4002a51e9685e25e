"""One tuning trial: a recipe trained on the tuning subset and judged on images held out of it, never on test."""

import time
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch

from vitbench import datasets
from vitbench.config.tuning import Params
from vitbench.record import Execution
from vitbench.search import Trial
from vitbench.spec import RunSpec
from vitbench.subset import Subset
from vitbench.training.module import Point, metrics_of
from vitbench.training.run import classifier, drawn, fit, loaded, prepare_torch
from vitbench.training.schedule import curve_points


@dataclass(frozen=True)
class Folds:
    """Stratified cross-validation of the drawn images, repeated with other folds."""

    folds: int
    repeats: int


class Pruned(Exception):
    """The trial lags so far behind earlier ones that it is ended."""


RUNGS = (1 / 8, 1 / 4, 1 / 2)
"""Shares of the schedule after which weak trials end."""


@dataclass
class Halving:
    """Asynchronous successive halving (Li et al. 2020): at each rung a trial goes on only in the better half of those
    that came there before it. `earlier` holds their objective (larger is better) at each rung."""

    objective: Literal["accuracy", "loss"]
    earlier: tuple[tuple[float, ...], ...]
    reached: list[float] = field(default_factory=list)

    def look(self, point: Point, steps: int) -> None:
        """Called at every curve point. Raises Pruned."""
        while len(self.reached) < len(RUNGS) and point.step >= RUNGS[len(self.reached)] * steps:
            assert point.val_accuracy is not None
            assert point.val_loss is not None
            value = point.val_accuracy if self.objective == "accuracy" else -point.val_loss
            others = self.earlier[len(self.reached)] if len(self.reached) < len(self.earlier) else ()
            self.reached.append(value)
            ahead = sum(other > value for other in others)
            if 2 * ahead > len(others):
                raise Pruned(f"behind {ahead} of {len(others)} trials after step {point.step:,} of {steps:,}")


def try_one(spec: RunSpec, place: Execution, *, number: int, params: Params, folds: Folds | None = None,
            halving: Halving | None = None) -> Trial:
    """Train `spec` once on its training part, or once a fold, each for the whole schedule; its mean on held-out images.

    Without `halving` only the last step is measured.
    """
    started = time.perf_counter()

    def ended(state: Literal["done", "diverged", "pruned"], reason: str | None = None,
              loss: float | None = None, accuracy: float | None = None) -> Trial:
        return Trial(number=number, params=params, state=state, reason=reason, val_accuracy=accuracy, val_loss=loss,
                     rungs=tuple(halving.reached) if halving else (), seconds=round(time.perf_counter() - started, 3))

    prepare_torch(place)
    arrays = loaded(spec).without_test()
    judged = []
    try:
        for part in held_out(spec, arrays.train_labels, folds):
            found = _train(spec, arrays, part, torch.device(place.device), halving)
            if found is None:
                return ended("diverged", "loss, gradient or logits not finite")
            judged.append(found)
    except Pruned as told:
        return ended("pruned", str(told))
    return ended("done", None, *(float(np.mean(values)) for values in zip(*judged, strict=True)))


def held_out(spec: RunSpec, labels_N: np.ndarray, folds: Folds | None) -> list[Subset]:
    """What each training of a trial trains on and is judged on: the fraction's own parts, or each fold in turn."""
    chosen = drawn(spec, labels_N)
    if folds is None:
        return [chosen]
    from sklearn.model_selection import StratifiedKFold

    images, parts = chosen.drawn, []
    for repeat in range(folds.repeats):
        split = StratifiedKFold(folds.folds, shuffle=True, random_state=spec.seed + repeat)
        parts += [Subset(images[train], images[judged]) for train, judged in split.split(images, labels_N[images])]
    return parts


def _train(spec: RunSpec, arrays: datasets.Arrays, part: Subset, device: torch.device,
           halving: Halving | None) -> tuple[float, float] | None:
    """Loss and accuracy on the part's validation images; None where it diverged."""
    module, _ = classifier(spec, arrays, part, device,
                           lambda point: halving.look(point, module.steps) if halving else None)
    fit(module, curve_points(module.steps) if halving else [module.steps], device)
    if module.diverged_at is not None:
        return None
    return metrics_of(module.last_logits["val"], module.data.parts["val"].labels_N)
