"""What one option is worth: every model of a study against the first, paired by seed."""

from collections.abc import Iterator
from typing import Annotated, Any

import altair as alt
from pydantic import Field

from vitbench.probes import PROBES, ROWS, WIDTH, Column, Look, Measured, ProbeError, ProbeMeta
from vitbench.registry import nearest
from vitbench.report.cells import Cell, cells, paired
from vitbench.report.palette import INK, QUIET
from vitbench.report.wording import percent
from vitbench.spec import Frozen
from vitbench.stats.intervals import t_interval


class Options(Frozen):
    """Which model the others are held against."""

    against: Annotated[str | None, Field(description="a label of the study; the first where none is given")] = None


@PROBES.add("ablation", ProbeMeta(
    statement="An option of a model is worth what test accuracy loses or gains when it alone is changed.",
    source="protocol rules 7 and 20: the same seed gives the same subset and initialisation, so differences pair",
    looks_at=("study",), options=Options))
def ablation(look: Look) -> Measured:
    """A row for each other model, share and condition of the study: the mean paired difference with its interval."""
    found = cells(look.frame())
    labels = list(dict.fromkeys(cell.label for cell in found))
    first = labels[0] if look.options.against is None else look.options.against
    if first not in labels:
        raise ProbeError(f"against: should be one of {', '.join(labels)}; found {first!r}.{nearest(first, labels)}")
    rows = [row for cell in found if cell.label != first for row in _row(cell, _same(found, cell, first))]
    if not rows:
        raise ProbeError("differences are paired by seed, and no other model of the study has two seeds or more in "
                         f"common with {first!r}: run more seeds (vitbench run {look.study.name} seeds=6)")
    return Measured(COLUMNS, rows, _figure(rows), _summary(rows, first))


def _same(found: tuple[Cell, ...], cell: Cell, label: str) -> Cell:
    return next(other for other in found if other.key == (label, *cell.key[1:]))


def _row(cell: Cell, first: Cell) -> Iterator[dict[str, Any]]:
    differences = paired(cell, first)
    interval = t_interval(differences) if len(differences) > 1 else None
    if interval is not None and cell.accuracy is not None and first.accuracy is not None:
        yield {"label": cell.label, "share": cell.share, "condition": cell.condition, "seeds": len(differences),
               "accuracy": cell.accuracy.mean, "against": first.accuracy.mean, "difference": interval.mean,
               "low": interval.low, "high": interval.high, "params": cell.constant("params"),
               "macs": cell.constant("macs")}


COLUMNS = (
    Column(name="label", unit="", meaning="the model's name in the study"),
    Column(name="share", unit="", meaning="the fraction as the study writes it, or 'N a class'"),
    Column(name="condition", unit="", meaning="regime, budget, setting"),
    Column(name="seeds", unit="", meaning="that ended in both"),
    Column(name="accuracy", unit="share of test images", meaning="test accuracy, mean over seeds"),
    Column(name="against", unit="share of test images", meaning="the same of the model that it is held against"),
    Column(name="difference", unit="share of test images", meaning="mean of the differences inside each seed"),
    Column(name="low", unit="share of test images", meaning="lower end of its 95 % t interval over seeds"),
    Column(name="high", unit="share of test images", meaning="upper end"),
    Column(name="params", unit="", meaning="parameters"),
    Column(name="macs", unit="", meaning="multiply-adds of one image"),
)


def _figure(rows: list[dict[str, Any]]) -> Any:
    labels = list(dict.fromkeys(row["label"] for row in rows))
    points = "datum.difference * 100"
    y = alt.Y("label:N", sort=labels, axis=alt.Axis(title=None, labelLimit=200, grid=True))
    base = alt.Chart().transform_calculate(mean=points, left="datum.low * 100", right="datum.high * 100")
    x = alt.X("mean:Q", axis=alt.Axis(title="difference of test accuracy, points"))
    marks = base.mark_point(filled=True, size=45, color=INK).encode(y=y, x=x)
    bars = base.mark_rule(color=INK).encode(y=y, x="left:Q", x2="right:Q")
    zero = alt.Chart().mark_rule(color=QUIET, strokeDash=[4, 3]).encode(x=alt.datum(0))
    panel = alt.layer(zero, bars, marks, data=ROWS).properties(width=WIDTH // 2.4, height=16 * len(labels))
    header = alt.Header(title="share of the training images", titleFontWeight="normal")
    column = alt.Column("share:N", sort=list(dict.fromkeys(row["share"] for row in rows)), header=header)
    if len({row["condition"] for row in rows}) == 1:
        return panel.facet(column=column)
    return panel.facet(column=column, row=alt.Row("condition:N", header=alt.Header(title=None)))


def _summary(rows: list[dict[str, Any]], first: str) -> str:
    parts = []
    for share in dict.fromkeys(row["share"] for row in rows):
        of_share = [row for row in rows if row["share"] == share]
        worse, better = sum(row["high"] < 0 for row in of_share), sum(row["low"] > 0 for row in of_share)
        low, high = (pick(of_share, key=lambda row: row["difference"]) for pick in (min, max))
        parts.append(f"At share {share}, of {len(of_share)} models the interval of {worse} lies below {first!r} and of "
                     f"{better} above; from {percent(low['difference'], sign=True)} points ({low['label']}) to "
                     f"{percent(high['difference'], sign=True)} ({high['label']})")
    return f"{'. '.join(parts)}. Intervals are not adjusted for their number."
