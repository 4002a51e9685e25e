"""How local each layer is: the share of its attention within a radius, which tells whether it has a receptive field."""

from collections.abc import Iterator
from typing import Annotated, Any

import altair as alt
import numpy as np
from pydantic import Field

from vitbench.grid import Run
from vitbench.models import default_patch_size
from vitbench.probes import LAYER_COLUMN, PROBES, ROWS, RUN, Column, Look, Measured, ProbeMeta, filled, named
from vitbench.probes._figure import by_kind
from vitbench.probes._sight import Gradient, can_be_seen, sight
from vitbench.probes._spread import Spread
from vitbench.spec import Frozen, ImageSpec

LAYER, FIELD = "layer", "receptive field"
UNTRAINED, TRAINED, EVEN = KINDS = ("untrained", "trained", "even")


class Options(Frozen):
    """Test images; radii in tokens; from when on a change counts."""

    images: Annotated[int, Field(ge=1, le=1000)] = 128
    radii: Annotated[list[Annotated[int, Field(ge=0, le=1024)]], Field(
        min_length=1, max_length=64, default_factory=lambda: [0, 1, 2, 3])]
    margin: Annotated[float, Field(ge=0, le=1, description="of a share: what a learned receptive field gains")] = 0.05


@PROBES.add("locality", ProbeMeta(
    statement="A convolution's receptive field is built in; attention can learn one, and look near where that helps.",
    source="Cordonnier et al. 2020, sections 1 and 4; Dosovitskiy et al. 2021, section 4.5", looks_at=("runs",),
    options=Options, families=("attention", "convolution", "hybrid")))
def locality(look: Look) -> Measured:
    """Share of attention in squares around the query, untrained and trained, against what even attention gives."""
    runs, left_out = can_be_seen(look)
    rows = filled(COLUMNS, (row for run in runs for row in _of_run(look, run)))
    return Measured(COLUMNS, rows, _figure(rows), summary(rows, look.options) + left_out)


def _of_run(look: Look, run: Run) -> Iterator[dict[str, Any]]:
    before: dict[tuple[Any, Any], float | None] = {}
    for when, trained in ((UNTRAINED, look.untrained(run)), (TRAINED, look.trained(run))):
        seen, radii = sight(trained, look.options.images), sorted(set(look.options.radii))
        for facts in of_gradient(seen, radii) if isinstance(seen, Gradient) else of_layers(seen or [], radii):
            first = before.setdefault((facts.get("layer"), facts["radius"]), facts["share_within"])
            gained = None if None in (facts["share_within"], first) else round(facts["share_within"] - first, 9)
            yield {**facts, **named(run), "train_images": trained.record.data.train_images, "when": when,
                   "gained": gained}


def of_layers(spreads: list[Spread], radii: list[int]) -> Iterator[dict[str, Any]]:
    """A row for each layer and radius."""
    for layer, spread in enumerate(spreads):
        for radius in radii:
            within_NN = spread.within(radius)
            known = [share for share in spread.mean_H(within_NN) if share is not None]
            yield {"kind": LAYER, "layer": layer, "radius": radius, "radius_pixels": (radius + 0.5) * spread.side,
                   "share_within": float(np.mean(known)) if known else None,
                   "least_head": min(known, default=None), "most_head": max(known, default=None),
                   "even": float((spread.even_NN * within_NN).sum())}


def of_gradient(gradient: Gradient, radii: list[int]) -> Iterator[dict[str, Any]]:
    """A row for each radius, of tokens as large as a transformer's on these images are by default."""
    token = default_patch_size(ImageSpec(gradient.share_HW.shape[1], 1))
    for radius in radii:
        within_HW = gradient.within((radius + 0.5) * token)
        yield {"kind": FIELD, "radius": radius, "radius_pixels": (radius + 0.5) * token,
               "share_within": gradient.mean(within_HW), "even": float(within_HW.mean())}


