"""Attention models with the CNNs that match them, as curves over the sizes of data."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from vitbench.report import notes
from vitbench.report.cells import Cell
from vitbench.report.evidence import evidence_of
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table, where_varied, word
from vitbench.report.seed_curves import SeedCurves, curves_of
from vitbench.stats.intervals import FEW_SEEDS
from vitbench.verdicts import Blocked, Stratum, matched_pairs

FAMILIES = ("attention", "convolution")
COLUMNS = (Column("attention", "attention"), Column("convolution", "CNN"), Column("regime", "regime"),
           Column("budget", "budget"), Column("setting", "setting"))
MISSING = "no seed has ended for both models at every size that has runs"
FOOTER = (
    "Pairs: every attention model with every CNN that its parameters match within 15 %. Images are those trained on, "
    "without validation.",
    f"Few seeds (2 to {FEW_SEEDS - 1}): for looking, nothing rests on them. Intervals speak for seeds: redraws from "
    "this training set, judged on the same test images.",
    "A run that diverged or failed counts as chance; where there are such, a note tells what is found without their "
    "seeds.")


@dataclass(frozen=True)
class Pair:
    """A matched pair in one condition. Its curves are attention's, then the CNN's."""

    stratum: Stratum
    curves: SeedCurves

    @property
    def named(self) -> tuple[Entry, ...]:
        """The entries of COLUMNS."""
        return tuple(map(word, (*self.stratum.models, *self.stratum.condition)))

    @property
    def cells(self) -> Iterator[Cell]:
        """Those that it rests on."""
        return (cell for cells_N in self.curves.cells_KN for cell in cells_N)

    @property
    def without_lost(self) -> "Pair | None":
        """Without the seeds of runs that diverged or failed; None where there are none such, or no others."""
        rest = self.curves.without_lost()
        return replace(self, curves=rest) if self.curves.lost and rest.seeds else None


def pairs(frame: Frame) -> tuple[list[Pair], list[str]]:
    """Every pair in each condition that the study asks for both in; and why there are none, or may be more."""
    evidence = evidence_of(frame)
    unknown = sorted(label for label, of in evidence.models.items() if of.family in FAMILIES and of.params is None)
    known = replace(evidence, models={label: of for label, of in evidence.models.items() if label not in unknown})
    told = [f"No run of {', '.join(unknown)} tells its parameters: nobody knows what matches it."] if unknown else []
    try:
        strata = matched_pairs(known)
    except Blocked as reason:
        return [], [*told, f"{reason}."]
    found = [(one, curves_of(frame, *one.models, condition=", ".join(one.condition))) for one in strata]
    return [Pair(stratum, curves) for stratum, curves in found if curves is not None], told


def table(frame: Frame, caption: str, columns: tuple[Column, ...],
          rows_of: Callable[[Pair], Iterable[tuple[Entry, ...]]], footer: tuple[str, ...]) -> Table | None:
    """The rows of every pair behind what names it; conditions that do not vary are not shown.

    No row, and the reason in the footer, where nothing matches. None where the study lacks attention or a CNN.
    """
    if not {facts.family for facts in frame.resolved.models.values()}.issuperset(FAMILIES):
        return None
    found, told = pairs(frame)
    identity = notes.identity(frame)
    rows = tuple((*pair.named, *row, *notes.rests_on(pair.cells, identity)) for pair in found for row in rows_of(pair))
    values = {key: len({row[i].value for row in rows}) for i, key in enumerate(("regime", "budget", "setting"), 2)}
    exploratory = (frame.exploratory,) if frame.exploratory else ()
    return Table(f"Study {frame.study}: {caption}, test accuracy on {frame.resolved.dataset_text}",
                 where_varied((*COLUMNS, *columns, *notes.RESTS_ON), values), rows, (),
                 (*told, *footer, *FOOTER, *exploratory, *notes.cited(frame)))
