"""Whether the ranking of the models changes with the budget, the regime, or tuning."""

from collections.abc import Sequence
from itertools import chain, combinations
from typing import Literal

from vitbench.report import notes
from vitbench.report.cells import Cell, cells, paired
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table
from vitbench.report.wording import NONE, percent, signed_interval
from vitbench.stats.intervals import FEW_SEEDS, t_interval
from vitbench.stats.ranking import change

Axis = Literal["budget", "regime", "setting"]
AXES: tuple[Axis, ...] = ("budget", "regime", "setting")
Group = dict[str, list[Cell]]  # by value of the axis


def ranking(frame: Frame, axis: Axis) -> Table | None:
    """One row for each share and other condition: the models in the order of their mean accuracy under each value of
    `axis`, and which pairs change places. None where the study has one value of it."""
    found, others = cells(frame), [key for key in ("share", *AXES) if key != axis]
    values = list(dict.fromkeys(getattr(cell, axis) for cell in found))
    if len(values) < 2:
        return None
    groups: dict[tuple[str, ...], Group] = {}
    for cell in found:
        same = tuple(getattr(cell, key) for key in others)
        groups.setdefault(same, {}).setdefault(getattr(cell, axis), []).append(cell)
    comparisons = sum(len(_pairs(group)) for group in groups.values())
    level = 1 - 0.05 / max(1, comparisons)
    varies = [key == "share" or len({same[i] for same in groups}) > 1 for i, key in enumerate(others)]
    columns = [*(Column(key, key, shown=shown) for key, shown in zip(others, varies, strict=True)),
               *(Column(f"ranking_{i}", f"ranking under {value}") for i, value in enumerate(values, 1)),
               Column("flips", "flips"), Column("order_changes", "order changes"), *notes.RESTS_ON]
    identity = notes.identity(frame)
    rows = tuple((*(Entry(part, part) for part in same), *(_order(group.get(value, [])) for value in values),
                  *_changes(group, frame.margin, level), *notes.rests_on(chain(*group.values()), identity))
                 for same, group in groups.items())
    return Table(f"Study {frame.study}: does the ranking change with the {axis}?", tuple(columns), rows, (),
                 _footer(frame, axis, comparisons))


def _order(group: Sequence[Cell]) -> Entry:
    """'convnet:s 91.2 > linear 88.0': by mean test accuracy in percent."""
    known = [(cell.accuracy.mean, cell.label) for cell in group if cell.accuracy]
    text = " > ".join(f"{label} {percent(mean)}" for mean, label in sorted(known, key=lambda one: (-one[0], one[1])))
    return Entry(text or None, text or NONE)


def _pairs(group: Group) -> list[tuple[tuple[Cell, Cell], tuple[Cell, Cell]]]:
    """Each two models, under each two values of the axis."""
    found = []
    for before, after in combinations(group.values(), 2):
        same = {cell.label: cell for cell in after}
        found += [((a, b), (same[a.label], same[b.label])) for a, b in combinations(before, 2)
                  if a.label in same and b.label in same]
    return found


def _changes(group: Group, margin: float, level: float) -> tuple[Entry, Entry]:
    flips, orders = [], []
    for before, after in _pairs(group):
        differences = paired(*before), paired(*after)
        if not all(differences):
            continue
        first, second = map(t_interval, differences)
        told = (f"{before[0].label} minus {before[1].label}: {signed_interval(first)}, then "
                f"{signed_interval(second)}")
        strict = t_interval(differences[0], level=level), t_interval(differences[1], level=level)
        if change(strict, (first, second), margin=margin).flips:
            flips.append(told)
        elif first.mean * second.mean < 0:
            orders.append(told)
    return _listed(flips), _listed(orders)


def _listed(texts: list[str]) -> Entry:
    return Entry("; ".join(texts) or None, "; ".join(texts) or "none")


def _footer(frame: Frame, axis: Axis, comparisons: int) -> tuple[str, ...]:
    if not comparisons:
        return (f"No two models stand under two values of the {axis}: there is nothing to compare.",
                *notes.cited(frame))
    return (
        f"Flips: the paired difference of two models, in points, excludes 0 on one side under one {axis} and on the "
        f"other side under another, at level 1 - .05/{comparisons} ({comparisons} comparisons), both differences at "
        f"least {percent(frame.margin)} points; none is declared below {FEW_SEEDS} seeds.",
        "Order changes: the means change places, but no flip is shown. Differences stand with their 95 % t interval "
        "over seeds.",
        *notes.cited(frame))
