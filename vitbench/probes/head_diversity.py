"""Whether the heads of a layer look at different things, and what the model loses without each."""

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any

import altair as alt
import numpy as np
import numpy.typing as npt
from pydantic import Field

from vitbench.grid import Run
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
    ProbeError,
    ProbeMeta,
    filled,
    named,
)
from vitbench.probes._logits import logits, right
from vitbench.report.palette import HUES
from vitbench.spec import Frozen

if TYPE_CHECKING:
    from torch import Tensor, nn

TOGETHER = 8  # images whose weights are in memory at once
Table = npt.NDArray[np.float64]


class Options(Frozen):
    """Test images whose attention is compared, and those that accuracies are of."""

    images: Annotated[int, Field(ge=1, le=10_000)] = 64
    accuracy_images: Annotated[int, Field(ge=1, le=100_000)] = 1000


@PROBES.add("head_diversity", ProbeMeta(
    statement="Several heads see several relations: each looks at something else, and is needed.",
    source="Vaswani et al. 2017, section 3.2.2; Michel et al. 2019, section 3 (one head removed)", looks_at=("runs",),
    options=Options))
def head_diversity(look: Look) -> Measured:
    """Every head of every layer of a study's runs: how like the others it looks, untrained and trained, and the test
    accuracy without it."""
    rows = filled(COLUMNS, ({**row, **named(run)} for run in look.runs for row in _of_run(look, run)))
    if not rows:
        raise ProbeError("none of these runs has a layer of vitbench.nn.attention.SelfAttention; models of "
                         "token_transformer and hybrid have")
    return Measured(COLUMNS, rows, _figure(rows), _summary(rows))


def similarity(weights_BHMM: "Tensor") -> "Tensor":
    """H x H: the cosine of two heads' rows of weights, of the same image and query, mean over images and queries. A row
    of zeros is like no other."""
    import torch.nn.functional as F  # noqa: N812 - torch's own name for it

    unit_BHMM = F.normalize(weights_BHMM, dim=-1)
    return (unit_BHMM[:, :, None] * unit_BHMM[:, None]).sum(-1).mean(dim=(0, 3))


def correlation(weights_BHMM: "Tensor") -> "Tensor":
    """The same of rows less their mean: what all rows share, a little of everything, makes no two alike."""
    return similarity(weights_BHMM - weights_BHMM.mean(dim=-1, keepdim=True))


def to_others(like_HH: Table) -> list[float | None]:
    """Of each head the mean to the others of its layer; None where there is no other."""
    H = len(like_HH)
    return [float(np.delete(row, head).mean()) if H > 1 else None for head, row in enumerate(like_HH)]


def alike(model: "nn.Module", images: "Tensor") -> list[Table]:
    """Similarity and correlation of the heads of each layer, 2 x H x H, over all images."""
    from vitbench.nn.looking import looks

    found = [[len(part) * np.stack([of(weights_BHMM.double()).cpu().numpy() for of in (similarity, correlation)])
              for weights_BHMM in looks(model, part)] for part in images.split(TOGETHER)]
    return [reduce(np.add, of_layer) / len(images) for of_layer in zip(*found, strict=True)]


def _of_run(look: Look, run: Run) -> Iterator[dict[str, Any]]:
    from vitbench.nn.looking import attention_layers, without_head

    trained = look.trained(run)
    layers = attention_layers(trained.module.model)
    if not layers:
        return
    few, _ = trained.images("test", look.options.images)
    images, labels_B = trained.images("test", look.options.accuracy_images)
    accuracy = right(logits(trained.module, images), labels_B)
    before = [to_others(like_HH) for like_HH, _ in alike(look.untrained(run).module.model, few)]
    after = [[to_others(like_HH) for like_HH in both] for both in alike(trained.module.model, few)]
    for number, layer in enumerate(layers.values()):
        for head in range(layer.num_heads):
            with without_head(layer, head):
                without = right(logits(trained.module, images), labels_B)
            yield {"layer": number, "head": head, "heads": layer.num_heads,
                   "untrained_similarity": before[number][head], "similarity": after[number][0][head],
                   "correlation": after[number][1][head], "accuracy": accuracy, "accuracy_without": without,
                   "lost": accuracy - without}


COLUMNS = (
    LAYER_COLUMN,
    HEAD_COLUMN,
    Column(name="heads", unit="", meaning="of the layer; with one there is no similarity"),
    Column(name="untrained_similarity", unit="", meaning="the next, before the first step"),
    Column(name="similarity", unit="", meaning="to the layer's other heads, mean: the cosine of two heads' rows of "
                                               "weights, mean over queries and test images; 1: they look alike. The "
                                               "mean over a layer's heads is that over its pairs"),
    Column(name="correlation", unit="", meaning="the same of rows less their mean: 0 for heads that share nothing but "
                                                "a little attention to everything"),
    Column(name="accuracy", unit="", meaning="on test images, with all heads"),
    Column(name="accuracy_without", unit="", meaning="with what this head has mixed set to 0, nothing trained again"),
    Column(name="lost", unit="", meaning="accuracy minus accuracy_without"), *RUN)


def _figure(rows: list[dict[str, Any]]) -> Any:
    base = alt.Chart(ROWS).transform_calculate(place="datum.label + ', ' + datum.share").mark_tick(
        thickness=2, color=HUES["attention"][0])
    row = alt.Row("layer:O", header=alt.Header(labelExpr="'layer ' + datum.value"))
    panels = [base.transform_filter(f"isValid(datum.{what})").encode(
        x=alt.X(f"{what}:Q", axis=alt.Axis(title=title, tickCount=5)), y=alt.Y("place:N", title=None, sort=None),
        row=row).properties(width=WIDTH, height={"step": 18}) for what, title in (
            ("similarity", "similarity of a head to the others of its layer"),
            ("lost", "test accuracy lost without the head")) if any(each[what] is not None for each in rows)]
    return alt.vconcat(*panels)


def _summary(rows: list[dict[str, Any]]) -> str:
    text = []
    for label, share in dict.fromkeys((row["label"], row["share"]) for row in rows):
        found = [row for row in rows if (row["label"], row["share"]) == (label, share)]
        lost = [100 * row["lost"] for row in found]
        part = (f"{label}, share {share}: without one head accuracy falls by {min(lost):.1f} to {max(lost):.1f} "
                f"points, mean {float(np.mean(lost)):.1f}")
        means = [float(np.mean([row[what] for row in found])) for what in ("untrained_similarity", "similarity",
                                                                          "correlation") if found[0]["heads"] > 1]
        if means:
            part += f"; similarity {means[1]:.2f} ({means[0]:.2f} untrained), correlation {means[2]:.2f}"
        text.append(f"{part}.")
    return " ".join(text)
