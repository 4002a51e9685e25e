"""Divided by the root of d_k, query-key products leave softmax softer at the end of training than undivided ones."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from statistics import fmean

import numpy as np

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.measurement import Measurement, Value
from vitbench.row import Row
from vitbench.stats.slopes import slopes_per_doubling
from vitbench.verdicts import (
    Blocked,
    Cell,
    Contrast,
    Evidence,
    Expected,
    Leg,
    Looked,
    Planted,
    Verdict,
    accuracy_contrast,
    beside,
    by_run,
    contrast_of,
    number,
    of_mechanism,
    rule_d,
    rule_g,
    variants,
    with_legs,
)

MARGIN, PROBE = 0.05, "score_variance"
SCALED, DOT = range(2)
UNIT, TRAINED = "unit queries and keys", "model, trained"
NEAR_THEORY, LEAST = 0.1, 32  # relative; sequences, and tokens of each, that tell a variance so well
STUDY = {"models": [{"name": "attention", "size": "s", "normaliser": "softmax", "score": score, "num_heads": heads,
                     "label": f"{score}, {heads} heads"} for heads in (1, 4) for score in ("scaled_dot", "dot")],
         "images_per_class": [80], "seeds": 10}


def _planted(cell: Cell | None, rng: np.random.Generator) -> list[dict[str, Value]]:
    """Entropies of two layers, lower by .07 at a d_k of 16 and by .11 at 64 where nothing is scaled."""
    if cell is None:
        return [{"kind": UNIT, "theory": theory, "variance": theory * rng.normal(1, 0.01)} for theory in (64.0, 1.0)]
    d_k = 64 // cell.options["num_heads"]
    lower = 0.02 * float(np.log2(d_k)) - 0.01 if cell.options["score"] == "dot" else 0.0
    soft = 0.8 - lower + rng.normal(0, 0.06)
    return [{"kind": TRAINED, "d_k": d_k, "entropy": soft + rng.normal(0, 0.01)} for _ in range(2)]


@CLAIMS.add("scaling_keeps_softmax_soft", ClaimMeta(
    sentence="Dividing query-key products by the root of d_k keeps softmax soft.",
    source="lecture notes on self-attention that this project starts from; Vaswani et al. 2017, section 3.2.1",
    null="At the end of training the entropy of softmax is the same with and without it.",
    planted=Planted("entropy lower by .11 of ln(tokens) without scaling at d_k = 64; 10 seeds", lambda _: Expected(0.9),
                    power=0.9, study=STUDY, probes={PROBE: _planted}),
    margin=MARGIN, unit="entropy of softmax, as a share of ln(tokens)"))
def judge(evidence: Evidence) -> Verdict:
    """y = entropy/ln(tokens) of `scaled_dot` minus `dot`, largest d_k, at the end of training, mean over layers and
    test images, and over all sizes of the study; rule G.

    Beside it the theory for unit-variance queries and keys (variance d_k without scaling, 1 with; found within 10 %),
    the slope of y on log2 d_k, and the accuracy difference apart. Depends if theory holds and training does not, which
    is: rule G fails. Nothing can be seen in a lost run: as long as it counts, its seed counts as no difference.
    """
    groups = variants(evidence, "score", "scaled_dot", "dot", normaliser="softmax")
    looked, sizes = by_run(evidence, PROBE), evidence.shares
    d_k = {group: _d_k(evidence, looked, group) for group in groups}
    largest = max(d_k.values())
    strata = evidence.strata([group for group in groups if d_k[group] == largest], sizes)
    verdict = rule_g(contrast_of(evidence, strata, sizes, lambda rows: fmean(
        _softer(looked, rows[SCALED, n], rows[DOT, n]) for n in sizes)), margin=MARGIN)
    theory = _theory(evidence)
    if verdict.outcome == "fails" and theory.outcome == "holds":
        verdict = replace(verdict, outcome="depends", sentence=(
            f"Theory holds and training does not, at d_k = {largest:g}. {verdict.sentence}"))
    return with_legs(
        verdict, theory,
        beside("slope of the difference on log2 d_k", "for a doubling of d_k", lambda: _slope(evidence, looked, d_k)),
        beside("test accuracy", "with scaling minus without", lambda: accuracy_contrast(evidence, strata, {
            (place, n): sign / len(sizes) for place, sign in ((SCALED, 1), (DOT, -1)) for n in sizes})))


def _d_k(evidence: Evidence, looked: Callable[[Row], Looked], group: tuple[str, ...]) -> float:
    """Alike in the two models of a group."""
    for row in evidence.rows:
        if row.label in group and row.outcome == "done":
            return number(looked(row)[0], "d_k")
    raise Blocked(f"No run of {' or '.join(group)} ended, so there is nothing to look at")


def _softer(looked: Callable[[Row], Looked], scaled: Row, dot: Row) -> float:
    if not scaled.outcome == dot.outcome == "done":
        return 0.0
    softness = [fmean(number(row, "entropy") for row in looked(run) if row["kind"] == TRAINED) for run in (scaled, dot)]
    return softness[0] - softness[1]


def _theory(evidence: Evidence) -> Leg:
    rows = [row for row in of_mechanism(evidence, PROBE, which=_precise) if row["kind"] == UNIT]
    apart = max(abs(number(row, "variance") / number(row, "theory") - 1) for row in rows)
    return Leg.of("theory", rule_d({"the variance of products of unit queries and keys is d_k, and 1 with scaling "
                                    f"(found within {apart:.1%})": apart <= NEAR_THEORY}))


def _precise(of: Measurement) -> bool:
    return all(of.options.get(name, LEAST) >= LEAST for name in ("sequences", "tokens"))


def _slope(evidence: Evidence, looked: Callable[[Row], Looked], d_k: Mapping[tuple[str, ...], float]) -> Contrast:
    """Least squares over all pairs of the study, per doubling of d_k, one slope per seed."""
    if len(set(d_k.values())) < 2:
        raise Blocked(f"It takes two values of d_k; the study has {max(d_k.values()):g} alone")
    sizes, strata = evidence.shares, evidence.strata([tuple(chain(*d_k))], evidence.shares)
    return contrast_of(evidence, strata, sizes, lambda rows: float(slopes_per_doubling([[
        fmean(_softer(looked, rows[place + SCALED, n], rows[place + DOT, n]) for n in sizes)
        for place in range(0, 2 * len(d_k), 2)]], [*d_k.values()])[0]))  # type: ignore[list-item]
