"""How far heads look, beside how far a convolutional network sees: before, through and after training, against n."""

from collections.abc import Iterator
from typing import Annotated, Any

import altair as alt
import numpy as np
from pydantic import Field

from vitbench.grid import Run
from vitbench.probes import (
    HEAD_COLUMN,
    LAYER_COLUMN,
    PROBES,
    ROWS,
    RUN,
    Column,
    Look,
    Measured,
    ProbeMeta,
    Trained,
    filled,
    named,
)
from vitbench.probes._figure import LOOKS
from vitbench.probes._sight import Gradient, can_be_seen, sight
from vitbench.probes._spread import Spread
from vitbench.report.palette import HUES, QUIET
from vitbench.spec import Frozen

HEAD, MODEL, FIELD = "head", "all heads", "receptive field"
UNTRAINED, TRAINING, TRAINED = "untrained", "in training", "trained"
EVEN = "even attention"
SEES = ", receptive field"


class Options(Frozen):
    """Test images, and which moments of training."""

    images: Annotated[int, Field(ge=1, le=1000)] = 128
    through: Annotated[bool, Field(description="at every curve point, for which runs are trained again")] = False


@PROBES.add("attention_distance", ProbeMeta(
    statement="Heads look near or far as they have learned to, where a convolution sees what its kernels reach.",
    source="Dosovitskiy et al. 2021, figure 7 and appendix D.7; Luo et al. 2016, section 3", looks_at=("runs",),
    options=Options, families=("attention", "convolution", "hybrid")))
def attention_distance(look: Look) -> Measured:
    """Mean distance from query to key under each head's weights; of a CNN, from the middle under its gradient."""
    runs, left_out = can_be_seen(look)
    rows = filled(COLUMNS, (row for run in runs for row in _of_run(look, run)))
    return Measured(COLUMNS, rows, _figure(rows, look.options.through), _summary(rows) + left_out)


def _of_run(look: Look, run: Run) -> Iterator[dict[str, Any]]:
    record, deviation = look.record(run), None
    for step, seen in _moments(look, run):
        when = UNTRAINED if step == 0 else TRAINED if step == record.curves.step[-1] else TRAINING
        for facts in of_gradient(seen) if isinstance(seen, Gradient) else of_heads(seen):
            row = {**facts, **named(run), "train_images": record.data.train_images, "step": step, "when": when}
            if row.get("deviation") is not None:  # the row of all heads, where there are several
                deviation = row["deviation"] if deviation is None else deviation
                row["deviation_change"] = row["deviation"] - deviation
            yield row


def _moments(look: Look, run: Run) -> list[tuple[int, Any]]:
    """Steps, and what is seen of the model there."""
    def at(trained: Trained) -> Any:
        return sight(trained, look.options.images)

    record, found = look.record(run), []
    if look.options.through:
        look.trained(run, lambda module, step: found.append((step, at(Trained(record, module, "at a curve point")))))
        return found
    return [(0, at(look.untrained(run))), (record.curves.step[-1], at(look.trained(run)))]


def of_heads(spreads: list[Spread]) -> Iterator[dict[str, Any]]:
    """A row for each head, and one for all."""
    distances = []
    for layer, spread in enumerate(spreads):
        image_side, distance_NN = spread.grid_width * spread.side, spread.distance_NN
        even = {"even": float((spread.even_NN * distance_NN).sum())}
        for head, distance in enumerate(spread.mean_H(distance_NN)):
            distances.append(distance)
            yield {"kind": HEAD, "layer": layer, "head": head, "empty": float(spread.empty_H[head]), **even,
                   **_in_sides(distance, image_side)}
    known = [distance for distance in distances if distance is not None]
    yield {"kind": MODEL, **even, **_in_sides(float(np.mean(known)) if known else None, image_side),
           "deviation": float(np.std(known)) / image_side if len(known) > 1 else None}


def of_gradient(gradient: Gradient) -> Iterator[dict[str, Any]]:
    """The one row of a convolutional network."""
    distance_HW = gradient.distance_HW
    yield {"kind": FIELD, "even": float(distance_HW.mean()), "field": gradient.side,
           **_in_sides(gradient.mean(distance_HW), distance_HW.shape[1])}


def _in_sides(distance: float | None, image_side: float) -> dict[str, Any]:
    return {"distance": distance, "distance_sides": None if distance is None else distance / image_side}


COLUMNS = (
    *RUN,
    Column(name="train_images", unit="", meaning="n"),
    Column(name="step", unit="", meaning="optimiser steps done; 0: untrained"),
    Column(name="when", unit="", meaning="untrained, in training or trained"),
    Column(name="kind", unit="", meaning="a head; all heads of the model; a CNN's receptive field"),
    LAYER_COLUMN,
    HEAD_COLUMN,
    Column(name="distance", unit="pixels", meaning=(
        "of a head: between the centres of query and key, mean under its weights, which are taken absolute and divided "
        "by their sum in each row (softmax: as they are), over queries and test images; a class token is left out, as "
        "query and as key. Of all heads: their mean. Of a receptive field: from its middle to each pixel, mean under "
        "the absolute gradient of the last feature map's middle place (effective receptive field)")),
    Column(name="distance_sides", unit="image sides", meaning="the same"),
    Column(name="even", unit="pixels", meaning="the same for weights that are alike for all tokens that a token may "
                                               "see, or a gradient that is alike on all pixels"),
    Column(name="deviation", unit="image sides", meaning="of the distances of all heads, from their mean (over their "
                                                         "number, not one less)"),
    Column(name="deviation_change", unit="image sides", meaning="deviation less that of the untrained model"),
    Column(name="empty", unit="", meaning="share of the head's rows without any weight, which are left out"),
    Column(name="field", unit="pixels a side", meaning="theoretical receptive field of the convolutions and pools, "
                                                       "which an image may not fill; what normalises over all places "
                                                       "is not counted"))


