"""The decision rules of claims: G for differences, E for equivalence, D for what needs no seeds.

Each takes y of every seed and stratum and decides in the order that is written here. `blocked` comes before all that:
it is the claim's own or the evidence's (`Blocked`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from vitbench.stats import FEW_SEEDS, Interval
from vitbench.stats.power import MOST_SEEDS, seeds_needed
from vitbench.verdicts.contrast import TOLERANCE, Contrast
from vitbench.verdicts.verdict import Blocked, Leg, Outcome, Part, Unmeasured, Verdict


def rule_g(y: Contrast, *, margin: float) -> Verdict:
    """Is y `margin` or more? A stratum 'holds' where L > 0 and mean >= margin, 'fails' where U < margin.

    In order: `undecided` below six seeds; `depends` if one stratum holds and another fails, both at level 1 - alpha/K;
    `holds` if L > 0, mean >= margin, sign-flip p <= alpha, all stratum means > 0 and no stratum fails at that level;
    `fails` if U < margin and no stratum holds at that level; else `undecided`, with the seeds needed.
    """
    if y.few_seeds:
        return _few_seeds(y)
    parts = _parts(y, holds=lambda i: _shown(i, margin), fails=lambda i: _below(i, margin))
    holding, failing = _named(parts, "holds"), _named(parts, "fails")
    if holding and failing:
        return decided("depends", f"Holds in {'; '.join(holding)}; fails in {'; '.join(failing)}", y, parts)
    lacking = _lacking(y, margin, parts)
    if not lacking:
        return decided("holds", _numbers(y, margin), y, parts)
    if _below(y.interval, margin) and not holding:
        return decided("fails", f"The interval ends below the margin of {margin:g}", y, parts)
    return decided("undecided", f"{_sentence(lacking)}. {_what_would_change_it(y, margin)}", y, parts)


def rule_e(y: Contrast, *, margin: float) -> Verdict:
    """Is the harm or loss y below `margin`? A stratum 'holds' where U < margin, 'fails' where L > 0, mean >= margin.

    In order: `undecided` below six seeds; `depends` as in rule G; `holds` if U < margin in every stratum at level
    1 - alpha; `fails` if L > 0, mean >= margin and sign-flip p <= alpha; else `undecided`, with the seeds needed.
    """
    if y.few_seeds:
        return _few_seeds(y)
    parts = _parts(y, holds=lambda i: _below(i, margin), fails=lambda i: _shown(i, margin))
    holding, failing = _named(parts, "holds"), _named(parts, "fails")
    if holding and failing:
        return decided("depends", f"Holds in {'; '.join(holding)}; fails in {'; '.join(failing)}", y, parts)
    wide = [one.strata[0] for one in y.alone if not _below(one.interval, margin)]
    t_p = max(one.t_p(margin) if one.interval.mean < margin else 1.0 for one in y.alone)
    if not wide:
        found = decided("holds", f"The interval ends below the margin of {margin:g} in every stratum", y, parts)
    elif _shown(y.interval, margin) and y.p <= y.alpha:
        found = decided("fails", _numbers(y, margin), y, parts)
    else:
        found = decided("undecided", f"The interval reaches the margin of {margin:g} in {'; '.join(wide)}. "
                                     f"{_what_would_change_it(y, margin)}", y, parts)
    return replace(found, t_p=t_p)


def rule_d(facts: Mapping[str, bool]) -> Verdict:
    """`holds` if every one of the named facts is true; else `fails`, naming those that are not. Exact: no seeds.

    Raises ValueError without a fact.
    """
    if not facts:
        raise ValueError("rule D needs a fact at least; found none")
    untrue = [name for name, true in facts.items() if not true]
    if untrue:
        return Verdict(outcome="fails", sentence=f"Not so: {'; '.join(untrue)}")
    return Verdict(outcome="holds", sentence=_sentence(list(facts)))


def decided(outcome: Outcome, sentence: str, y: Contrast, parts: tuple[Part, ...] = ()) -> Verdict:
    """A verdict that rests on the contrast y, for what a claim decides by itself: blocked(...) on its own grounds."""
    parts = parts or tuple(Part(name, i) for name, i in zip(y.strata, y.of_strata, strict=True))
    return Verdict(outcome=outcome, sentence=sentence, effect=y.interval, level=1 - y.alpha,
                   p=None if y.few_seeds else y.p, t_p=None if y.few_seeds else _p_of_holding(y), parts=parts,
                   run_ids=y.run_ids)


def _p_of_holding(y: Contrast) -> float:
    """Of 'the mean is 0', where it lies on the side of the claim."""
    return y.t_p() if y.interval.mean > 0 else 1.0


def described(name: str, sentence: str, y: Contrast) -> Leg:
    """A contrast that stands beside what decides."""
    return Leg(name=name, sentence=sentence, effect=y.interval, level=1 - y.alpha, p=None if y.few_seeds else y.p,
               run_ids=y.run_ids)


def beside(name: str, sentence: str, contrast: Callable[[], Contrast]) -> Leg:
    """The same of a contrast that decides nothing and may lack what it takes: then the leg says what."""
    try:
        return described(name, sentence, contrast())
    except (Blocked, Unmeasured) as why:
        return Leg(name=name, sentence=str(why))


def undecided(sentence: str, y: Contrast, *, margin: float) -> Verdict:
    """A verdict of a claim's own that is not shown either way, with the seeds that an interval of +- margin/2 takes."""
    return decided("undecided", f"{sentence}. {_what_would_change_it(y, margin)}", y)


