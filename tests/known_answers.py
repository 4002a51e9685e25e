"""Known answers of vectors.json, computed by code that shares nothing with vitbench."""

import json
from pathlib import Path
from typing import Any

import pytest

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))["vectors"]


def known(kind: str) -> list[Any]:
    """Parameters for `pytest.mark.parametrize("vector", known(kind))`. Raises LookupError where there are none."""
    found = [pytest.param(v, id=v["id"].partition("/")[2]) for v in VECTORS if v["kind"] == kind]
    if not found:
        raise LookupError(f"vectors.json has no {kind!r}")
    return found


def agrees(found: Any, vector: dict[str, Any], key: str) -> bool:
    """|found - expected| <= tolerance * max(1, |expected|); values that are no numbers must be equal.

    Lists item by item; "inf" and "-inf" are strings in the file.
    """
    expected = vector["expected"][key]
    if isinstance(expected, list):
        items = [{**vector, "expected": {key: item}} for item in expected]
        return len(found) == len(items) and all(agrees(*pair, key) for pair in zip(found, items, strict=True))
    if expected in ("inf", "-inf"):
        return bool(found == float(expected))
    if found is None or not isinstance(expected, int | float) or isinstance(expected, bool):
        return bool(found == expected)
    return bool(abs(found - expected) <= vector["tolerance"] * max(1, abs(expected)))
