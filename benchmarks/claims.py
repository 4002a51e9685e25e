"""How often each claim is told apart from its null: simulated studies of both, counted.

    python benchmarks/claims.py [--write]

Ten minutes on one core. Prints the page of claims; `--write` makes docs/claims.md of it.
"""

import inspect
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from vitbench.claims import CLAIMS, ClaimMeta, judge
from vitbench.registry import Entry
from vitbench.verdicts import Planted
from vitbench.verdicts.simulated import simulate

PAGE = Path(__file__).parents[1] / "docs" / "claims.md"
NULLS, PLANTED, MOST_FALSE = 400, 200, 20
HEAD = """# Claims

Made by `python benchmarks/claims.py --write`. Each claim is one file of `vitbench/claims/`: a sentence with a rule that
was fixed before any study was run. `vitbench claims STUDY` judges the claims that a study names. The intervals that
rules G, E and D rest on stand in [statistics](statistics.md); the rules in `vitbench/verdicts/rules.py`, with
their known answers in `tests/verdicts/test_rules.py`.

**Verdicts.** `holds`; `fails`; `depends`, with what it depends on; `undecided`, with the seeds or the probe that it
would take; `blocked`, with the reason; `exploratory`, where seeds were added without a declared look. `unanchored`
marks a verdict on baselines that no reference band was held against. None rests on fewer than six seeds.

**Simulated studies.** Of every claim that is not exact: {nulls} studies in which all models are one model under several
names (no null of an equivalence), {nulls} of the null that its file declares (for an equivalence an effect exactly at
the margin), and {planted} of its planted effect, with the seeds that its file names and with six. In them a test image
has a difficulty, a model a taste in images that all its seeds share, a seed a luck that all models share, a run its own
(`vitbench/verdicts/simulated.py`); a rule that passes these can still fail on data that are made otherwise. At most
{most} of {nulls} may give `holds` where the claim is not true.

"""


@dataclass(frozen=True)
class Counts:
    """Studies that gave `holds`."""

    alike: int | None  # None for an equivalence
    alike_of_six: int | None
    null: int
    planted: int
    planted_of_six: int


def counts(name: str, planted: Planted) -> Counts:
    # What was measured has the null that it declares: of a change in training 'all models alike' is none.
    alike = replace(planted, null=None, equivalence=False)
    both = [None if planted.equivalence else holds(name, alike, NULLS, null=True, seeds=seeds) for seeds in (None, 6)]
    return Counts(*both, holds(name, planted, NULLS, null=True), holds(name, planted, PLANTED),
                  holds(name, planted, PLANTED, seeds=6))


def holds(name: str, planted: Planted, studies: int, *, null: bool = False, seeds: int | None = None) -> int:
    return sum(judge(name, simulate(planted, np.random.default_rng([28, number]), null=null, seeds=seeds)).outcome
               == "holds" for number in range(studies))


def section(name: str, entry: Entry[ClaimMeta], found: Counts | None) -> str:
    meta, judges = entry.meta, entry.build
    rule = re.sub(r"\s+", " ", inspect.getdoc(judges) or "").replace("|", "\\|")
    facts = [f"**{meta.sentence}**", "", f"- source: {meta.source}", f"- null: {meta.null}",
             f"- margin: {meta.margin:g}, {meta.unit}", f"- rule: {rule}",
             f"- file: `vitbench/claims/{name}.py`; tests: `tests/claims/`"]
    if meta.planted is not None:
        facts.insert(4, f"- planted: {meta.planted.effect}; stated power {meta.planted.power:g}")
    if found is not None:
        alike = "" if found.alike is None else (
            f"in {found.alike} of {NULLS} studies of one model under several names (six seeds: {found.alike_of_six}), ")
        facts.append(f"- simulated: holds {alike}in {found.null} of {NULLS} of its null, in {found.planted} of "
                     f"{PLANTED} of its planted effect (six seeds: {found.planted_of_six})")
    return f"## {name}\n\n" + "\n".join(facts) + "\n"


def page() -> tuple[str, list[str]]:
    """The page, and what is wrong with the claims on it."""
    sections, wrong = [], []
    for name in sorted(CLAIMS.shipped()):
        entry = CLAIMS.get(name)
        planted = entry.meta.planted
        found = counts(name, planted) if planted is not None and not planted.exact else None
        if found is not None:
            wrong += [f"{name}: {many} of {NULLS} {what}" for what, many in (
                ("alike", found.alike), ("alike, six seeds", found.alike_of_six), ("null", found.null))
                if many is not None and many > MOST_FALSE]
            if found.planted < entry.meta.planted.power * PLANTED - 2 * (PLANTED * 0.25) ** 0.5:
                wrong.append(f"{name}: {found.planted} of {PLANTED} planted, below the power that it states")
        sections.append(section(name, entry, found))
        print(sections[-1], flush=True)
    return HEAD.format(nulls=NULLS, planted=PLANTED, most=MOST_FALSE) + "\n".join(sections), wrong


if __name__ == "__main__":
    made, faults = page()
    if "--write" in sys.argv:
        PAGE.write_text(made)
    sys.exit("\n".join(faults) or 0)
