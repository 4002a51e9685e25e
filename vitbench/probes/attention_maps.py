"""Where models look on chosen test images: attention rolled out, each head, and gradients of what does not attend."""

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
    RUN,
    Column,
    Look,
    Measured,
    ProbeError,
    ProbeMeta,
    Trained,
    named,
)
from vitbench.probes._maps import Map, half_area, maps
from vitbench.probes._spread import Floats
from vitbench.spec import Frozen

MOST_CELLS = 40_000  # of a figure: 5 MB
THUMBNAIL = 64  # pixels a side


class Options(Frozen):
    """Which test images, and whether each head is shown."""

    images: Annotated[list[Annotated[int, Field(ge=0)]], Field(
        max_length=16, default_factory=list, description="numbers in the test part; none: the first of each class")]
    classes: Annotated[int, Field(ge=1, le=16, description="the first so many, where no images are named")] = 4
    heads: bool = True


@PROBES.add("attention_maps", ProbeMeta(
    statement="Where a model looks in an image can be read from its attention.",
    source="Abnar and Zuidema 2020, section 3; Simonyan et al. 2014, section 3", looks_at=("runs",), options=Options))
def attention_maps(look: Look) -> Measured:
    """Of each model the run on the most images: maps of its attention, or the gradient where it has none of ours."""
    runs, rows, cells = _one_of_each(look), list[dict[str, Any]](), list[dict[str, Any]]()
    for run in runs:
        trained = look.trained(run)
        chosen = _chosen(trained, look.options)
        cells += [] if cells else _cells("image", chosen, _grey(trained, chosen))
        for found, facts in _of_run(trained, chosen, look.options.heads):
            cells += _cells(_title(run, found), chosen, found.of_BRC)
            rows += [{**named(run), **each} for each in facts]
            if len(cells) > MOST_CELLS:
                raise ProbeError(f"maps of {len(chosen)} images by {len(runs)} models have more than {MOST_CELLS:,} "
                                 "cells; take fewer images (classes or images), heads=false, or --only one model")
    return Measured(COLUMNS, rows, _figure(cells), _summary(rows, len(look.runs)))


def _one_of_each(look: Look) -> list[Run]:
    of_label: dict[str, list[Run]] = {}
    for run in look.runs:
        of_label.setdefault(run.label, []).append(run)
    return [max(runs, key=lambda run: look.record(run).data.train_images) for runs in of_label.values()]


def _chosen(trained: Trained, options: Options) -> list[int]:
    """Numbers of test images. Raises ProbeError."""
    labels_N = trained.module.data.parts["test"].labels_N
    beyond = [image for image in options.images if image >= len(labels_N)]
    if beyond:
        raise ProbeError(f"images: the test part has images 0 to {len(labels_N) - 1}; found {beyond[0]}")
    first = [int(np.flatnonzero(labels_N == label)[0]) for label in np.unique(labels_N)[:options.classes]]
    return list(dict.fromkeys(options.images)) or first


def _grey(trained: Trained, chosen: list[int]) -> Floats:
    """The images as they are, the mean of their channels."""
    images_BCSS = trained.module.data.parts["test"].images[chosen]
    return np.asarray(images_BCSS.double().mean(dim=1).cpu().numpy())


def _of_run(trained: Trained, chosen: list[int], heads: bool) -> Iterator[tuple[Map, list[dict[str, Any]]]]:
    """Each map, and of each image what the table tells about it."""
    import torch

    data, model = trained.module.data, trained.module.model
    images = data.normalised(data.parts["test"].images[chosen])
    with torch.no_grad():
        predicted = model(images).argmax(dim=1).tolist()
    for found in maps(model, images, heads=heads):
        side = images.shape[3] / found.of_BRC.shape[2]
        facts = []
        for number, map_RC, prediction in zip(chosen, found.of_BRC, predicted, strict=True):
            row, column = np.unravel_index(map_RC.argmax(), map_RC.shape)
            facts.append({"image": number, "truth": int(data.parts["test"].labels_N[number]), "prediction": prediction,
                          "map": found.kind, "layer": found.layer, "head": found.head,
                          "half_area": half_area(map_RC) if map_RC.any() else None,
                          "peak_down": float((row + 0.5) * side), "peak_right": float((column + 0.5) * side)})
        yield found, facts


