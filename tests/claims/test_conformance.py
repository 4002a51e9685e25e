"""Every claim of the registry keeps the promises that a user's file is held to."""

from collections.abc import Callable
from functools import partial

import pytest

from vitbench.claims import CLAIMS, judge
from vitbench.verdicts.conformance import PROMISES

PLANTED = [name for name in CLAIMS.shipped() if CLAIMS.get(name).meta.planted]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", PLANTED)
def test_a_claim_keeps_every_promise(name: str, promise: Callable[..., None]) -> None:
    promise(partial(judge, name), CLAIMS.get(name).meta.planted)


def test_there_are_claims_to_hold() -> None:
    assert "attention_overtakes_with_enough_data" in PLANTED
