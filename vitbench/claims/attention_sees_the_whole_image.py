"""Two things far apart in an image: there attention is ahead of a CNN by more than where they touch."""

from collections.abc import Callable, Collection, Iterator
from math import log
from statistics import fmean

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.row import Row
from vitbench.spec import canonical_json, split_version
from vitbench.verdicts import (
    Blocked,
    Cell,
    Evidence,
    Expected,
    Leg,
    Planted,
    Side,
    Stratum,
    Verdict,
    contrast_between,
    contrast_of,
    decided,
    described,
    matched_architectures,
    rule_g,
    with_legs,
)

MARGIN = 0.2
FAR, NEAR = "far_pairs", "near_pairs"
DISTANCE = 20  # of far_pairs, where its options say no other
OFF_CHANCE, PERFECT = 0.05, 0.995
SIGHT = "attention_distance"


def _planted(cell: Cell) -> Expected:
    attention_far = 0.8 if cell.family == "attention" else 0.74
    return Expected(attention_far if cell.dataset == FAR else 0.9)


@CLAIMS.add("attention_sees_the_whole_image", ClaimMeta(
    sentence="Attention relates things far apart in an image, where a CNN relates only what is near.",
    source="lecture notes on self-attention that this project starts from; Cordonnier et al. 2020, section 1",
    null="Attention is ahead of a CNN of its size by no more where two things stand far apart than where they touch.",
    planted=Planted("80 against 74 % on far pairs, level on near ones; 10 seeds", _planted, power=0.9,
                    study={"dataset": FAR, "models": ["attention:l", "convolution:l"], "images_per_class": [80],
                           "seeds": 10}, elsewhere=(NEAR,)),
    margin=MARGIN, unit="logarithm of the odds of a right answer"))
def judge(evidence: Evidence) -> Verdict:
    """z = ln((right + 1/2)/(wrong + 1/2)) of the test images; y = [z_att - z_cnn](far_pairs) - [z_att -
    z_cnn](near_pairs), l sizes that match, full size, each seed with itself; rule G.

    Blocked if neither model is .05 above chance on far_pairs, or if near_pairs is within .005 of 1 for both, in any
    stratum. The two studies must have the same models, recipes, conditions, seeds and number of images. The CNN's
    receptive field against the distance stands beside it where the probe attention_distance has measured it.
    """
    far, near = _studies(evidence)
    (f,), (n,) = far.shares, near.shares
    y = contrast_between(far, near, lambda rows: _z(rows[0, f]) - _z(rows[1, f]) - _z(rows[2, n]) + _z(rows[3, n]))
    told = "; ".join(_unfit(far, near))
    verdict = decided("blocked", told, y) if told else rule_g(y, margin=MARGIN)
    on_far = contrast_of(*far, lambda rows: _z(rows[0, f]) - _z(rows[1, f]))
    on_near = contrast_of(*near, lambda rows: _z(rows[0, n]) - _z(rows[1, n]))
    return with_legs(verdict, described(f"on {FAR}", "attention minus CNN", on_far),
                     described(f"on {NEAR}", "attention minus CNN", on_near), _sight(far))


def _z(row: Row) -> float:
    right = row.counted_accuracy * row.test_images
    return log((right + 0.5) / (row.test_images - right + 0.5))


def _studies(evidence: Evidence) -> tuple[Side, Side]:
    """The far study and the near one, whichever of them is judged. Raises Blocked unless there is one that fits."""
    own = split_version(evidence.planned[0].spec.dataset)[0] if evidence.planned else "nothing"
    if own not in (FAR, NEAR):
        raise Blocked(f"It takes a study of {FAR} and one of {NEAR}; this one is of {own}")
    here, fitting, told = _side(evidence), [], []
    for other in evidence.on(NEAR if own == FAR else FAR):
        try:
            fitting.append(_like(here, _side(other)))
            told.append(f"{other.study} fits")
        except Blocked as why:
            told.append(f"{other.study}: {why}")
    if len(fitting) != 1:
        raise Blocked(f"It takes one study of {NEAR if own == FAR else FAR} with the same models, recipes, conditions "
                      f"and number of images; in this folder: {'; '.join(told)}")
    return (here, fitting[0]) if own == FAR else (fitting[0], here)


def _side(evidence: Evidence) -> Side:
    full = evidence.full
    strata = evidence.strata([(a["l"], c["l"]) for a, c in matched_architectures(evidence, "l")], [full])
    return Side(evidence, sorted(strata, key=lambda stratum: _key(evidence, stratum)), [full])


def _key(evidence: Evidence, stratum: Stratum) -> str:
    """The same in two studies, whatever they call a model."""
    facts = [evidence.models[label] for label in stratum.models]
    return canonical_json([stratum.condition, [[of.model, of.size, dict(of.options), of.recipe.model_dump(mode="json")]
                                               for of in facts]])


def _like(here: Side, there: Side) -> Side:
    """`there`. Raises Blocked with what differs."""
    alike: dict[str, Callable[[Side], object]] = {
        "models, recipes or conditions": lambda of: [_key(of.evidence, stratum) for stratum in of.strata],
        "images drawn": lambda of: of.evidence.drawn[of.shares[0]],
        "options of the dataset": lambda of: {**of.evidence.planned[0].spec.dataset_options, "distance": None}}
    differing = [name for name, of in alike.items() if of(here) != of(there)]
    if differing:
        raise Blocked(f"differs in {', '.join(differing)}")
    return there


def _unfit(far: Side, near: Side) -> Iterator[str]:
    """Of each stratum what makes it say nothing."""
    for stratum, other in zip(far.strata, near.strata, strict=True):
        rows = [[_rows(study, of, place) for place in (0, 1)] for study, of in ((far, stratum), (near, other))]
        if all(fmean(row.counted_accuracy - row.chance_accuracy for row in of) < OFF_CHANCE for of in rows[0]):
            yield f"Neither model is {OFF_CHANCE:g} above chance on {FAR}, in {stratum.name}"
        if all(fmean(row.counted_accuracy for row in of) >= PERFECT for of in rows[1]):
            yield f"Both models are right on all but {1 - PERFECT:.3g} of {NEAR} at most, in {stratum.name}"


def _rows(study: Side, stratum: Stratum, place: int) -> Collection[Row]:
    return study.evidence.by_cell[stratum.cell(place, study.shares[0])].values()


def _sight(far: Side) -> Leg:
    """The receptive fields of the CNNs, as far as they were measured."""
    study = far.evidence
    field = {row["label"]: row["field"] for of in study.measured(SIGHT) for row in of.rows if row.get("field")}
    told = [f"{label} sees {field[label]} pixels a side" if label in field else
            f"that of {label} is told by `vitbench probe {SIGHT} {study.study}`"
            for label in sorted({stratum.models[1] for stratum in far.strata})]
    distance = study.planned[0].spec.dataset_options.get("distance", DISTANCE)
    return Leg(name="receptive field", sentence=f"{'; '.join(told)}; the two things stand {distance} pixels apart")
