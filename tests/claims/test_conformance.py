"""Every claim of the registry keeps the promises that a user's file is held to."""

from collections.abc import Callable
from functools import partial

import pytest

from vitbench.claims import CLAIMS, judge
from vitbench.verdicts.conformance import promises

HELD = [(name, promise) for name in CLAIMS.shipped() for promise in promises(CLAIMS.get(name).meta.planted)]


@pytest.mark.parametrize(("name", "promise"), HELD, ids=[f"{name}-{promise.__name__}" for name, promise in HELD])
def test_a_claim_keeps_every_promise(name: str, promise: Callable[..., None]) -> None:
    promise(partial(judge, name), CLAIMS.get(name).meta.planted)


def test_there_are_claims_to_hold() -> None:
    assert "attention_overtakes_with_enough_data" in {name for name, _ in HELD}
