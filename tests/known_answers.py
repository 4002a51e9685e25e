"""Known answers of vectors.json, computed by code that shares nothing with vitbench."""

import json
from pathlib import Path
from typing import Any

import pytest

_VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))["vectors"]


def known(kind: str) -> list[Any]:
    """Parameters for `pytest.mark.parametrize("vector", known(kind))`. Raises LookupError where there are none."""
    found = [pytest.param(v, id=v["id"].partition("/")[2]) for v in _VECTORS if v["kind"] == kind]
    if not found:
        raise LookupError(f"vectors.json has no {kind!r}")
    return found


def agrees(found: Any, vector: dict[str, Any], key: str) -> bool:
    """|found - expected| <= tolerance * max(1, |expected|); values that are no numbers must be equal."""
    expected = vector["expected"][key]
    if found is None or not isinstance(expected, int | float) or isinstance(expected, bool):
        return bool(found == expected)
    return bool(abs(found - expected) <= vector["tolerance"] * max(1, abs(expected)))
