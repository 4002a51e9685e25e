"""Whether attention can compute a convolution, how sharp its positions must be, and how close trained heads come."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import altair as alt
import numpy as np
from pydantic import Field

from vitbench.probes import (
    HEAD_COLUMN,
    LAYER_COLUMN,
    PROBES,
    ROWS,
    RUN,
    WIDTH,
    Column,
    Look,
    Measured,
    ProbeMeta,
    filled,
    named,
)
from vitbench.probes._attention import fixed_offset, mean_weights
from vitbench.probes._chance import seeded
from vitbench.probes._figure import by_kind
from vitbench.report.palette import HUES
from vitbench.spec import Frozen

if TYPE_CHECKING:
    from torch import Tensor, nn

BUILT, SHARPNESS, HEADS = "built from a convolution", "sharpness of positions", "trained heads"
KERNELS = (1, 3, 5)
CHANNELS, SIDES = (1, 8), (5, 12)  # least and most
SWEEP = (1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60)
FIXED = 0.9


class Options(Frozen):
    """Of the mechanism: convolutions drawn. Of runs: test images."""

    convolutions: Annotated[int, Field(ge=3, le=10_000)] = 100
    images: Annotated[int, Field(ge=1, le=10_000)] = 64


@PROBES.add("attention_as_convolution", ProbeMeta(
    statement="A convolution is attention whose heads look at fixed offsets: multi-head attention can compute any.",
    source="Cordonnier et al. 2020, theorem 1 and section 3", looks_at=("mechanism", "runs"), options=Options,
    families=("attention",)))
def attention_as_convolution(look: Look) -> Measured:
    """Largest difference between convolutions and the layers built from them; offsets of a study's trained heads."""
    rows = filled(COLUMNS, (*_built(look), *_sweep(look), *_heads(look)))
    return Measured(COLUMNS, rows, _figure(rows), _summary(rows))


