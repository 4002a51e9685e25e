"""Verdicts as people and programs read them: Markdown, JSON, CSV."""

import json as json_module
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.report.render import csv_text, markdown_text, rounded
from vitbench.stats import Interval
from vitbench.stats.multiplicity import holm
from vitbench.verdicts import Leg, Verdict
from vitbench.verdicts.evidence import ALPHA
from vitbench.verdicts.verdict import UNANCHORED

MOST_FALSE = 0.05  # share of simulated studies of two identical models that may give `holds`


@dataclass(frozen=True)
class Judged:
    """A claim's verdict on one study, with what a citation names (protocol rule 30)."""

    study: str
    claim: str
    verdict: Verdict
    identity: tuple[str, str, str]  # code versions, numerics, content hash

    def data(self, holm_p: float | None = None) -> dict[str, Any]:
        """One object, null for what there is not; derived numbers with 6 significant digits. `holm_p` is the verdict's
        t p, adjusted over all that were judged beside it."""
        verdict = self.verdict
        entry = CLAIMS.get(self.claim) if self.claim in CLAIMS.names() else None
        return {"study": self.study, "claim": self.claim, "sentence": entry.meta.sentence if entry else None,
                "verdict": verdict.outcome, "marks": list(verdict.marks), "reason": verdict.sentence,
                **_measured(verdict),
                "t_p": rounded(verdict.t_p), "holm_p": rounded(holm_p),
                "margin": entry.meta.margin if entry else None, "unit": entry.meta.unit if entry else None,
                "would_change_it": _would_change(verdict, entry.meta if entry else None),
                "strata_level": rounded(verdict.level_of_parts),
                "strata": [{"name": part.name, "shows": part.shows, "mean": rounded(part.interval.mean),
                            "low": rounded(part.interval.low), "high": rounded(part.interval.high)}
                           for part in verdict.parts],
                "legs": [{"name": leg.name, "verdict": leg.outcome, "reason": leg.sentence, **_measured(leg)}
                         for leg in verdict.legs],
                "controls_run": list(verdict.controls_run), "controls_missing": list(verdict.controls_missing),
                "run_ids": list(verdict.run_ids), "claim_sha256": entry.plugin_sha256 if entry else None,
                **dict(zip(("code_version", "numerics", "content_sha256"), self.identity, strict=True))}


