"""Controls that a hostile reader asks for: which of them a study holds."""

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations

from vitbench.grid import Run, model_of
from vitbench.verdicts.evidence import Evidence, cell_of
from vitbench.verdicts.groups import matched_pairs
from vitbench.verdicts.verdict import Blocked

FAMILIES = ("attention", "convolution")
HEADLINE = ("saturation", "learning rate x weight decay", "four sizes", "matched clean-train loss", "matched MACs",
            "two models a family")
"""What the headline claims need."""


def controls_run(evidence: Evidence) -> frozenset[str]:
    """Those of HEADLINE whose runs have ended. That at matched clean-train loss is a table of the grid's own runs: it
    counts where over half the runs of either family reached that loss.
    """
    ended = [run for run in evidence.planned if run.spec.seed in evidence.by_cell.get(cell_of(run), {})]
    ended += evidence.beside
    sides = [[run for run in ended if evidence.models[run.label].family == family] for family in FAMILIES]
    found = {name for name, ran in _RAN.items() if all(ran(runs, evidence) for runs in sides)}
    also = {"matched MACs": _matched_macs(evidence), "matched clean-train loss": all(
        _reached(evidence, family) for family in FAMILIES)}
    return frozenset(found | {name for name, ran in also.items() if ran})


def _saturation(runs: list[Run], _evidence: Evidence) -> bool:
    """Steps x1, x2, x4, and warm-up 0 and 10 %."""
    amounts = {(run.spec.budget.unit, run.spec.budget.amount) for run in runs}
    return ({0.0, 0.1} <= {run.spec.recipe.warmup for run in runs}
            and any({(unit, 2 * amount), (unit, 4 * amount)} <= amounts for unit, amount in amounts))


def _rate_and_decay(runs: list[Run], evidence: Evidence) -> bool:
    """3 x 3 at every size, weight decay 0 among them."""
    at = defaultdict(set)
    for run in runs:
        at[run.spec.share].add((run.spec.recipe.learning_rate, run.spec.recipe.weight_decay))
    return bool(at) and all(_holds_grid(at[share]) for share in evidence.shares)


def _holds_grid(pairs: set[tuple[float, float]]) -> bool:
    rates, decays = ({pair[i] for pair in pairs} for i in (0, 1))
    chosen = [(0.0, *others) for others in combinations(decays - {0.0}, 2)]
    return any(sum(all((rate, decay) in pairs for decay in three) for rate in rates) >= 3 for three in chosen)


def _four_sizes(runs: list[Run], evidence: Evidence) -> bool:
    """Four sizes of one model at two little sizes of data."""
    sizes = defaultdict(set)
    for run in runs:
        sizes[run.spec.share, model_of(run)[0]].add(run.spec.size)
    enough = {share for (share, _), of in sizes.items() if len(of - {None}) >= 4}
    return len(enough & set(evidence.little)) >= 2


def _two_models(runs: list[Run], _evidence: Evidence) -> bool:
    return len({model_of(run)[0] for run in runs}) >= 2


_RAN: dict[str, Callable[[list[Run], Evidence], bool]] = {
    "saturation": _saturation, "learning rate x weight decay": _rate_and_decay, "four sizes": _four_sizes,
    "two models a family": _two_models}


def _reached(evidence: Evidence, family: str) -> bool:
    rows = [row for row in evidence.rows if row.family == family]
    return 2 * sum(row.matched_loss_accuracy is not None for row in rows) > len(rows)


def _matched_macs(evidence: Evidence) -> bool:
    try:
        return bool(matched_pairs(evidence, on="macs"))
    except Blocked:
        return False