def _drawn(rng: np.random.Generator, kernel: int) -> "tuple[nn.Conv2d, Tensor]":
    """A random convolution and random images for it, in float64."""
    import torch

    C, D, height, width = (int(rng.integers(low, high + 1)) for low, high in (CHANNELS, CHANNELS, SIDES, SIDES))
    with seeded(rng.integers(2**63)):
        convolution = torch.nn.Conv2d(C, D, kernel, padding=kernel // 2, bias=bool(rng.integers(2)))
        return convolution.double().requires_grad_(False), torch.randn(4, C, height, width, dtype=torch.float64)


def differences(convolution: "nn.Conv2d", images: "Tensor", sharpness: float) -> tuple[float, float]:
    """Largest absolute difference between the convolution and the attention built from it: anywhere, and on the
    outermost ring of places."""
    from vitbench.nn.attention_as_convolution import AttentionAsConvolution

    apart = (convolution(images) - AttentionAsConvolution(convolution, sharpness)(images)).abs().amax(dim=(0, 1))
    return float(apart.max()), max(float(edge.max()) for edge in (apart[0], apart[-1], apart[:, 0], apart[:, -1]))


def _built(look: Look) -> Iterator[dict[str, Any]]:
    from vitbench.nn import attention_as_convolution as built

    sharpness = built.SHARPNESS
    found = {kernel: [differences(*_drawn(look.rng, kernel), sharpness) for _ in range(number)]
             for kernel, number in zip(KERNELS, _shared(look.options.convolutions, len(KERNELS)), strict=True)}
    for kernel, pairs in found.items():
        whole, border = (max(values) for values in zip(*pairs, strict=True))
        yield {"part": BUILT, "kernel": kernel, "heads": kernel**2, "sharpness": sharpness, "convolutions": len(pairs),
               "difference": whole, "border_difference": border}


def _shared(count: int, among: int) -> list[int]:
    """100 among 3: 34, 33, 33."""
    return [count // among + (i < count % among) for i in range(among)]


def _sweep(look: Look) -> Iterator[dict[str, Any]]:
    """One convolution a kernel under every sharpness."""
    for kernel in KERNELS[1:]:  # a kernel of one place has one head: it looks at its own place, sharper than all others
        convolution, images = _drawn(look.rng, kernel)
        for sharpness in SWEEP:
            whole, border = differences(convolution, images, sharpness)
            yield {"part": SHARPNESS, "kernel": kernel, "heads": kernel**2, "sharpness": float(sharpness),
                   "convolutions": 1, "difference": whole, "border_difference": border}


def _heads(look: Look) -> Iterator[dict[str, Any]]:
    for run in look.runs:
        for layer, weight_HNN in enumerate(mean_weights(look.trained(run), look.options.images)):
            for head, weight_NN in enumerate(weight_HNN):
                mass, offset = fixed_offset(weight_NN)
                yield {"part": HEADS, "layer": layer, "head": head, "offset_down": offset[0], "offset_right": offset[1],
                       "mass": mass, "even_mass": 1 / len(weight_NN), **named(run)}


COLUMNS = (
    Column(name="part", unit="", meaning="layers built from random convolutions; one of each kernel under rising "
                                         "sharpness; heads of trained runs"),
    Column(name="kernel", unit="places a side", meaning="of the convolution"),
    Column(name="heads", unit="", meaning="of the layer, one a place of the kernel"),
    Column(name="sharpness", unit="", meaning="alpha: a score falls by it for a squared distance of 1 from the head's "
                                              "offset"),
    Column(name="convolutions", unit="", meaning="drawn, with 1 to 8 channels, with and without bias, each on 4 images "
                                                 "of 5 to 12 pixels a side"),
    Column(name="difference", unit="", meaning="largest absolute one of all outputs, in float64"),
    Column(name="border_difference", unit="", meaning="the same on the outermost ring of places"),
    LAYER_COLUMN,
    HEAD_COLUMN,
    Column(name="offset_down", unit="tokens", meaning="of the offset with the largest mass"),
    Column(name="offset_right", unit="tokens", meaning="of the same"),
    Column(name="mass", unit="", meaning="share of the head's attention on this one offset, mean over test images and "
                                         "the places from which it stays inside"),
    Column(name="even_mass", unit="", meaning="what attention without a preference gives an offset"), *RUN)


def _figure(rows: list[dict[str, Any]]) -> Any:
    kinds = [f"{kernel} x {kernel}" for kernel in KERNELS[1:]]
    sharp = alt.Chart(ROWS).transform_filter(alt.datum.part == SHARPNESS).transform_calculate(
        kind="datum.kernel + ' x ' + datum.kernel").mark_line(point=alt.OverlayMarkDef(filled=True, size=36)).encode(
        x=alt.X("sharpness:Q", axis=alt.Axis(title="sharpness of positions")),
        y=alt.Y("difference:Q", scale=alt.Scale(type="log"),
                axis=alt.Axis(title="largest difference (log scale)", format="~e", tickCount=5)),
        **by_kind("kind", kinds)).properties(width=WIDTH, height=240)
    if not any(row["part"] == HEADS for row in rows):
        return sharp
    mark = alt.Chart(ROWS).transform_filter(alt.datum.part == HEADS).transform_calculate(
        place="datum.label + ', ' + datum.share").mark_tick(thickness=2, color=HUES["attention"][0])
    heads = mark.encode(
        x=alt.X("mass:Q", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(title="share of a head's attention on one fixed offset")),
        y=alt.Y("place:N", title=None), row=alt.Row("layer:O", header=alt.Header(labelExpr="'layer ' + datum.value"))
        ).properties(width=WIDTH)
    return alt.vconcat(sharp, heads)


def _summary(rows: list[dict[str, Any]]) -> str:
    built = [row for row in rows if row["part"] == BUILT]
    enough = {row["kernel"]: row["sharpness"] for row in reversed(rows)
              if row["part"] == SHARPNESS and row["difference"] < 1e-10}
    told = " and ".join(f"{sharpness:g} ({kernel} x {kernel})" for kernel, sharpness in sorted(enough.items()))
    text = (f"Over {sum(row['convolutions'] for row in built)} random convolutions the largest difference is "
            f"{max(row['difference'] for row in built):.2g}, on borders "
            f"{max(row['border_difference'] for row in built):.2g}. The least sharpness tried that stays below 1e-10: "
            f"{told}.")
    masses = [row["mass"] for row in rows if row["part"] == HEADS]
    if masses:
        fixed = sum(mass >= FIXED for mass in masses)
        text += (f" Of {len(masses)} trained heads {fixed} have at least {FIXED:g} of their attention on one offset; "
                 f"the largest is {max(masses):.2f}, the median {float(np.median(masses)):.2f}.")
    return text
