"""Groups: the labels that a contrast compares, such as matched pairs, and the conditions that hold them."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from typing import Any, Literal

from vitbench.spec import canonical_json, split_version
from vitbench.verdicts.evidence import Evidence, ModelFacts, Stratum
from vitbench.verdicts.verdict import Blocked

MATCH = 0.15  # largest difference of a matched pair (protocol rule 18)
Sizes = Mapping[str, str]  # the labels of one architecture, by size
_MISSING = object()


def matched_pairs(evidence: Evidence, *shares: str, on: Literal["params", "macs"] = "params") -> tuple[Stratum, ...]:
    """Every attention model with every CNN whose parameters or MACs differ by 15 % at most, in each condition in which
    the study asks for both at all of `shares`.

    Raises Blocked where there is none, or where no run of such a model tells them.
    """
    sides = [_counts(evidence, family, on) for family in ("attention", "convolution")]
    apart = {(a, b): max(m, n) / min(m, n) - 1 for a, m in sides[0].items() for b, n in sides[1].items()}
    matched = [pair for pair, by in apart.items() if by <= MATCH]
    if not matched:
        closest = min(apart, key=lambda pair: (apart[pair], pair))
        raise Blocked(f"No attention model matches a CNN within {MATCH:.0%} of its {on}; the closest, "
                      f"{' and '.join(closest)}, differ by {apart[closest]:.0%}")
    return evidence.strata(matched, shares)


def matched_architectures(evidence: Evidence, *sizes: str,
                          attention: tuple[str, ...] = ()) -> tuple[tuple[Sizes, Sizes], ...]:
    """Every architecture of attention with every one of convolution, whose parameters differ by 15 % at most at each
    of `sizes`, sorted; that of attention also has the sizes `attention`.

    Raises Blocked where there is none, or where no run tells the parameters.
    """
    sides = (architectures(evidence, "attention", *sizes, *attention),
             architectures(evidence, "convolution", *sizes))
    pairs = tuple((a, b) for a, b in product(*sides)
                  if all(_apart(evidence, a[size], b[size]) <= MATCH for size in sizes))
    if not pairs:
        raise Blocked(f"No architecture of attention matches one of convolution within {MATCH:.0%} of its parameters "
                      f"at the size {' and '.join(sizes)}")
    return pairs


def architectures(evidence: Evidence, family: str, *sizes: str) -> tuple[Sizes, ...]:
    """The models of a family that the study has at all of `sizes`: one and the same but for the size.

    Raises Blocked where there is none, or where two labels are one model of one size with the same options.
    """
    found: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for label, facts in sorted(evidence.models.items()):
        if facts.family == family and facts.size is not None:
            of = found[facts.model, canonical_json(dict(facts.options))]
            if facts.size in of:
                raise Blocked(f"{of[facts.size]} and {label} are one model of one size with the same options: nobody "
                              "knows which of them the claim means")
            of[facts.size] = label
    whole = tuple(of for _, of in sorted(found.items()) if set(sizes) <= set(of))
    if not whole:
        raise Blocked(f"The study has no model of the family {family} at the size {' and '.join(sizes)}")
    return whole


def named(evidence: Evidence, name: str) -> tuple[str, ...]:
    """The labels of the models of this name, sorted. Raises Blocked where there is none."""
    found = tuple(sorted(label for label, of in evidence.models.items() if split_version(of.model)[0] == name))
    if not found:
        raise Blocked(f"The study has no model {name!r}")
    return found


def variants(evidence: Evidence, option: str, *values: Any, **fixed: Any) -> tuple[tuple[str, ...], ...]:
    """Groups of labels that are alike but for `option`, which has `values` in turn; all have the options of `fixed`.

    Alike are model, size, every other option, and the recipe in the default setting. Raises Blocked where there is
    none.
    """
    alike: defaultdict[str, dict[Any, str]] = defaultdict(dict)
    for label, facts in sorted(evidence.models.items()):
        value = facts.full_options.get(option, _MISSING)
        if value in values and all(facts.full_options.get(key) == wanted for key, wanted in fixed.items()):
            alike[_but_for(option, facts)].setdefault(value, label)
    whole = tuple(tuple(of[value] for value in values) for _, of in sorted(alike.items()) if set(values) <= set(of))
    if not whole:
        told = "".join(f", {key} {value}" for key, value in fixed.items())
        raise Blocked(f"The study has no models that are alike but for {option}, one each of "
                      f"{', '.join(map(str, values))}{told}")
    return whole


def _but_for(option: str, facts: ModelFacts) -> str:
    others = {key: value for key, value in facts.full_options.items() if key != option}
    return canonical_json([facts.model, facts.size, others, facts.recipe.model_dump(mode="json")])


def _apart(evidence: Evidence, a: str, b: str) -> float:
    """By how much the parameters of two labels differ, as a share of the smaller number."""
    counts = [evidence.models[label].params for label in (a, b)]
    if None in counts:
        raise Blocked(f"No run of {a if counts[0] is None else b} tells its parameters, so nobody knows what matches "
                      "it")
    return max(counts) / min(counts) - 1  # type: ignore[type-var, operator]


def _counts(evidence: Evidence, family: str, on: Literal["params", "macs"]) -> dict[str, int]:
    counts = {label: getattr(facts, on) for label, facts in evidence.models.items() if facts.family == family}
    if not counts:
        raise Blocked(f"The study has no model of the family {family}, so there is no pair")
    unknown = sorted(label for label, count in counts.items() if count is None)
    if unknown:
        raise Blocked(f"No run of {', '.join(unknown)} tells its {on}, so nobody knows what matches it")
    return counts


