"""Whether a model sees the order of its tokens: what its logits do when patches change places."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import altair as alt
import numpy as np
import numpy.typing as npt
from pydantic import Field

from vitbench.models import default_patch_size
from vitbench.probes import PROBES, ROWS, RUN, WIDTH, Column, Look, Measured, ProbeMeta, filled, named
from vitbench.probes._chance import seeded
from vitbench.probes._figure import by_kind
from vitbench.probes._logits import logits, right
from vitbench.probes._tokens import token_side
from vitbench.report.palette import QUIET
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import Tensor, nn

POSITIONS = ("none", "learned", "sinusoidal", "sinusoidal_2d", "relative", "rotary")
UNTRAINED, TRAINED = "untrained", "trained"
BLIND = 1e-5  # of the spread of logits: what float32 makes of sums in another order lies below
LEAST = 1e-17  # that is drawn: a logarithm has no 0
# Without positions, and not blind all the same: what a token sees depends on its place.
PLACED: tuple[dict[str, Any], ...] = (
    {"tokens": "patch", "positions": "none", "span": "window", "window": 3},
    {"tokens": "patch", "positions": "none", "span": "causal"}, {"tokens": "conv_stem", "positions": "none"})


class Options(Frozen):
    """Images, each under every permutation; untrained models of each kind."""

    images: Annotated[int, Field(ge=2, le=10_000)] = 64
    permutations: Annotated[int, Field(ge=1, le=1000)] = 8
    draws: Annotated[int, Field(ge=1, le=100, description="untrained models of each kind")] = 3


@PROBES.add("order_blindness", ProbeMeta(
    statement="Without positions attention is blind to the order of its tokens.",
    source="Vaswani et al. 2017, section 3.5; Lee et al. 2019 (Set Transformer), property 1",
    looks_at=("mechanism", "runs"), options=Options))
def order_blindness(look: Look) -> Measured:
    """Untrained models with every kind of positions on digits; beside them a study's runs, of any family."""
    rows = filled(COLUMNS, (*_untrained(look), *_trained(look)))
    return Measured(COLUMNS, rows, _figure(rows), _summary(rows))


def permuted(images: "Tensor", side: int, order: npt.NDArray[np.int64]) -> "Tensor":
    """Images B x C x S x S whose patches of `side` pixels change places: place i, in raster order, shows what stood at
    order[i]. Inside a patch nothing moves."""
    import torch
    import torch.nn.functional as F  # noqa: N812 - torch's own name for it

    patches = F.unfold(images, side, stride=side)[:, :, torch.from_numpy(order)]
    return F.fold(patches, images.shape[2:], side, stride=side)


def changes(model: "nn.Module", images: "Tensor", side: int, orders: list[npt.NDArray[np.int64]],
            labels_B: npt.NDArray[np.int64]) -> dict[str, float | None]:
    """What the orders change: of logits as shares of their spread, of predictions and of accuracy.

    The spread is the deviation of a class's logit over images, as a root mean square over classes; where it is 0 there
    is no share.
    """
    before_BC = logits(model, images)
    spread = float(before_BC.var(dim=0, correction=0).mean().sqrt())
    after = [logits(model, permuted(images, side, order)) for order in orders]
    apart = [(after_BC - before_BC).abs() for after_BC in after]
    kept = [float((after_BC.argmax(1) == before_BC.argmax(1)).double().mean()) for after_BC in after]
    return {"mean_change": float(np.mean([float(each.mean()) for each in apart])) / spread if spread else None,
            "largest_change": max(float(each.max()) for each in apart) / spread if spread else None,
            "changed_predictions": 1 - float(np.mean(kept)), "accuracy": right(before_BC, labels_B),
            "permuted_accuracy": float(np.mean([right(after_BC, labels_B) for after_BC in after]))}


