"""Attention without positions is less accurate: it cannot tell where a token stands."""

from collections.abc import Iterator
from statistics import fmean

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.spec import canonical_json
from vitbench.verdicts import (
    Blocked,
    Cell,
    Evidence,
    Expected,
    Leg,
    Planted,
    Unmeasured,
    Verdict,
    accuracy_contrast,
    rule_g,
    variants,
    with_legs,
)
from vitbench.verdicts.evidence import ModelFacts

MARGIN = 0.01
TOKENS = ("patch", "pixel")
CONTROL = "shapes_where"
OFF_CHANCE = 0.05
STUDY = {"models": [{"name": "attention", "size": "s", "label": f"{tokens} {positions}", "tokens": tokens,
                     "positions": positions} for tokens in TOKENS for positions in ("none", "learned")],
         "images_per_class": [20, 80], "seeds": 10}


def _planted(cell: Cell) -> Expected:
    learned = cell.options["positions"] == "learned"
    if cell.dataset == CONTROL:
        return Expected(0.8 if learned else 0.1)
    return Expected(0.92 if learned else 0.905)


def _alike(cell: Cell) -> Expected:
    return _planted(cell) if cell.dataset == CONTROL else Expected(0.9)


@CLAIMS.add("positions_matter", ClaimMeta(
    sentence="Attention is more accurate when it is told where each token stands.",
    source="lecture notes on self-attention that this project starts from; the ViT paper (Dosovitskiy et al. 2021), "
           "appendix D.4",
    null="Learned positions make attention no more accurate than none.",
    planted=Planted("1.5 points behind without positions, for patches and for pixels; 10 seeds", _planted, power=0.9,
                    study=STUDY, null=_alike, elsewhere=(CONTROL,)),
    margin=MARGIN))
def judge(evidence: Evidence) -> Verdict:
    """y = accuracy with learned positions minus accuracy with none, models alike in all else, all sizes; rule G. Both
    pixels and patches as tokens, each a stratum, never features of a convolutional stem, whose padding tells places.

    Positive control: in the studies on `shapes_where`, where nothing but the place decides, each of the models without
    positions (the same but for the size of its patches) lies within .05 of chance in every condition, mean over its
    seeds and sizes; else blocked. A lost run is no control. The accuracy of its twin with positions stands beside it.
    """
    groups = [labels for tokens in TOKENS for labels in variants(evidence, "positions", "learned", "none",
                                                                 tokens=tokens)]
    sizes = evidence.shares
    weights = {(place, n): sign / len(sizes) for place, sign in enumerate((1, -1)) for n in sizes}
    verdict = rule_g(accuracy_contrast(evidence, evidence.strata(groups, sizes), weights), margin=MARGIN)
    return with_legs(verdict, *(_control(evidence, *labels) for labels in groups))


def _control(evidence: Evidence, learned: str, none: str) -> Leg:
    """The model without positions on `shapes_where`, beside its twin. Raises Blocked where it is off chance."""
    told = []
    for study in evidence.on(CONTROL):
        twins = dict(_accuracies(study, evidence.models[learned]))
        for condition, (accuracy, chance) in _accuracies(study, evidence.models[none]):
            if abs(accuracy - chance) > OFF_CHANCE:
                raise Blocked(f"On {CONTROL}, where only places decide, {none} is not within {OFF_CHANCE:g} of chance: "
                              f"{accuracy:.3g} in {condition}, chance {chance:g}. It learns places some other way")
            beside = f"{twins[condition][0]:.3g}" if condition in twins else "not there"
            told.append(f"{accuracy:.3g} in {condition} (chance {chance:g}; with positions {beside})")
    if not told:
        raise Unmeasured(f"Its positive control is missing: no study on {CONTROL} in the results folder has runs of "
                         f"{none} (the same model, size and options)")
    return Leg(name=f"{none} on {CONTROL}", sentence="; ".join(told))


def _accuracies(study: Evidence, model: ModelFacts) -> Iterator[tuple[str, tuple[float, float]]]:
    """In each condition the mean accuracy, over seeds and sizes, of the study's models like this one, and chance."""
    labels = {label for label, facts in study.models.items() if _alike_but_for_patches(facts, model)}
    for condition in sorted({cell.condition for cell in study.seeds if cell.label in labels}):
        rows = [row for cell, of in study.by_cell.items() if cell.label in labels and cell.condition == condition
                for row in of.values() if row.outcome == "done"]
        if rows:
            yield (f"study {study.study}, {', '.join(condition)}",
                   (fmean(row.counted_accuracy for row in rows), rows[0].chance_accuracy))


def _alike_but_for_patches(a: ModelFacts, b: ModelFacts) -> bool:
    """Images of another size have other patches."""
    first, second = (canonical_json([facts.model, facts.size, {**facts.full_options, "patch_size": None}])
                     for facts in (a, b))
    return first == second