def _figure(rows: list[dict[str, Any]], through: bool) -> Any:
    """For each model that attends a panel a share, through training; else one a moment, against n."""
    labels = list(dict.fromkeys(row["label"] for row in rows if row["kind"] == HEAD))
    by, values = ("share", list(dict.fromkeys(row["share"] for row in rows))) if through else \
        ("when", [UNTRAINED, TRAINED])
    known = [row[what] for row in rows for what in ("distance", "even") if row[what] is not None]
    y = {"scale": alt.Scale(domain=[0.95 * min(known), 1.03 * max(known)], nice=False, zero=False),
         "axis": alt.Axis(title="mean distance, pixels", tickCount=5)}
    panels = [[_panel(label, alt.datum[by] == value, y, through).encode(**_series(rows, through)).properties(
        width=250, height=200, title=alt.Title(f"{label}, {'share ' * through}{value}", fontWeight="normal"))
        for value in values] for label in labels or ["no attention"]]
    return alt.vconcat(*(alt.concat(*panel, columns=3) for panel in panels), data=ROWS).resolve_scale(
        color="shared", shape="shared", strokeDash="shared")


def _panel(label: str, chosen: Any, y: dict[str, Any], through: bool) -> Any:
    """Heads of one model, and what stands beside them: even attention, and every receptive field."""
    x = alt.X("step:Q", scale=alt.Scale(type="sqrt"), axis=alt.Axis(title="step (root scale)", tickCount=5)) \
        if through else alt.X("train_images:O", scale=alt.Scale(paddingInner=0.5, paddingOuter=0.3),
                              axis=alt.Axis(title="training images", labelAngle=0))
    base = alt.Chart().transform_filter(chosen)
    heads = base.transform_filter((alt.datum.label == label) & (alt.datum.kind == HEAD))
    beside = [of.mark_line(strokeWidth=2, point=not through and alt.OverlayMarkDef(filled=True, size=40)).encode(
        x=x, y=alt.Y(f"mean({what}):Q", **y)) for of, what in (
        (heads.transform_calculate(series=repr(EVEN)), "even"),
        (base.transform_filter(alt.datum.kind == FIELD).transform_calculate(series=f"datum.label + {SEES!r}"),
         "distance"))]
    heads = heads.transform_calculate(series="'layer ' + datum.layer").encode(x=x, y=alt.Y("distance:Q", **y))
    return alt.layer(*beside, heads.mark_line(strokeWidth=1.2, opacity=0.8).encode(detail=["run:N", "head:O"])
                     if through else heads.mark_point(filled=True, opacity=0.7, size=36).encode(xOffset="layer:O"))


def _series(rows: list[dict[str, Any]], through: bool) -> dict[str, Any]:
    """One legend: layers from light to dark, the CNNs in their family's hue, even attention dotted."""
    layers = 1 + max((row["layer"] for row in rows if row["kind"] == HEAD), default=-1)
    fields = list(dict.fromkeys(row["label"] for row in rows if row["kind"] == FIELD))
    styles = [LOOKS[i % len(LOOKS)][1:] for i in range(max(layers, len(fields)))]
    looks = [(f"layer {i}", _shade(i, layers), dash if through else [1, 0], shape)
             for i, (dash, shape) in enumerate(styles[:layers])]
    looks += [(label + SEES, HUES["convolution"][0], *style) for label, style in zip(fields, styles, strict=False)]
    looks += [(EVEN, QUIET, [1.5, 3], "cross")] if layers else []
    domain, *ranges = (list(values) for values in zip(*looks, strict=True))
    legend = alt.Legend(orient="top", columns=4, labelLimit=320, symbolStrokeWidth=2,
                        **({"symbolType": "stroke"} if through else {"symbolSize": 90}))
    channels = {"color": alt.Color, "strokeDash": alt.StrokeDash, "shape": alt.Shape}
    # Points on so many lines would hide them; dashes around the points of a legend would blur them.
    return {name: channel("series:N", legend=legend if through or name != "strokeDash" else None,
                          scale=alt.Scale(domain=domain, range=found))
            for (name, channel), found in zip(channels.items(), ranges, strict=True) if name != "shape" or not through}


def _shade(i: int, of: int) -> str:
    """Of blue, light to dark."""
    part, ends = i / max(of - 1, 1), ((86, 0), (180, 40), (233, 80))
    return "#" + "".join(f"{round(light + part * (dark - light)):02x}" for light, dark in ends)


def _summary(rows: list[dict[str, Any]]) -> str:
    """At the largest n: distances before and after training, and how much the heads came to differ."""
    parts = []
    for label in dict.fromkeys(row["label"] for row in rows):
        found = [row for row in rows if row["label"] == label and row["kind"] != HEAD
                 and row["train_images"] == max(r["train_images"] for r in rows if r["label"] == label)]
        before, after = (_mean(found, "distance", when) for when in (UNTRAINED, TRAINED))
        text = f"{label} {before} pixels untrained, {after} trained ({_mean(found, 'even', TRAINED)} if even"
        if found[0]["kind"] == FIELD:
            parts.append(f"{text}; theoretical receptive field {found[0]['field']} pixels a side)")
        else:
            change = _mean(found, "deviation_change", TRAINED)
            parts.append(f"{text}); the deviation over heads changed by {change} image sides")
    return f"Mean distance at each model's largest number of training images, mean over runs: {'. '.join(parts)}."


def _mean(rows: list[dict[str, Any]], what: str, when: str) -> str:
    found = [row[what] for row in rows if row["when"] == when and row[what] is not None]
    return f"{np.mean(found):.3g}" if found else "—"