def _few_seeds(y: Contrast) -> Verdict:
    return decided("undecided", f"{y.n} seed{'s' * (y.n > 1)}: a verdict needs {FEW_SEEDS} or more, the same for every "
                                "model", y)


def _shown(interval: Interval, margin: float) -> bool:
    """L > 0 and mean >= margin."""
    return interval.low is not None and interval.low > 0 and interval.mean >= margin - TOLERANCE


def _below(interval: Interval, margin: float) -> bool:
    """U < margin."""
    return interval.high is not None and interval.high < margin - TOLERANCE


def _parts(y: Contrast, *, holds: Callable[[Interval], bool], fails: Callable[[Interval], bool]) -> tuple[Part, ...]:
    return tuple(Part(name, i, "holds" if holds(i) else "fails" if fails(i) else "neither")
                 for name, i in zip(y.strata, y.of_strata, strict=True))


def _named(parts: tuple[Part, ...], shows: str) -> list[str]:
    return [part.name for part in parts if part.shows == shows]


def _lacking(y: Contrast, margin: float, parts: tuple[Part, ...]) -> list[str]:
    """What rule G's `holds` asks for and does not find, in its order."""
    mean, low = y.interval.mean, y.interval.low
    assert low is not None
    not_above = [part.name for part in parts if part.interval.mean <= TOLERANCE]
    failing = _named(parts, "fails")
    return [text for text, lacks in (
        (f"the interval begins at {low:.3g}, not above 0", low <= 0),
        (f"the mean is {mean:.3g}, below the margin of {margin:g}", mean < margin - TOLERANCE),
        (f"the sign-flip p is {y.p:.3g}, above {y.alpha:.3g}", y.p > y.alpha),
        (f"the mean is not above 0 in {'; '.join(not_above)}", bool(not_above)),
        (f"it fails in {'; '.join(failing)}", bool(failing)),
    ) if lacks]


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def _numbers(y: Contrast, margin: float) -> str:
    return (f"The mean is {y.interval.mean:.3g}, not below the margin of {margin:g}, the interval lies above 0, "
            f"and the sign-flip p is {y.p:.3g}")


def _what_would_change_it(y: Contrast, margin: float) -> str:
    """Seeds needed for an interval of +- margin/2 (protocol rule 22), or why seeds would not narrow it to that."""
    assert y.interval.sd is not None
    wanted = f"an interval of +- {margin / 2:g}"
    if y.half_width_of_images > margin / 2:
        return f"No number of seeds gives {wanted}: it takes more test images"
    needed = seeds_needed(y.interval.sd, y.n, margin / 2)
    if needed is None:
        return f"{wanted.capitalize()} would take more than {MOST_SEEDS:,} seeds"
    if needed <= y.n:
        why = "the effect itself lies close" if y.interval.over == "seeds" else "the test images make it wider"
        return f"{wanted.capitalize()} takes {needed} seeds, which are there: {why}"
    return f"{wanted.capitalize()} would take about {needed} seeds"
