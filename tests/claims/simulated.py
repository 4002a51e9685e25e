"""A claim's verdict on a study that is drawn from a law."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vitbench.claims import judge
from vitbench.verdicts import Cell, Evidence, Expected, Planted, Verdict
from vitbench.verdicts.simulated import simulate

Law = Callable[[Cell], Expected]


def study_of(law: Law, study: dict[str, Any], number: int = 0, **planted: Any) -> Evidence:
    """One study of the law, with the probes and other studies of `planted`."""
    return simulate(Planted("", law, 0.9, study, **planted), np.random.default_rng([29, number]))


def verdict_on(claim: str, law: Law, study: dict[str, Any], number: int = 0, **planted: Any) -> Verdict:
    """What the claim says of it."""
    return judge(claim, study_of(law, study, number, **planted))


def level(_: Cell) -> Expected:
    """All models alike: for claims that look at something else."""
    return Expected(0.9)