COLUMNS = (
    *RUN,
    Column(name="train_images", unit="", meaning="n"),
    Column(name="when", unit="", meaning="untrained or trained"),
    Column(name="kind", unit="", meaning="a layer of attention; of a convolutional network its receptive field"),
    LAYER_COLUMN,
    Column(name="radius", unit="tokens", meaning="r, of a square of 2r + 1 tokens a side around the query, cut off at "
                                                 "the image's border; 0: itself alone"),
    Column(name="radius_pixels", unit="pixels", meaning="half the side of the square; of a convolutional network with "
                                                        "tokens as token_transformer has them by default"),
    Column(name="share_within", unit="", meaning=(
        "of the layer's attention, mean over heads, queries and test images; weights are taken absolute and divided by "
        "their sum in each row (softmax: as they are), a class token is left out. Of a receptive field: of the "
        "absolute gradient of the last feature map's middle place, around its middle")),
    Column(name="least_head", unit="", meaning="the same, of the head with the least"),
    Column(name="most_head", unit="", meaning="of the head with the most"),
    Column(name="even", unit="", meaning="what weights give that are alike for all tokens that a token may see, or a "
                                         "gradient that is alike on all pixels"),
    Column(name="gained", unit="", meaning="share within, less that of the untrained model"))


def _figure(rows: list[dict[str, Any]]) -> Any:
    """A row a model, a panel a layer; the runs on the most images."""
    panels = []
    for label in dict.fromkeys(row["label"] for row in rows):
        own = [row for row in rows if row["label"] == label]
        most = max(row["train_images"] for row in own)
        base = alt.Chart(ROWS).transform_filter((alt.datum.label == label) & (alt.datum.train_images == most))
        panels.append(alt.concat(*(
            _panel(base.transform_filter(alt.datum.layer == layer)).properties(width=190, height=170, title=alt.Title(
                [label, f"{FIELD if layer is None else f'layer {layer}'}, {most:,} images"], fontWeight="normal"))
            for layer in dict.fromkeys(row["layer"] for row in own)), columns=4))
    return alt.vconcat(*panels)


def _panel(base: Any) -> Any:
    x = alt.X("radius_pixels:Q", axis=alt.Axis(title="half side of the square, pixels", tickCount=5))
    y: dict[str, Any] = {"scale": alt.Scale(domain=[0, 1]), "axis": alt.Axis(title="share within", tickCount=5)}
    point = alt.OverlayMarkDef(filled=True, size=36)
    even = base.transform_calculate(series=repr(EVEN)).mark_line(point=point).encode(y=alt.Y("mean(even):Q", **y))
    found = base.transform_calculate(series="datum.when").mark_line(point=point).encode(
        y=alt.Y("mean(share_within):Q", **y))
    return alt.layer(even, found).encode(x=x, **by_kind("series", KINDS))


def summary(rows: list[dict[str, Any]], options: Options) -> str:
    """The smallest square with neighbours, on the most images of each model; then how many layers came to be local."""
    radius = min((radius for radius in options.radii if radius), default=0)
    parts = []
    for label in dict.fromkeys(row["label"] for row in rows):
        own = [row for row in rows if row["label"] == label and row["radius"] == radius]
        most = [row for row in own if row["train_images"] == max(row["train_images"] for row in own)]
        for layer in dict.fromkeys(row["layer"] for row in own):
            shares = (_mean(most, layer, "share_within", when) for when in (UNTRAINED, TRAINED))
            what = FIELD if layer is None else f"layer {layer}"
            parts.append(f"{label}, {what} {' to '.join(shares)} (even {_mean(most, layer, 'even', TRAINED)})")
    trained = [row for row in rows if row["kind"] == LAYER and row["radius"] == radius and row["when"] == TRAINED
               and row["gained"] is not None]
    local = sum(row["gained"] >= options.margin and row["share_within"] - row["even"] >= options.margin
                for row in trained)
    text = (f"Share within {radius} token{'s' if radius != 1 else ''}, untrained to trained, on each model's most "
            f"images, mean over runs: {'; '.join(parts)}.")
    return text if not trained else (
        f"{text} Of {len(trained)} trained layers of attention {local} have learned a receptive field: they gained "
        f"{options.margin:g} or more, and are by as much more local than even attention.")


def _mean(rows: list[dict[str, Any]], layer: int | None, what: str, when: str) -> str:
    found = [row[what] for row in rows if row["layer"] == layer and row["when"] == when and row[what] is not None]
    return f"{np.mean(found):.2f}" if found else "—"