def json(judged: Sequence[Judged]) -> str:
    """An array of objects, one a study and claim, null for missing."""
    return json_module.dumps(_data(judged), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def csv(judged: Sequence[Judged]) -> str:
    """One line a study and claim; lists as JSON, missing as empty."""
    header = list(Judged("", "", Verdict(outcome="blocked", sentence=""), ("", "", "")).data())
    return csv_text(header, [[json_module.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
                              for value in each.values()] for each in _data(judged)])


def markdown(judged: Sequence[Judged]) -> str:
    """A section a study and claim: the sentence, the verdict with its reason, and what it rests on. Then what all of
    them together mean."""
    found = _data(judged)
    return "\n".join([*(_section(each) for each in found), *_together(found)])


def _data(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Of each, with Holm's adjustment over all that a test was made for (protocol rule 21)."""
    tested = [each.verdict.t_p for each in judged if each.verdict.t_p is not None]
    adjusted = iter(holm(tested) if tested else ())
    return [each.data(None if each.verdict.t_p is None else float(next(adjusted))) for each in judged]


def _together(found: Sequence[dict[str, Any]]) -> list[str]:
    """How many false verdicts to expect, and what survives Holm over all."""
    tested = [each for each in found if each["t_p"] is not None]
    if len(tested) < 2:
        return []
    holding = [each for each in tested if each["verdict"] == "holds"]
    surviving = [f"{each['study']}: {each['claim']}" for each in holding if each["holm_p"] <= ALPHA]
    text = (f"{len(tested)} of these verdicts rest on a test over seeds. If none of their claims were true, "
            f"{MOST_FALSE:g} of them at most, {MOST_FALSE * len(tested):.2g} in all, would be expected to hold by "
            "chance (docs/statistics.md). ")
    if holding:
        text += (f"Of the {len(holding)} that hold, {len(surviving)} survive Holm over all {len(tested)} by their t p"
                 f"{': ' * bool(surviving)}{'; '.join(surviving)}.")
    return ["## All together", "", markdown_text(text), ""]


def _would_change(verdict: Verdict, meta: ClaimMeta | None) -> str:
    """What would have to be found for another verdict."""
    equivalence = meta is not None and meta.planted is not None and meta.planted.equivalence
    if meta is not None and meta.planted is not None and meta.planted.exact and verdict.outcome in ("holds", "fails"):
        return "another result of the probe: it is exact, and asks for no seeds"
    elsewhere = "over more seeds or in another stratum"
    reached = "the margin" if equivalence else "0 or a mean below the margin"
    found = {
        "holds": f"an interval that reaches {reached}, {elsewhere}",
        "fails": f"an interval that {'ends below' if equivalence else 'reaches'} the margin, {elsewhere}",
        "depends": "no number of seeds: the strata differ, and are claims of their own",
        "exploratory": "a study of its own whose seeds are fixed beforehand",
    }.get(verdict.outcome, "what the reason names")
    if verdict.outcome in ("holds", "fails") and verdict.controls_missing:
        found += f"; a control that is missing: {', '.join(verdict.controls_missing)}"
    return found + ("; an anchor below its band" if UNANCHORED in verdict.marks and verdict.effect else "")


def _measured(verdict: Verdict | Leg) -> dict[str, Any]:
    """The effect with its interval, null where there was nothing to compute it from."""
    effect = verdict.effect or Interval(0.0, None, None, None, 0)
    return {"effect": rounded(effect.mean) if verdict.effect else None, "low": rounded(effect.low),
            "high": rounded(effect.high), "level": rounded(verdict.level),
            "over": effect.over if verdict.effect else None, "n": effect.n, "sign_flip_p": rounded(verdict.p)}


def _section(found: dict[str, Any]) -> str:
    lines = [f"## {markdown_text(found['study'])}: {markdown_text(found['claim'])}", ""]
    if found["sentence"]:
        lines += [markdown_text(found["sentence"]), ""]
    marks = f" ({', '.join(found['marks'])})" if found["marks"] else ""
    lines += [f"**{found['verdict']}**{marks}: {markdown_text(found['reason'])}.", ""]
    facts = []
    if found["effect"] is not None:
        facts.append(_effect(found))
    if found["holm_p"] is not None:
        facts.append(f"t p {found['t_p']:.3g} of what it takes to hold; by Holm over all verdicts here "
                     f"{found['holm_p']:.3g}")
    facts.append(f"would change it: {found['would_change_it']}")
    facts += [_leg_text(leg) for leg in found["legs"]]
    facts += [_stratum(part, found) for part in found["strata"]]
    facts += [f"controls {what}: {', '.join(found[f'controls_{what}'])}" for what in ("run", "missing")
              if found[f"controls_{what}"]]
    facts.append(f"runs: {' '.join(found['run_ids']) or 'none'}")
    if found["claim_sha256"]:
        facts.append(f"the claim is a file of the study's own, SHA-256 {found['claim_sha256']}")
    facts.append(f"vitbench {found['code_version']}; numerics {found['numerics']}; content SHA-256 "
                 f"{found['content_sha256']}")
    return "\n".join([*lines, *(f"- {markdown_text(fact)}" for fact in facts)]) + "\n"


def _effect(found: dict[str, Any]) -> str:
    level = "" if found["low"] is None else f", {100 * found['level']:.4g} % interval over {found['over']}"
    test = "" if found["sign_flip_p"] is None else f"; sign-flip p {found['sign_flip_p']:.3g}"
    return (f"effect: {_numbers(found['effect'], found['low'], found['high'])}{level}, n = {found['n']}; margin "
            f"{found['margin']:g}{test}; {found['unit']}")


def _leg_text(leg: dict[str, Any]) -> str:
    numbers = "" if leg["effect"] is None else f" {_numbers(leg['effect'], leg['low'], leg['high'])}, n = {leg['n']};"
    outcome = f" {leg['verdict']}:" if leg["verdict"] else ""
    return f"{leg['name']}:{numbers}{outcome} {leg['reason']}"


def _stratum(part: dict[str, Any], found: dict[str, Any]) -> str:
    if len(found["strata"]) == 1:
        return f"stratum: {part['name']}"
    alone = {None: "", "neither": ", alone neither holds nor fails"}.get(part["shows"], f", alone {part['shows']}")
    return (f"stratum: {part['name']}: {_numbers(part['mean'], part['low'], part['high'])}, "
            f"{100 * found['strata_level']:.4g} %{alone}")


def _numbers(mean: float, low: float | None, high: float | None) -> str:
    return f"{mean:+.3g}" if low is None else f"{mean:+.3g} [{low:+.3g}, {high:+.3g}]"
