"""How models overfit, as Vega-Lite: one cell's curves in detail, and all cells as small multiples."""

from typing import Any, Literal

import altair as alt

from vitbench.report.cells import Cell
from vitbench.report.curves import CellCurves, cell_curves
from vitbench.report.frame import Frame
from vitbench.report.palette import INK, PARTS
from vitbench.report.vega import WIDTH, Quantity, Spec, finish, of_condition, one_cell, value_axis

StepAxis = Literal["log", "linear"]
TITLES = {"accuracy": "accuracy, %", "loss": "loss, nats"}
MOST_PANEL_ROWS = 12
_VALIDATION = PARTS[1].colour


def overfitting(
        frame: Frame, label: str, share: str, *, condition: str | None = None, quantity: Quantity = "accuracy",
        step_axis: StepAxis = "log") -> Spec:
    """Clean train, validation and test of one cell against the step: seeds thin, their mean thick, onsets marked.

    Raises NoSuchCell for a label, share or condition that the study does not have.
    """
    curves = cell_curves(frame, one_cell(frame, label, share, condition))
    return {**overfitting_form(frame, quantity, step_axis), "datasets": curve_datasets(curves)}


def curve_datasets(curves: CellCurves) -> Spec:
    """The rows of `overfitting_form`'s two datasets."""
    return {"curves": [dict(zip(("seed", "step", "part", "loss", "accuracy"), row, strict=True))
                       for row in curves.curves],
            "onsets": [dict(zip(("seed", "step", "loss", "accuracy"), row, strict=True)) for row in curves.onsets]}


def overfitting_form(frame: Frame, quantity: Quantity, step_axis: StepAxis) -> Spec:
    """`overfitting` without its data: a page fills in one cell after the other."""
    y = alt.Y(f"{quantity}:Q", axis=value_axis(quantity, title=TITLES[quantity], tickCount=6),
              scale=alt.Scale(zero=quantity == "loss"))
    x = alt.X("step:Q", scale=alt.Scale(type=step_axis, nice=False),
              axis=alt.Axis(title=f"step ({step_axis} scale)", format=",d", grid=False, tickCount=6,
                            labelOverlap="greedy", labelFlush=True))
    chart = alt.layer(*_onset_layers(x, y), *_curve_layers(x, y, quantity)).properties(width=WIDTH, height=320)
    return finish(chart, frame, {"curves": [], "onsets": []})


def _curve_layers(x: Any, y: Any, quantity: Quantity) -> list[Any]:
    names = {part.part: part.title for part in PARTS}
    # The legend's words come from us, never from a record, so they may stand in an expression.
    legend = alt.Legend(orient="top", labelExpr=f"{names!r}[datum.label]", symbolType="stroke", symbolStrokeWidth=2.4)
    curves = alt.Chart(alt.NamedData(name="curves")).encode(
        x=x, y=y,
        color=alt.Color("part:N", scale=alt.Scale(domain=list(names), range=[p.colour for p in PARTS]), legend=legend),
        strokeDash=alt.StrokeDash("part:N", scale=alt.Scale(domain=list(names), range=[p.dash for p in PARTS]),
                                  legend=legend))
    seeds = curves.mark_line(strokeWidth=0.8, strokeOpacity=0.55).encode(detail="seed:N")
    mean = curves.mark_line(strokeWidth=2.4).encode(
        tooltip=[alt.Tooltip("part:N"), alt.Tooltip("step:Q", format=",d"),
                 alt.Tooltip(f"{quantity}:Q", format=".4~g")])
    return [seeds.transform_filter("datum.seed !== null"), mean.transform_filter("datum.seed === null")]


def _onset_layers(x: Any, y: Any) -> list[Any]:
    onsets = alt.Chart(alt.NamedData(name="onsets"))
    middle = onsets.transform_filter("datum.seed === null")
    rule = middle.mark_rule(color=_VALIDATION, strokeWidth=1, strokeDash=[1, 3]).encode(x=x)
    word = middle.mark_text(color=INK, align="right", dx=-4, baseline="top", fontSize=11).encode(
        x=x, y=alt.value(2), text=alt.value("onset"))
    point = onsets.transform_filter("datum.seed !== null").mark_point(
        shape="triangle-down", filled=True, size=60, color=_VALIDATION, opacity=0.9).encode(
        x=x, y=y, tooltip=[alt.Tooltip("seed:N"), alt.Tooltip("step:Q", title="onset step")])
    return [rule, word, point]


def overview(frame: Frame, *, condition: str | None = None, quantity: Quantity = "accuracy") -> Spec:
    """Small multiples of one condition: models down, shares across, mean clean-train and test curves.

    The first 12 models. A cell without a curve that all its runs have says 'missing' or 'no curve'. Raises NoSuchCell.
    """
    found = of_condition(frame, condition)
    labels = list(dict.fromkeys(cell.label for cell in found))[:MOST_PANEL_ROWS]
    shares = list(dict.fromkeys(cell.share for cell in found))
    rows = [row for cell in found if cell.label in labels for row in _panel_rows(frame, cell, quantity)]
    # Axes are shared: panels compare at a glance, and only the outer ones carry numbers.
    chart = alt.layer(*_panel_layers(quantity), data=alt.NamedData(name="panels")).properties(
        width=110, height=64).facet(
        row=alt.Row("label:N", sort=labels, header=alt.Header(labelAngle=0, labelAlign="left", labelLimit=150)),
        column=alt.Column("share:N", sort=shares, header=alt.Header(labelLimit=105)), spacing=12)
    return finish(chart, frame, {"panels": rows})


def _panel_layers(quantity: Quantity) -> list[Any]:
    x = alt.X("step:Q", scale=alt.Scale(type="log", nice=False),
              axis=alt.Axis(title=None, format="~s", grid=False, tickCount=3, labelOverlap="greedy", labelFontSize=10))
    scale = alt.Scale(domain=[0, 1]) if quantity == "accuracy" else alt.Scale(zero=True)
    axis = value_axis(quantity, title=None, tickCount=3, labelFontSize=10)
    base = alt.Chart().encode(x=x)
    between = base.mark_area(fillOpacity=0.18, color=PARTS[0].colour).encode(
        y=alt.Y("train:Q", scale=scale, axis=axis), y2="test:Q")
    # In every panel something is named, for Vega puts panels without a row first and shifts all others.
    word = alt.Chart().mark_text(color=INK, fontSize=11).encode(text="note:N").transform_filter("isValid(datum.note)")
    return [between, word, *(base.mark_line(color=p.colour, strokeDash=p.dash, strokeWidth=1.6).encode(
        y=alt.Y(f"{p.part}:Q", scale=scale, axis=axis)) for p in (PARTS[0], PARTS[2]))]


def _panel_rows(frame: Frame, cell: Cell, quantity: Quantity) -> list[Spec]:
    place = 4 if quantity == "accuracy" else 3
    at: dict[int, Spec] = {}
    for row in cell_curves(frame, cell).curves:
        if row[0] is None and row[2] != "val":
            at.setdefault(row[1], {})[row[2]] = row[place]
    if not at:
        return [{"label": cell.label, "share": cell.share, "note": "no curve" if cell.rows else "missing"}]
    return [{"label": cell.label, "share": cell.share, "step": step, **values} for step, values in at.items()]
