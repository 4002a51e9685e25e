"""Augmentation is worth a multiple of the images."""

from collections.abc import Iterator
from dataclasses import replace
from math import log2
from statistics import fmean

import numpy as np

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.stats.efficiency import Sign, reached
from vitbench.stats.monotone import FloatArray, falling
from vitbench.verdicts import Blocked, Cell, Evidence, Expected, Planted, Stratum, Verdict, contrast_of, rule_g
from vitbench.verdicts.evidence import CellOf
from vitbench.verdicts.pairing import Rows

MARGIN = log2(1.25)
NONE, REGIME = range(2)
STUDY = {"models": ["attention:s", "convolution:s"], "images_per_class": [5, 10, 20, 40, 80, 160], "seeds": 10,
         "regimes": ["none", "light"]}


def _planted(cell: Cell) -> Expected:
    worth = 1 if cell.regime == "none" else 1.3
    return Expected(1 - 0.4 * (cell.images * worth / 5) ** -0.4)


@CLAIMS.add("augmentation_replaces_data", ClaimMeta(
    sentence="Augmentation is worth at least a quarter more images.",
    source="Steiner et al. 2022, 'How to train your ViT?'",
    null="Without augmentation a model needs no more images to reach the same error.",
    planted=Planted("augmentation is worth 1.3 times the images at every size; 10 seeds", _planted, power=0.9,
                    study=STUDY),
    margin=MARGIN, unit="doublings of the training images that augmentation is worth"))
def judge(evidence: Evidence) -> Verdict:
    """Per seed, k(n) = (images that `none` needs, on its monotone curve, to reach the error of the regime at n)/n;
    y = mean log2 k over the sizes between the smallest and the largest; rule G. Every model and regime is a stratum.

    The curve is the non-increasing one closest to the errors of `none`, straight in ln n. Where it never comes so low,
    N_max/n is entered: too little, so a single such place rules `fails` out. Where it lies below from its smallest size
    on, n_min/n is: too much, which rules `holds` out, or in a stratum its holding.
    """
    sizes, strata = evidence.shares, _strata(evidence)
    if len(sizes) < 3:
        raise Blocked(f"It takes sizes between the smallest and the largest; the study has {', '.join(sizes)} alone")
    y = contrast_of(evidence, strata, sizes, lambda rows: fmean(log2(k) for _, k in _factors(rows, sizes)))

    def places_K(sign: str) -> FloatArray:
        """How often the factor of a stratum is only bounded so."""
        return np.asarray(contrast_of(evidence, strata, sizes, lambda rows: sum(
            found == sign for found, _ in _factors(rows, sizes))).y_SK.sum(axis=0))

    beyond_K, below_K = places_K(">"), places_K("<=")
    told = (f"Of {y.y_SK.size * (len(sizes) - 2)} places, `none` does not come so low with all its images in "
            f"{beyond_K.sum():g}, and the regime is worse than `none` at its smallest size in {below_K.sum():g}")
    verdict = rule_g(y, margin=MARGIN)
    if _ruled_out(verdict, beyond_K, below_K):
        return replace(verdict, outcome="undecided", sentence=(
            f"{told}: what was entered there rules out `{verdict.outcome}`. Without that: {verdict.sentence}"))
    return replace(verdict, sentence=f"{verdict.sentence}. {told}")


def _ruled_out(verdict: Verdict, beyond_K: FloatArray, below_K: FloatArray) -> bool:
    """True where the outcome rests on factors that were entered as too little or as too much."""
    holding, failing = ([part.shows == shows and not count for part, count in zip(verdict.parts, counts_K, strict=True)]
                        for shows, counts_K in (("holds", below_K), ("fails", beyond_K)))
    return {"holds": bool(below_K.any()), "fails": bool(beyond_K.any()),
            "depends": not (any(holding) and any(failing))}.get(verdict.outcome, False)


def _strata(evidence: Evidence) -> tuple[Stratum, ...]:
    """Each model in each regime against itself in `none`, where the study asks for both at all sizes."""
    found = []
    for label in sorted(evidence.models):
        for after in sorted({cell.condition for cell in evidence.seeds if cell.label == label}):
            before = after._replace(regime="none")
            if after != before and all(CellOf(label, share, condition) in evidence.seeds
                                       for share in evidence.shares for condition in (before, after)):
                found.append(Stratum(after, (label, label), (before, after)))
    if not found:
        raise Blocked("The study has no model both without augmentation and in a regime at all its sizes; `regimes` in "
                      "its file names them")
    return tuple(found)


def _factors(rows: Rows, sizes: tuple[str, ...]) -> Iterator[tuple[Sign, float]]:
    """k at each inner size of one seed and stratum, with what it is: exact, more than that, or at most that."""
    images_N = [rows[NONE, n].train_images for n in sizes]
    curve_N = falling([1 - rows[NONE, n].counted_accuracy for n in sizes])
    for n, images in list(zip(sizes, images_N, strict=True))[1:-1]:
        sign, needed = reached(np.array(images_N, float), curve_N - (1 - rows[REGIME, n].counted_accuracy))
        yield sign, needed / images
