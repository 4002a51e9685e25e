"""What dividing by the root of d_k does: to query-key products, to softmax, and to the gradient that passes it."""

from collections.abc import Iterator
from math import log
from typing import TYPE_CHECKING, Annotated, Any

import altair as alt
from pydantic import Field

from vitbench.grid import Run
from vitbench.probes import (
    LAYER_COLUMN,
    PROBES,
    ROWS,
    RUN,
    Column,
    Look,
    Measured,
    ProbeError,
    ProbeMeta,
    filled,
    named,
)
from vitbench.probes._attention import layers
from vitbench.probes._chance import seeded
from vitbench.probes._figure import by_kind
from vitbench.report.palette import INK
from vitbench.spec import Frozen

if TYPE_CHECKING:
    from torch import Tensor

UNIT, DEFAULT, XAVIER, UNTRAINED, TRAINED = KINDS = (
    "unit queries and keys", "Linear as torch starts it", "Linear by Xavier", "model, untrained", "model, trained")
WIDTHS = (4, 8, 16, 32, 64, 128, 256)  # d_k
SCALES = {"dot": 0.0, "scaled_dot": -0.5}  # power of d_k
PANELS = {"variance": "variance of scores", "entropy": "entropy, share of ln(tokens)",
          "largest_weight": "largest weight", "gradient": "gradient through softmax"}


class Options(Frozen):
    """Of the mechanism: tokens of a sequence, and sequences, each with fresh projections. Of runs: test images."""

    tokens: Annotated[int, Field(ge=2, le=4096)] = 64
    sequences: Annotated[int, Field(ge=1, le=4096)] = 64
    images: Annotated[int, Field(ge=1, le=10_000)] = 64


def of_weights(weight: "Tensor") -> dict[str, float]:
    """Of softmax weights ... x N: mean entropy as a share of ln N, mean largest weight, and mean and median size of the
    gradient that passes softmax: the Frobenius norm of its Jacobian diag(p) - p p', which is the root mean square of
    what is left of a gradient with independent unit entries."""
    p = weight.double()
    entropy = -(p * p.clamp_min(1e-300).log()).sum(-1)
    squares = p.square().sum(-1)
    jacobian = (squares - 2 * p.pow(3).sum(-1) + squares.square()).clamp_min(0).sqrt()
    return {"entropy": float(entropy.mean()) / log(p.shape[-1]), "largest_weight": float(p.amax(-1).mean()),
            "gradient": float(jacobian.mean()), "gradient_median": float(jacobian.median())}


@PROBES.add("score_variance", ProbeMeta(
    statement="Dividing query-key products by the root of d_k keeps their variance at 1, so that softmax stays soft.",
    source="Vaswani et al. 2017, section 3.2.1 and footnote 4", looks_at=("mechanism", "runs"), options=Options,
    families=("attention",)))
def score_variance(look: Look) -> Measured:
    """The mechanism at every d_k, and beside it the layers of a study's runs, before and after training."""
    rows = filled(COLUMNS, (*_mechanism(look), *_runs(look)))
    return Measured(COLUMNS, rows, _figure([kind for kind in KINDS if any(row["kind"] == kind for row in rows)]),
                    _summary(rows) + _left_out(look))


def _mechanism(look: Look) -> Iterator[dict[str, Any]]:
    for width in WIDTHS:
        for kind in (UNIT, DEFAULT, XAVIER):
            with seeded(look.rng.integers(2**63)):
                product_BNN = _products(kind, width, look.options)
            for score, power in SCALES.items():
                scores_BNN = product_BNN * width**power
                theory = width * width**(2 * power) if kind == UNIT else None
                yield {"kind": kind, "score": score, "d_k": width, "tokens": look.options.tokens,
                       "variance": float(scores_BNN.var()), "theory": theory,
                       **of_weights(scores_BNN.softmax(-1))}


def _products(kind: str, width: int, options: Options) -> "Tensor":
    """Sequences B x N x N, of tokens with independent unit entries."""
    import torch
    from torch import nn

    product_BNN: Tensor
    query_BNK, key_BNK = torch.randn(2, options.sequences, options.tokens, width, dtype=torch.float64)
    if kind != UNIT:
        both = []
        for token_NK in query_BNK:
            linear = nn.Linear(width, 3 * width, dtype=torch.float64)  # with the values, as models have it
            if kind == XAVIER:
                nn.init.xavier_uniform_(linear.weight)
                nn.init.zeros_(linear.bias)
            both.append(linear(token_NK).detach().chunk(3, dim=1)[:2])
        query_BNK, key_BNK = (torch.stack(part) for part in zip(*both, strict=True))
    product_BNN = query_BNK @ key_BNK.mT
    return product_BNN