COLUMNS = (
    *RUN,
    Column(name="image", unit="", meaning="number in the test part, from 0"),
    Column(name="truth", unit="", meaning="the image's class"),
    Column(name="prediction", unit="", meaning="the model's"),
    Column(name="map", unit="", meaning=(
        "rollout: what the pooling takes from each token through all layers, half of each passed on as it is; head: "
        "the same of one head's weights alone (mean and max pooling: the mean over queries, cls: the class token's "
        "row, attention: rows as it weighs them); gradient: of the largest logit, absolute, summed over channels. "
        "Weights are taken absolute and divided by their sum in each row; the share on a class token is not shown")),
    LAYER_COLUMN,
    HEAD_COLUMN,
    Column(name="half_area", unit="share of the image", meaning="least area that holds half of the map; 0.5: even"),
    Column(name="peak_down", unit="pixels", meaning="from the upper border to the centre of the largest cell"),
    Column(name="peak_right", unit="pixels", meaning="the same from the left"))


def _title(run: Run, found: Map) -> str:
    of = f"layer {found.layer}, head {found.head}" if found.kind == "head" else found.kind
    return f"{run.label}, {of}"


def _cells(title: str, chosen: list[int], of_BRC: Floats) -> list[dict[str, Any]]:
    """One a token or pixel: x and y of its corners as shares of the image, and its value as a share of the largest."""
    cells = []
    for number, of_RC in zip(chosen, of_BRC, strict=True):
        rows, columns = of_RC.shape
        cells += [{"map": title, "image": number, "x": column / columns, "x2": (column + 1) / columns, "y": row / rows,
                   "y2": (row + 1) / rows, "value": round(float(value) / (float(of_RC.max()) or 1), 3)}
                  for (row, column), value in np.ndenumerate(of_RC)]
    return cells


def _figure(cells: list[dict[str, Any]]) -> Any:
    """A row a map, a column an image; each map from 0 to its largest value."""
    titles, images = (list(dict.fromkeys(cell[key] for cell in cells)) for key in ("map", "image"))
    corner = {name: alt.X2(name) if name == "x2" else alt.Y2(name) for name in ("x2", "y2")}
    place = {"x": alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1])),
             "y": alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[1, 0])), **corner}
    both = [alt.Chart().transform_filter(chosen).mark_rect().encode(
        color=alt.Color("value:Q", legend=None, scale=alt.Scale(domain=[0, 1], **hues)), **place)
        for chosen, hues in ((alt.datum.map == "image", {"range": ["black", "white"]}),
                             (alt.datum.map != "image", {"scheme": "viridis"}))]
    return alt.layer(*both, data=alt.NamedData(name="cells")).resolve_scale(color="independent").properties(
        width=THUMBNAIL, height=THUMBNAIL).facet(
        row=alt.Row("map:N", sort=titles, header=alt.Header(labelAngle=0, labelAlign="left", labelLimit=260)),
        column=alt.Column("image:N", sort=images, header=alt.Header(labelExpr="'image ' + datum.value")),
        spacing=4).properties(datasets={"cells": cells})


def _summary(rows: list[dict[str, Any]], runs: int) -> str:
    parts = []
    for label in dict.fromkeys(row["label"] for row in rows):
        own = [row for row in rows if row["label"] == label and row["half_area"] is not None]
        means = [f"{kind} {np.mean(areas):.2f}" for kind in dict.fromkeys(row["map"] for row in own)
                 if (areas := [row["half_area"] for row in own if row["map"] == kind])]
        parts.append(f"{label} {', '.join(means)}")
    shown, images = (len({row[what] for row in rows}) for what in ("run", "image"))
    return (f"Share of the image that holds half of a map, mean over {images} images (0.5: even): "
            f"{'; '.join(parts)}. Shown: {shown} of {runs} runs, of each model the first on the most images; --only "
            "chooses others.")
