"""What a fully connected layer on a window costs as the window grows, beside attention, which sees the whole image."""

from collections.abc import Iterator
from math import log
from typing import TYPE_CHECKING, Annotated, Any

import altair as alt
from pydantic import Field

from vitbench.probes import PROBES, ROWS, WIDTH, Column, Look, Measured, ProbeMeta, filled
from vitbench.probes._figure import by_kind
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn

LAYER, MODEL = "layer", "model"
WINDOW_FC, ATTENTION = KINDS = ("fully connected on a window", "attention")
MATCHED = 3  # the window at which the two models are of one size


class Options(Frozen):
    """Numbers of a token's vector in both layers, and pixels a side of the image, cut into patches as by default."""

    width: Annotated[int, Field(ge=1, le=4096)] = 64
    image: Annotated[int, Field(ge=8, le=128, multiple_of=4, description="pixels a side")] = 28


@PROBES.add("window_parameters", ProbeMeta(
    statement="To see further a fully connected layer needs ever more parameters; attention sees the whole image with "
              "the same.",
    source="lecture notes on self-attention that this project starts from; Cordonnier et al. 2020, section 2",
    looks_at=("mechanism",), options=Options))
def window_parameters(look: Look) -> Measured:
    """Parameters of one layer at windows of 1, 3, 5, ... up to the whole image, and of whole models of each size."""
    rows = filled(COLUMNS, (*_layers(look.options), *_models(look.options)))
    return Measured(COLUMNS, rows, _figure([row["window"] for row in rows if row["part"] == LAYER]), _summary(rows))


def _layers(options: Options) -> Iterator[dict[str, Any]]:
    """Both layers at every window. LayerNorm, which both have, and positions are not counted."""
    import torch

    from vitbench.models._patches import whole_image
    from vitbench.nn.attention import SelfAttention
    from vitbench.nn.grid import Grid
    from vitbench.nn.span import Span
    from vitbench.nn.window_fc import Block

    tokens, before = _tokens(options), None
    for window in range(1, whole_image(tokens) + 1, 2):
        with torch.device("meta"):
            span = Span(Grid(tokens, tokens), "window", window, class_token=False)
            connected = _count(Block(options.width, window).layer)
            attention = _count(SelfAttention(options.width, 1, span=span))
        slope = log(connected / before[1]) / log(window / before[0]) if before else None
        yield {"part": LAYER, "width": options.width, "tokens": tokens, "window": window, "parameters": connected,
               "attention": attention, "ratio": connected / attention, "slope": slope}
        before = window, connected


def _models(options: Options) -> Iterator[dict[str, Any]]:
    """window_fc and token_transformer of each size: where they match, and where window_fc sees the whole image."""
    from vitbench.models import MODELS, checked_cost
    from vitbench.models._patches import whole_image

    tokens, image = _tokens(options), ImageSpec(options.image, 1)
    for size, own in MODELS.get("window_fc").meta.sizes.items():
        attention = checked_cost("token_transformer", size, {}, image, 10).params
        for window in (MATCHED, whole_image(tokens)):
            connected = checked_cost("window_fc", size, {"window": window}, image, 10).params
            yield {"part": MODEL, "size": size, "width": own["embed_dim"], "tokens": tokens, "window": window,
                   "parameters": connected, "attention": attention, "ratio": connected / attention}


def _tokens(options: Options) -> int:
    from vitbench.models import default_patch_size

    return options.image // default_patch_size(ImageSpec(options.image, 1))


def _count(module: "nn.Module") -> int:
    return sum(parameter.numel() for parameter in module.parameters())


COLUMNS = (
    Column(name="part", unit="", meaning="one layer of the same width as attention's; or the models window_fc and "
                                         "token_transformer of one size"),
    Column(name="size", unit="", meaning="of both models"),
    Column(name="width", unit="", meaning="numbers of a token's vector, of window_fc"),
    Column(name="tokens", unit="a side", meaning="of the image, G"),
    Column(name="window", unit="tokens a side", meaning="w, that the fully connected layer sees; at 2 G - 1 every "
                                                        "place sees the whole image"),
    Column(name="parameters", unit="", meaning="of the fully connected layer, width (w^2 width + 1), or of window_fc"),
    Column(name="attention", unit="", meaning="parameters of the attention layer limited to that window (at 2 G - 1: "
                                              "not limited), or of token_transformer, which sees the whole image"),
    Column(name="ratio", unit="", meaning="parameters over those of attention"),
    Column(name="slope", unit="", meaning="of log parameters on log w, from the window before"))


def _figure(windows: list[int]) -> Any:
    base = alt.Chart(ROWS).transform_filter(alt.datum.part == LAYER).encode(
        x=alt.X("window:Q", axis=alt.Axis(title="window, tokens a side", values=windows)))
    lines = [base.transform_calculate(kind=repr(kind)).mark_line(point=alt.OverlayMarkDef(filled=True, size=40)).encode(
        y=alt.Y(f"{what}:Q", scale=alt.Scale(type="log"), axis=alt.Axis(
            title="parameters of one layer (log scale)", format="~s", tickCount=5)), **by_kind("kind", KINDS))
        for kind, what in zip(KINDS, ("parameters", "attention"), strict=True)]
    return alt.layer(*lines).properties(width=WIDTH, height=240)


def _summary(rows: list[dict[str, Any]]) -> str:
    layers = [row for row in rows if row["part"] == LAYER]
    first, last = layers[0], layers[-1]
    slopes = [row["slope"] for row in layers[1:]]
    whole = [row["ratio"] for row in rows if row["part"] == MODEL and row["window"] == last["window"]]
    matched = [row["ratio"] for row in rows if row["part"] == MODEL and row["window"] == MATCHED]
    return (f"Of width {first['width']}, a layer on windows of {first['window']} to {last['window']} tokens a side has "
            f"{first['parameters']:,} to {last['parameters']:,} parameters, growing as w to the power "
            f"{min(slopes):.2f} to {max(slopes):.2f}; attention has {first['attention']:,} at every window. The whole "
            f"image takes {last['ratio']:.3g} times attention's parameters in a layer of the same width, and "
            f"{min(whole):.3g} to {max(whole):.3g} times in models of one size, which at a window of {MATCHED} have "
            f"{min(matched):.2f} to {max(matched):.2f} times.")
