"""Figures as Vega-Lite: pure functions of a frame; the same records give the same specification."""

from typing import Any

import altair as alt

from vitbench.report.cells import Cell, cells
from vitbench.report.curve_figures import StepAxis, overfitting, overview
from vitbench.report.frame import Frame
from vitbench.report.palette import QUIET, ModelStyle, model_styles
from vitbench.report.placing import axis_range, spread
from vitbench.report.vega import (
    WIDTH,
    NoSuchCell,
    Quantity,
    Spec,
    by_model,
    conditions,
    finish,
    of_condition,
    value_axis,
)
from vitbench.report.wording import six_digits

__all__ = ["NoSuchCell", "Quantity", "Spec", "StepAxis", "accuracy", "conditions", "overfitting", "overview"]

LABEL_HEIGHT = 15  # pixels a name at the end of a line needs


def accuracy(frame: Frame, *, condition: str | None = None, direct_labels: bool = True) -> Spec:
    """Test accuracy against training images, one line a model, with 95 % t intervals over seeds.

    One condition (the first unless given); cells without a run are left out. A cell with runs that diverged or failed
    has an open marker and its interval as a line only: as a band it would hide all others. With `direct_labels` each
    line is named at its end, the names pushed apart. Raises NoSuchCell.
    """
    points = [_point(cell) for cell in of_condition(frame, condition) if cell.accuracy]
    styles = model_styles(cells(frame))
    height = max(340, LABEL_HEIGHT * len(styles) + 40)
    limits = axis_range([p["mean"] for p in points], [p["band_low"] for p in points], [p["band_high"] for p in points])
    labels = _end_labels(points, limits, height) if direct_labels else []
    layers = _layers(styles, limits, sorted({p["train_images"] for p in points}))
    chance = six_digits(1 / frame.resolved.num_classes)
    datasets = {"points": points, "labels": labels, "chance": [{"chance": chance}]}
    if limits[0] <= (chance or 0) <= limits[1]:
        layers.insert(0, _chance_rule())
    chart = alt.layer(*layers, *(_label_layers() if direct_labels else ())).properties(width=WIDTH, height=height)
    return finish(chart, frame, datasets)


def _point(cell: Cell) -> Spec:
    interval = cell.accuracy
    assert interval is not None
    low, high = six_digits(interval.low), six_digits(interval.high)
    whole = len(cell.done) == len(cell.rows)
    return {"label": cell.label, "train_images": cell.train_images, "share": cell.share, "whole": whole,
            "runs": f"{interval.n} of {len(cell.runs)}", "mean": six_digits(interval.mean), "low": low, "high": high,
            "band_low": low if whole else None, "band_high": high if whole else None}


def _layers(styles: tuple[ModelStyle, ...], limits: tuple[float, float], sizes: list[int]) -> list[Any]:
    x = alt.X("train_images:Q", axis=alt.Axis(title="training images (log scale)", values=sizes, format=",d",
                                              labelOverlap="greedy"),
              scale=alt.Scale(type="log", nice=False, domain=[sizes[0] / 1.15, sizes[-1] * 1.15] if sizes else [1, 10]))
    base = alt.Chart(alt.NamedData(name="points")).encode(x=x, color=by_model(alt.Color, styles, "colour"))
    band = base.mark_area(fillOpacity=0.12, clip=True).encode(y=_share_of("band_low", limits), y2="band_high:Q")
    bar = base.mark_rule(strokeOpacity=0.5, clip=True).encode(y=_share_of("low", limits), y2="high:Q")
    line = base.mark_line(clip=True).encode(y=_share_of("mean", limits), strokeDash=by_model(
        alt.StrokeDash, styles, "dash"), strokeWidth=by_model(alt.StrokeWidth, styles, "width"))
    marks = [base.mark_point(filled=filled, size=60, opacity=1, strokeWidth=1.6, clip=False).encode(
        y=_share_of("mean", limits), shape=by_model(alt.Shape, styles, "shape"), tooltip=_tooltip()).transform_filter(
        "datum.whole" if filled else "!datum.whole") for filled in (True, False)]
    return [band, bar, line, *marks]


def _share_of(field: str, limits: tuple[float, float]) -> Any:
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=list(limits), nice=False, zero=False),
                 axis=value_axis("accuracy", title="test accuracy, %", tickCount=6))


def _tooltip() -> list[Any]:
    shares = [alt.Tooltip(f"{field}:Q", title=title, format=".1%")
              for field, title in (("mean", "test accuracy"), ("low", "from"), ("high", "to"))]
    return [alt.Tooltip("label:N", title="model"), alt.Tooltip("share:N"), *shares, alt.Tooltip("runs:N"),
            alt.Tooltip("train_images:Q", title="training images", format=",d")]


def _chance_rule() -> Any:
    return alt.Chart(alt.NamedData(name="chance")).mark_rule(strokeDash=[2, 4], color=QUIET).encode(
        y="chance:Q", tooltip=alt.Tooltip("chance:Q", format=".1%"))


def _end_labels(points: list[Spec], limits: tuple[float, float], height: int) -> list[Spec]:
    """Where each model's name stands at the right edge, in the units of the axis."""
    low, high = limits
    last = {point["label"]: point for point in sorted(points, key=lambda point: int(point["train_images"]))}
    scale = height / (high - low)
    ends = [(high - point["mean"]) * scale for point in last.values()]
    placed = spread(ends, LABEL_HEIGHT, height)
    return [{"label": label, "train_images": point["train_images"], "end": point["mean"],
             "place": six_digits(high - place / scale)}
            for (label, point), place in zip(last.items(), placed, strict=True)]


def _label_layers() -> list[Any]:
    base = alt.Chart(alt.NamedData(name="labels"))
    leader = base.mark_rule(color=QUIET, strokeWidth=0.6, x2Offset=16, opacity=0.8).encode(
        x="train_images:Q", x2=alt.value("width"), y="end:Q", y2="place:Q")
    name = base.mark_text(align="left", baseline="middle", dx=20, limit=165).encode(
        x=alt.value("width"), y="place:Q", text="label:N", color="label:N")
    return [leader, name]
