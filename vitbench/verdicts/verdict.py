"""Verdict: what became of a claim on a study, with what it rests on."""

from dataclasses import dataclass, replace
from typing import Literal

from vitbench.stats import Interval

Outcome = Literal["holds", "fails", "depends", "undecided", "blocked", "exploratory"]
UNANCHORED = "unanchored"  # no reference band was there to judge the study's baselines by (protocol rule 19)


class Blocked(ValueError):
    """The evidence cannot carry the claim; the message says why. `judge` makes the outcome `blocked` of it."""


class Unmeasured(ValueError):
    """What the claim looks at was not measured yet; the message says how to. `judge` makes it `undecided`."""


@dataclass(frozen=True)
class Part:
    """One stratum: its interval at the level 1 - alpha/K, and what it shows taken alone, where a rule asked."""

    name: str
    interval: Interval
    shows: Literal["holds", "fails", "neither"] | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """An outcome, and a sentence that says why, or what would change it.

    `effect` is the contrast's mean over seeds with its interval at `level`, both analyses of protocol rule 13 agreeing;
    None where there was nothing to compute it from.
    """

    outcome: Outcome
    sentence: str
    effect: Interval | None = None
    level: float | None = None
    p: float | None = None  # exact sign-flip
    t_p: float | None = None  # two-sided, of what `holds` asks for; of several legs the largest. For Holm over claims
    parts: tuple[Part, ...] = ()
    legs: tuple["Leg", ...] = ()  # where it rests on several contrasts: each by itself
    run_ids: tuple[str, ...] = ()  # the runs it rests on, sorted
    marks: tuple[str, ...] = (UNANCHORED,)
    controls_run: tuple[str, ...] = ()
    controls_missing: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Seeds."""
        return self.effect.n if self.effect else 0

    @property
    def level_of_parts(self) -> float | None:
        """1 - alpha/K, the level of each stratum's interval."""
        return 1 - (1 - self.level) / len(self.parts) if self.level is not None and self.parts else None


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One of several contrasts that a claim rests on; without an outcome it stands beside what decides."""

    name: str
    sentence: str
    outcome: Outcome | None = None
    effect: Interval | None = None
    level: float | None = None
    p: float | None = None
    run_ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, verdict: Verdict) -> "Leg":
        """A contrast that was judged by a rule of its own."""
        return cls(name=name, sentence=verdict.sentence, outcome=verdict.outcome, effect=verdict.effect,
                   level=verdict.level, p=verdict.p, run_ids=verdict.run_ids)


def with_legs(verdict: Verdict, *legs: Leg) -> Verdict:
    """The same verdict, with what it rests on by itself, and with the runs of all."""
    ids = {*verdict.run_ids, *(run_id for leg in legs for run_id in leg.run_ids)}
    return replace(verdict, legs=(*verdict.legs, *legs), run_ids=tuple(sorted(ids)))