def _runs(look: Look) -> Iterator[dict[str, Any]]:
    for run in look.runs:
        if not _is_product(run):
            continue
        for kind, of in ((UNTRAINED, look.untrained(run)), (TRAINED, look.trained(run))):
            images, _ = of.images("test", look.options.images)
            for number, (layer, given) in enumerate(layers(of.module.model, images)):
                query, key = (part.detach() for part in layer.project(*given)[:2])
                score, width = str(run.spec.options.get("score", "scaled_dot")), query.shape[-1]
                variance = float((query @ key.mT).double().var()) * width**(2 * SCALES[score])
                yield {"kind": kind, "score": score, "d_k": width, "tokens": query.shape[-2], "variance": variance,
                       **of_weights(layer.weights(*given).detach()), "layer": number, **named(run)}
    if look.runs and not any(map(_is_product, look.runs)):
        raise ProbeError("none of these runs puts softmax over query-key products (normaliser: softmax, score: dot or "
                         "scaled_dot)")


def _is_product(run: Run) -> bool:
    options = run.spec.options
    return options.get("normaliser", "softmax") == "softmax" and options.get("score", "scaled_dot") in SCALES


def _left_out(look: Look) -> str:
    labels = dict.fromkeys(run.label for run in look.runs if not _is_product(run))
    return f" Left out, for they put no softmax over products: {', '.join(labels)}." if labels else ""


COLUMNS = (
    Column(name="kind", unit="", meaning="where queries and keys come from"),
    Column(name="score", unit="", meaning="dot: the product itself; scaled_dot: divided by the root of d_k"),
    Column(name="d_k", unit="", meaning="numbers of a query of one head"),
    Column(name="tokens", unit="", meaning="of a sequence; entropy, largest weight and gradient depend on it"),
    Column(name="variance", unit="", meaning="of the scores over all pairs of tokens"),
    Column(name="theory", unit="", meaning="variance for independent unit queries and keys: d_k, and 1 when scaled"),
    Column(name="entropy", unit="share of ln(tokens)", meaning="of a row of weights, mean: 1 where all are alike"),
    Column(name="largest_weight", unit="", meaning="of a row, mean"),
    Column(name="gradient", unit="", meaning="Frobenius norm of softmax's Jacobian, mean over rows: what is left of a "
                                             "gradient with independent unit entries"),
    Column(name="gradient_median", unit="", meaning="the same, median over rows"),
    LAYER_COLUMN, *RUN)


def _figure(kinds: list[str]) -> Any:
    panels = []
    for number, (what, title) in enumerate(PANELS.items()):
        axis = alt.Axis(title=title, tickCount=4)
        scale = alt.Scale(type="log" if what == "variance" else "linear")
        x = alt.X("d_k:Q", scale=alt.Scale(type="log", base=2), axis=alt.Axis(
            title="d_k (log scale)" if number == len(PANELS) - 1 else None, values=list(WIDTHS)))
        base = alt.Chart().encode(x=x)
        layered = [base.mark_line(point=alt.OverlayMarkDef(filled=True, size=36)).encode(
            y=alt.Y(f"mean({what}):Q", axis=axis, scale=scale), **by_kind("kind", kinds))]
        if what == "variance":
            layered.append(base.mark_line(strokeDash=[2, 3], color=INK, strokeWidth=1).encode(
                y=alt.Y("theory:Q", axis=axis, scale=scale)).transform_filter("isValid(datum.theory)"))
        panels.append(alt.layer(*layered, data=ROWS).properties(width=250, height=150).facet(
            column=alt.Column("score:N", title=None, header=alt.Header(labels=number == 0))))
    return alt.vconcat(*panels)


def _summary(rows: list[dict[str, Any]]) -> str:
    by = {(row["kind"], row["score"], row["d_k"]): row for row in rows if row["run"] is None}
    last, parts = WIDTHS[-1], []
    for score, words in (("dot", "without scaling"), ("scaled_dot", "with it")):
        row, first = by[UNIT, score, last], by[UNIT, score, WIDTHS[0]]
        parts.append(f"{words} {row['variance']:.3g} (theory {row['theory']:g}), entropy {first['entropy']:.2f} of "
                     f"ln(tokens) at {WIDTHS[0]} and {row['entropy']:.2f} at {last}, gradient {first['gradient']:.2g} "
                     f"and {row['gradient']:.2g}")
    text = (f"Variance of products of unit queries and keys at d_k = {last}: {'; '.join(parts)}. Projections as they "
            f"start are smaller: at d_k = 64 a Linear layer of width 64 gives "
            f"{by[DEFAULT, 'dot', 64]['variance']:.2g}, scaled {by[DEFAULT, 'scaled_dot', 64]['variance']:.2g}; by "
            f"Xavier {by[XAVIER, 'dot', 64]['variance']:.2g} and {by[XAVIER, 'scaled_dot', 64]['variance']:.2g}.")
    for kind in (UNTRAINED, TRAINED):
        found = [row for row in rows if row["kind"] == kind]
        if found:
            text += (f" {kind.capitalize()}: variance {min(r['variance'] for r in found):.2g} to "
                     f"{max(r['variance'] for r in found):.2g}, entropy {min(r['entropy'] for r in found):.2f} to "
                     f"{max(r['entropy'] for r in found):.2f}.")
    return text
