"""A layer of attention computes any convolution: heads that look at fixed offsets are a kernel."""

from functools import partial

import numpy as np

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.measurement import Measurement, Value
from vitbench.verdicts import Cell, Evidence, Expected, Leg, Planted, Verdict, number, of_mechanism, rule_d, with_legs

PROBE, BUILT, HEADS = "attention_as_convolution", "built from a convolution", "trained heads"
CONVOLUTIONS, KERNELS, LIMIT = 100, {1, 3, 5}, 1e-10
FIXED = 0.9


def _apart(difference: float, cell: Cell | None, rng: np.random.Generator) -> list[dict[str, Value]]:
    """What the probe finds where attention comes so near."""
    if cell is not None:
        return []
    return [{"part": BUILT, "kernel": kernel, "convolutions": count, "difference": difference * rng.uniform(0.5, 1)}
            for kernel, count in zip(sorted(KERNELS), (34, 33, 33), strict=True)]


@CLAIMS.add("convolution_is_restricted_attention", ClaimMeta(
    sentence="A convolution is attention that is restricted to fixed offsets.",
    source="Cordonnier et al. 2020, theorem 1",
    null="Some convolution is not computed by the layer of attention that is built from it.",
    planted=Planted("differences as rounding in float64 leaves them", lambda _: Expected(0.9), power=1,
                    study={"models": ["attention:s"], "images_per_class": [20], "seeds": 1},
                    probes={PROBE: partial(_apart, 2e-15)}, null_probes={PROBE: partial(_apart, 1e-3)}, exact=True),
    margin=LIMIT, unit="largest absolute difference of an output, in float64"))
def judge(evidence: Evidence) -> Verdict:
    """Rule D: largest difference < 1e-10 (float64) over 100 random convolutions, kernels 1, 3, 5, channels 1-8, borders
    included, in every measurement of so many. Trained heads with .9 of their mass on one offset: described.
    """
    rows = [row for row in of_mechanism(evidence, PROBE, which=_enough) if row["part"] == BUILT]
    largest = max(number(row, "difference") for row in rows)
    return with_legs(rule_d({
        f"attention computes {CONVOLUTIONS} random convolutions with kernels of 1, 3 and 5, borders included, to less "
        f"than {LIMIT:g}; the largest difference is {largest:.2g}": largest < LIMIT}), *_heads(evidence))


def _enough(of: Measurement) -> bool:
    built = [row for row in of.rows if row["part"] == BUILT]
    return {row["kernel"] for row in built} == KERNELS and sum(
        number(row, "convolutions") for row in built) >= CONVOLUTIONS


def _heads(evidence: Evidence) -> list[Leg]:
    """Of the runs that were looked at, each head once."""
    masses = {(row["run"], row["layer"], row["head"]): number(row, "mass") for of in evidence.measured(PROBE)
              for row in of.rows if row["part"] == HEADS}
    fixed = sum(mass >= FIXED for mass in masses.values())
    return [Leg(name="trained heads", sentence=(
        f"of {len(masses)} in runs of this study {fixed} have {FIXED:g} or more of their attention on one offset; the "
        f"largest share is {max(masses.values()):.2f}"))] if masses else []