def _untrained(look: Look) -> Iterator[dict[str, Any]]:
    images, labels_B = _digits(look.options.images)
    seeds = look.rng.integers(2**63, size=look.options.draws)
    image = ImageSpec(images.shape[2], images.shape[1])
    kinds = [{"tokens": tokens, "positions": positions} for tokens in ("patch", "pixel") for positions in POSITIONS]
    for options in (*kinds, *PLACED):
        side = 1 if options["tokens"] == "pixel" else default_patch_size(image)
        orders = _orders(look, image.size // side)
        found = [changes(model, images, side, orders, labels_B) for model in _models(options, image, seeds)]
        yield {"state": UNTRAINED, "tokens": options["tokens"], "positions": options["positions"],
               "span": options.get("span", "global"), "side": side,
               "mean_change": _mean(found, "mean_change"),
               "largest_change": max(one["largest_change"] or 0.0 for one in found),
               "changed_predictions": _mean(found, "changed_predictions")}


def _mean(found: list[dict[str, float | None]], what: str) -> float:
    return float(np.mean([one[what] or 0.0 for one in found]))


def _digits(count: int) -> "tuple[Tensor, npt.NDArray[np.int64]]":
    import torch

    from vitbench import datasets, subset
    from vitbench.training.data import statistics

    arrays = datasets.load("digits")
    chosen = subset.stratified_sample(arrays.test_labels, count, np.random.default_rng(0))
    mean, inverse = statistics(arrays.train_images)
    images = (torch.from_numpy(arrays.test_images[chosen]).double() - mean) * inverse
    return images, arrays.test_labels[chosen].astype(np.int64)


def _models(options: dict[str, Any], image: ImageSpec, seeds: npt.NDArray[np.int64]) -> "Iterator[nn.Module]":
    from vitbench import models

    for seed in seeds:
        with seeded(seed):
            yield models.build("token_transformer", "s", options, image, 10).double().eval()


def _orders(look: Look, places: int) -> list[npt.NDArray[np.int64]]:
    """The same ones for every kind and run with that many places a side."""
    rng = np.random.default_rng(look.seed)
    return [rng.permutation(places**2) for _ in range(look.options.permutations)]


def _trained(look: Look) -> Iterator[dict[str, Any]]:
    for run in look.runs:
        record, trained = look.record(run), look.trained(run)
        images, labels_B = trained.images("test", look.options.images)
        side = token_side(record, images)
        side = side if images.shape[2] % side == 0 else 1  # no default divides an odd number of pixels
        orders = _orders(look, images.shape[2] // side)
        options, has_tokens = record.spec.options, isinstance(record.card.get("patch"), int)
        yield {"state": TRAINED, "tokens": options.get("tokens", "patch") if has_tokens else None,
               "positions": record.card.get("positions"), "span": options.get("span", "global"), "side": side,
               **changes(trained.module.model, images, side, orders, labels_B), **named(run)}


COLUMNS = (
    Column(name="state", unit="", meaning="untrained models on digits, in float64, mean over them; or trained runs, in "
                                          "float32"),
    Column(name="tokens", unit="", meaning="what a token is; conv_stem: features that see beyond their patch"),
    Column(name="positions", unit="", meaning="how a token's place enters"),
    Column(name="span", unit="", meaning="which tokens a token sees; under window and causal that depends on its "
                                         "place: such models are not blind without positions"),
    Column(name="side", unit="pixels", meaning="of the patches that change places; of models without tokens those of a "
                                               "token transformer's default"),
    Column(name="mean_change", unit="spreads of logits", meaning="of a logit, absolute, mean over images, classes and "
                                                                "permutations; a spread is its deviation over images"),
    Column(name="largest_change", unit="spreads of logits", meaning="the largest of them"),
    Column(name="changed_predictions", unit="share of images", meaning="whose predicted class changes, mean over "
                                                                      "permutations"),
    Column(name="accuracy", unit="", meaning="on these images as they are"),
    Column(name="permuted_accuracy", unit="", meaning="on them permuted, mean over permutations"), *RUN)


def _figure(rows: list[dict[str, Any]]) -> Any:
    tokens = [kind for kind in ("patch", "pixel", "conv_stem") if any(row["tokens"] == kind for row in rows)]
    least = f"max(datum.mean_change, {LEAST})"
    untrained = alt.Chart(ROWS).transform_filter(alt.datum.state == UNTRAINED).transform_calculate(
        what="datum.positions + (datum.span == 'global' ? '' : ', ' + datum.span)", shown=least)
    panels = [alt.layer(untrained.mark_point(filled=True, size=60).encode(
        x=_change_axis(), y=alt.Y("what:N", title=None, sort=None), **_without_dash(by_kind("tokens", tokens))),
        _border()).properties(width=WIDTH, height={"step": 20}, title="Untrained models, by positions")]
    if any(row["state"] == TRAINED for row in rows):
        place = {"place": "datum.label + ', ' + datum.share"}
        trained = alt.Chart(ROWS).transform_filter(alt.datum.state == TRAINED).transform_calculate(shown=least, **place)
        y, style = alt.Y("place:N", title=None, sort=None), {"width": WIDTH, "height": {"step": 18}}
        panels.append(alt.layer(trained.mark_point(size=40).encode(x=_change_axis(), y=y), _border()).properties(
            **style, title="Trained runs, by model and share"))
        folded = trained.transform_fold(["accuracy", "permuted_accuracy"], ["images", "of"]).transform_calculate(
            shown="datum.images == 'accuracy' ? 'as they are' : 'permuted'")
        panels.append(folded.mark_point(filled=True, size=40).encode(
            x=alt.X("of:Q", axis=alt.Axis(title="test accuracy"), scale=alt.Scale(domain=[0, 1])), y=y,
            **_without_dash(by_kind("shown", ["as they are", "permuted"]))).properties(
                **style, title="The same runs on images as they are and permuted"))
    return alt.vconcat(*panels).resolve_scale(color="independent", shape="independent")


def _change_axis() -> Any:
    return alt.X("shown:Q", scale=alt.Scale(type="log"),
                 axis=alt.Axis(title="mean change of a logit, in spreads (log scale)", format="~e", tickCount=6))


def _border() -> Any:
    return alt.Chart(alt.InlineData([{"x": BLIND}])).mark_rule(strokeDash=[2, 3], color=QUIET).encode(x="x:Q")


def _without_dash(channels: dict[str, Any]) -> dict[str, Any]:
    return {name: channel for name, channel in channels.items() if name != "strokeDash"}


def _summary(rows: list[dict[str, Any]]) -> str:
    untrained = [row for row in rows if row["state"] == UNTRAINED]
    placed = [row for row in untrained if row["positions"] != "none"]
    none = [row for row in untrained if row["positions"] == "none"]
    free = [row for row in none if row["span"] == "global" and row["tokens"] != "conv_stem"]
    others = ", ".join(f"{row['mean_change']:.2g} ({row['span']})" if row["span"] != "global" else
                       f"{row['mean_change']:.2g} (convolutional stem)" for row in none if row not in free)
    text = (f"Untrained, permuting tokens changes a logit by at most {max(row['largest_change'] for row in free):.1g} "
            f"spreads without positions, and with them by {min(row['mean_change'] for row in placed):.2g} to "
            f"{max(row['mean_change'] for row in placed):.2g} in the mean. Not blind without positions, where what a "
            f"token sees depends on its place: {others}.")
    trained = [row for row in rows if row["state"] == TRAINED]
    for label in dict.fromkeys(row["label"] for row in trained):
        found = [row for row in trained if row["label"] == label]
        lost = np.mean([row["accuracy"] - row["permuted_accuracy"] for row in found])
        changed = np.mean([row["changed_predictions"] for row in found])
        text += f" {label}: {changed:.0%} of predictions change, accuracy falls by {100 * lost:.1f} points."
    return text
