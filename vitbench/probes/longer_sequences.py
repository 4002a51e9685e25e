"""What positions do beyond the size that they were trained on: accuracy when an empty border makes the image larger."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import altair as alt
import numpy as np
from pydantic import Field

from vitbench.grid import Run
from vitbench.probes import PROBES, ROWS, RUN, WIDTH, Column, Look, Measured, ProbeMeta, Trained, filled, named
from vitbench.probes._figure import by_kind
from vitbench.probes._logits import logits, right
from vitbench.probes._tokens import token_side
from vitbench.record import RunRecord
from vitbench.report.palette import QUIET
from vitbench.spec import Frozen

if TYPE_CHECKING:
    from torch import Tensor

REFUSED, INTERPOLATED, AS_IS = "refused", "interpolated", "as it is"


class Options(Frozen):
    """Test images, and the widest border; the claim takes borders of 1 to 4 tokens."""

    images: Annotated[int, Field(ge=1, le=100_000)] = 1000
    most: Annotated[int, Field(ge=1, le=64, description="tokens a side that are added")] = 4


@PROBES.add("longer_sequences", ProbeMeta(
    statement="Positions set by hand or learned end where they were set; sinusoidal ones are defined beyond.",
    source="Vaswani et al. 2017, section 3.5; Dosovitskiy et al. 2021, section 3.2", looks_at=("runs",),
    options=Options))
def longer_sequences(look: Look) -> Measured:
    """Test accuracy of a study's runs on images with 0, 1, 2, ... tokens of border on every side."""
    rows = filled(COLUMNS, ({**row, **named(run)} for run in look.runs for row in _of_run(look, run)))
    chance = 1 / look.study.resolved.num_classes
    return Measured(COLUMNS, rows, _figure(rows, chance), _summary(rows, chance))


def bordered(images: "Tensor", border_pixels: int, black: "Tensor") -> "Tensor":
    """Images B x C x S x S in the centre of larger ones, `border_pixels` on each side with the value `black`
    (1 x C x 1 x 1) of their channel."""
    B, C, S, _ = images.shape
    side = S + 2 * border_pixels
    larger = black.expand(B, C, side, side).clone()
    larger[:, :, border_pixels:border_pixels + S, border_pixels:border_pixels + S] = images
    return larger


def refusal(model: "Callable[[Tensor], Tensor]", images: "Tensor") -> str | None:
    """What a model says to images that it cannot take; None where it takes them."""
    try:
        logits(model, images)
    except Exception as error:  # each architecture, users' too, has an error of its own
        return str(error).partition("\n")[0] or type(error).__name__
    return None


def _of_run(look: Look, run: Run) -> Iterator[dict[str, Any]]:
    from vitbench.nn.positions import set_beyond

    record, trained = look.record(run), look.trained(run)
    images, labels_B = trained.images("test", look.options.images)
    side, black = token_side(record, images), _black(trained, images)
    tokens = images.shape[2] // side if "tokens" in record.card else None

    def of(added: int) -> "Tensor":
        return bordered(images, added * side, black)

    accuracy = right(logits(trained.module, images), labels_B)
    set_beyond(trained.module.model, "refuse")
    refused = refusal(trained.module, of(1)[:2])
    set_beyond(trained.module.model, "interpolate")
    beyond = INTERPOLATED if refused else AS_IS
    facts = {"kind": _kind(record, beyond), "positions": record.card.get("positions"), "side": side}
    if refused:
        yield {**facts, "kind": _kind(record, REFUSED), "beyond": REFUSED, "added": 1, "remark": refused}
        if refusal(trained.module, of(1)[:2]):
            return  # it takes no other size at all
    for added in range(look.options.most + 1):
        found = right(logits(trained.module, of(added)), labels_B) if added else accuracy
        yield {**facts, "beyond": beyond, "added": added, "tokens": tokens and (tokens + 2 * added)**2,
               "accuracy": found, "drop": accuracy - found}


def _black(trained: Trained, images: "Tensor") -> "Tensor":
    """Grey level 0 as the run normalises it, 1 x C x 1 x 1."""
    return trained.module.data.normalised(images.new_zeros(1, images.shape[1], 1, 1))


def _kind(record: RunRecord, beyond: str) -> str:
    """'learned, interpolated'; 'hybrid, sinusoidal'; 'convolution'."""
    positions = record.card.get("positions")
    first = [] if positions and record.family == "attention" else [record.family]
    parts = [*first, *([str(positions)] if positions else []), *([] if beyond == AS_IS else [beyond])]
    return ", ".join(parts)


COLUMNS = (
    Column(name="kind", unit="", meaning="positions, and whether they were interpolated; of models without any their "
                                         "family"),
    Column(name="positions", unit="", meaning="how a token's place enters"),
    Column(name="beyond", unit="", meaning="what becomes of positions beyond the training size: refused (the remark "
                                           "has the error), interpolated, or as it is: defined there, or none"),
    Column(name="added", unit="tokens a side", meaning="of empty border, on all four sides: G x G tokens become (G + 2 "
                                                       "added) squared, the image in the centre"),
    Column(name="side", unit="pixels", meaning="of a token; of models without tokens those of a token transformer's "
                                               "default"),
    Column(name="tokens", unit="", meaning="of the larger image"),
    Column(name="accuracy", unit="", meaning="on test images, the border at grey level 0"),
    Column(name="drop", unit="", meaning="accuracy at the trained size minus this one"),
    Column(name="remark", unit="", meaning="why an image of another size was refused"), *RUN)


def _figure(rows: list[dict[str, Any]], chance: float) -> Any:
    kinds = list(dict.fromkeys(row["kind"] for row in rows if row["accuracy"] is not None))
    shares = list(dict.fromkeys(row["share"] for row in rows))
    y_axis = alt.Axis(title="test accuracy, mean over runs; dashed: chance")
    lines = alt.Chart().transform_filter("isValid(datum.accuracy)").mark_line(
        point=alt.OverlayMarkDef(filled=True, size=40)).encode(
        x=alt.X("added:Q", axis=alt.Axis(title="empty border, tokens on each side", tickMinStep=1)),
        y=alt.Y("mean(accuracy):Q", axis=y_axis, scale=alt.Scale(domain=[0, 1])), **by_kind("kind", kinds))
    line = alt.Chart().mark_rule(color=QUIET, strokeDash=[4, 3]).encode(y=alt.datum(chance, axis=y_axis))
    return alt.layer(line, lines, data=ROWS).properties(width=WIDTH, height=240).facet(
        row=alt.Row("share:N", sort=shares, header=alt.Header(labelExpr="'share ' + datum.value")))


def _summary(rows: list[dict[str, Any]], chance: float) -> str:
    grown = [row for row in rows if row["added"] and row["drop"] is not None]
    parts = []
    for kind in dict.fromkeys(row["kind"] for row in grown):
        found = [row["drop"] for row in grown if row["kind"] == kind]
        parts.append(f"{kind} {100 * float(np.mean(found)):.1f}")
    most = max((row["added"] for row in grown), default=0)
    text = (f"Points of test accuracy lost when 1 to {most} tokens of empty border are added on every side, mean: "
            f"{'; '.join(parts)}. Chance is {100 * chance:.1f} %." if parts else "No run takes a larger image.")
    if any(row["kind"].startswith("none") for row in grown):
        text += " What a model without positions loses is not due to positions."
    for remark in dict.fromkeys(row["remark"] for row in rows if row["remark"]):
        kinds = dict.fromkeys(row["label"] for row in rows if row["remark"] == remark)
        text += f" Refused by {', '.join(kinds)}: {remark}."
    return text
