"""A fully connected layer pays for what it sees, by the square of its window; attention sees all for the same."""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from math import log
from statistics import fmean

import numpy as np

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.measurement import Value
from vitbench.verdicts import (
    Blocked,
    Cell,
    Evidence,
    Expected,
    Leg,
    Planted,
    Verdict,
    named,
    number,
    of_mechanism,
    rule_d,
    with_legs,
)

PROBE, LAYER, MODEL = "window_parameters", "layer", "model"
SLOPES, RATIO = (0.9, 2.1), 2.0


def _costing(power: float, cell: Cell | None, _: np.random.Generator) -> list[dict[str, Value]]:
    """What the probe finds where a layer on w tokens a side has 4,160 w^power parameters."""
    return [] if cell is not None else [
        {"part": part, "width": 64, "tokens": 7, "window": window, "parameters": round(4160 * window**power),
         "attention": 16_640} for part in (LAYER, MODEL) for window in (1, 3, 5, 7, 9, 11, 13)]


@CLAIMS.add("a_window_needs_ever_more_parameters", ClaimMeta(
    sentence="To see more a fully connected layer on a window needs ever more parameters; attention does not.",
    source="lecture notes on self-attention that this project starts from",
    null="A larger window costs a layer no more parameters.",
    planted=Planted("parameters that grow with the square of the window", lambda _: Expected(0.9), power=1,
                    study={"models": ["attention:s"], "images_per_class": [20], "seeds": 1},
                    probes={PROBE: partial(_costing, 2.0)}, null_probes={PROBE: partial(_costing, 0.0)}, exact=True),
    margin=RATIO, unit="parameters of the whole window over those of attention"))
def judge(evidence: Evidence) -> Verdict:
    """Rule D: layer parameters of `window_fc` rise strictly with w at fixed width, every log-log slope between
    neighbouring windows (so the least-squares slope, too) in [.9, 2.1], while attention's stay constant; the whole
    window costs more than 2 x matched attention: a layer of the same width, and a whole model of the same size.
    Accuracy against window: described.
    """
    layers, models = _by_width(evidence, LAYER), _by_width(evidence, MODEL)
    connected, attention = ([[number(row, column) for row in rows] for rows in layers]
                            for column in ("parameters", "attention"))
    slopes = [log(number(b, "parameters") / number(a, "parameters")) / log(number(b, "window") / number(a, "window"))
              for rows in layers for a, b in pairwise(rows)]
    layer, model = (min(number(rows[-1], "parameters") / number(rows[-1], "attention") for rows in of)
                    for of in (layers, models))
    return with_legs(rule_d({
        f"the layer's parameters rise with each wider window, from {connected[0][0]:,.0f} to {connected[0][-1]:,.0f}":
            all(a < b for counts in connected for a, b in pairwise(counts)),
        f"they grow as w to the power {min(slopes):.2f} to {max(slopes):.2f}, within {SLOPES[0]:g} to {SLOPES[1]:g}":
            SLOPES[0] <= min(slopes) and max(slopes) <= SLOPES[1],
        f"those of attention stay at {attention[0][0]:,.0f}": all(len(set(counts)) == 1 for counts in attention),
        f"a window of the whole image takes {layer:.3g} times those of attention of the same width, and {model:.3g} "
        f"times those of a matched model, more than {RATIO:g} times": min(layer, model) > RATIO}),
        *_accuracies(evidence))


def _by_width(evidence: Evidence, part: str) -> list[list[Mapping[str, Value]]]:
    """By width and size of the image what was measured at each window, the narrowest first."""
    found: defaultdict[tuple[float, float], dict[float, Mapping[str, Value]]] = defaultdict(dict)
    for row in of_mechanism(evidence, PROBE):
        if row["part"] == part:
            found[number(row, "tokens"), number(row, "width")][number(row, "window")] = row
    return [[of[window] for window in sorted(of)] for _, of in sorted(found.items())]


def _accuracies(evidence: Evidence) -> list[Leg]:
    """Of the study's models `window_fc`, at full size; nothing where it has none."""
    try:
        labels, full = named(evidence, "window_fc"), evidence.full
    except Blocked:
        return []
    found = {label: [row.counted_accuracy for row in evidence.rows if (row.label, row.share) == (label, full)]
             for label in labels}
    window = {label: evidence.models[label].full_options.get("window") for label in labels}
    told = [f"{label} (window {window[label]}) {fmean(found[label]):.3f}, n = {len(found[label])}"
            for label in sorted(labels, key=lambda label: (window[label] or 0, label)) if found[label]]
    name = f"accuracy against window, at {evidence.described(full)}"
    return [Leg(name=name, sentence="; ".join(told))] if told else []
