"""`claims --expect FILE`: verdicts held against what a file says they are."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from vitbench.claims import CLAIMS
from vitbench.config.strict_yaml import YamlRefused, parse
from vitbench.registry import nearest
from vitbench.report.verdicts import Judged
from vitbench.verdicts.verdict import Outcome

OUTCOMES: tuple[str, ...] = get_args(Outcome)
MAX_BYTES = 256 * 1024
Expected = Mapping[tuple[str, str], tuple[str, ...]]
"""The outcomes that are right, by study and claim."""


class BadExpectation(ValueError):
    """A file of expected verdicts that is none; the message names the place and what is allowed."""


def read(path: Path, claims: Sequence[str]) -> Expected:
    """What the YAML or JSON file says: {study: {claim: outcome, or a list of outcomes}}.

    `claims` are those that may be meant beside those that ship. Raises BadExpectation.
    """
    try:
        with path.open("rb") as file:
            found = parse(file.read(MAX_BYTES).decode(), [])
    except (YamlRefused, UnicodeDecodeError) as error:
        raise BadExpectation(f"{path}: {error}") from None
    expected = {}
    for study, verdicts in _mapping(found, str(path), "{STUDY: {CLAIM: OUTCOME}}").items():
        for claim, outcomes in _mapping(verdicts, f"{path}: {study}", "{CLAIM: OUTCOME}").items():
            where, known = f"{path}: {study}.{claim}", sorted({*CLAIMS.shipped(), *claims})
            if claim not in known:
                raise BadExpectation(f"{where}: there is no such claim.{nearest(str(claim), known)}")
            listed = outcomes if isinstance(outcomes, list) else [outcomes]
            for outcome in listed or [None]:
                if outcome not in OUTCOMES:
                    raise BadExpectation(f"{where}: should be of {', '.join(OUTCOMES)}; found {outcome!r}."
                                         f"{nearest(str(outcome), OUTCOMES)}")
            expected[str(study), str(claim)] = tuple(listed)
    return expected


def _mapping(value: Any, where: str, form: str) -> dict[Any, Any]:
    if not isinstance(value, dict) or not value:
        raise BadExpectation(f"{where}: should be a mapping, {form}; found {value!r}")
    return value


def differences(judged: Sequence[Judged], expected: Expected) -> Iterator[str]:
    """A line for each verdict that is another than the file says, or that is not there."""
    found = {(each.study, each.claim): each.verdict.outcome for each in judged}
    for (study, claim), outcomes in expected.items():
        outcome = found.get((study, claim))
        if outcome is None:
            yield f"{study}: {claim}: expected {' or '.join(outcomes)}; it was not judged"
        elif outcome not in outcomes:
            yield f"{study}: {claim}: expected {' or '.join(outcomes)}; found {outcome}"
