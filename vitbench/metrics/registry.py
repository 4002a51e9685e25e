"""METRICS: what can be computed from stored test logits, also long after a run."""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from vitbench.metrics.classification import Labels, Logits
from vitbench.registry import PluginError, Registry, nearest

Better = Literal["higher", "lower"]
Value = float | tuple[float | None, ...] | None


class MetricError(ValueError):
    """A metric that does not give what it declares; the message says what it gave."""


@dataclass(frozen=True)
class MetricMeta:
    """What is known about a metric without computing it.

    A metric is a function of logits I x C (test images, classes) and labels I. It gives a finite number, or with
    `per_class` C of them, and None where it is undefined. A changed definition raises `version`.
    """

    version: int
    unit: str  # 'share of images', 'nats'
    better: Better
    meaning: str  # one line
    source: str
    per_class: bool = False
    undefined: str = "nowhere"  # where it gives None

    def __post_init__(self) -> None:
        directions = get_args(Better)
        if self.better not in directions:
            raise PluginError(f"better: should be one of {', '.join(directions)}; found {self.better!r}."
                              f"{nearest(self.better, directions)}")


METRICS: Registry[MetricMeta] = Registry("metric", "vitbench.metrics.predictions")


def compute(name: str, logits_IC: Logits, labels_I: Labels) -> Value:
    """The metric `name`, as plain numbers. Raises UnknownName, or MetricError where it fails or gives anything else
    than its declaration says."""
    entry = METRICS.get(name)
    try:
        found: Any = entry.build(logits_IC, labels_I)
    except Exception as error:  # a user's code may raise anything
        raise MetricError(f"metric {name!r} fails: {type(error).__name__}: {error}") from error
    if not entry.meta.per_class:
        return _number(name, found)
    if not isinstance(found, list | tuple | np.ndarray) or len(found) != logits_IC.shape[1]:
        raise MetricError(f"metric {name!r} should give {logits_IC.shape[1]} numbers, one a class; found {found!r}")
    return tuple(_number(name, value) for value in found)


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise MetricError(f"metric {name!r} should give a finite number, or None where it is undefined; found "
                          f"{value!r}")
    return number
