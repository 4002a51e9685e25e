"""What a test needs beyond Python: a missing program skips it, or fails it where the program is required."""

import os
import shutil

import pytest


def require_program(name: str) -> str:
    """Path of `name`. Skips with the reason where it is missing, fails where VITBENCH_REQUIRE lists it."""
    path = shutil.which(name)
    if path is not None:
        return path
    if name in os.environ.get("VITBENCH_REQUIRE", "").replace(" ", "").split(","):
        pytest.fail(f"{name} is not installed and VITBENCH_REQUIRE lists it")
    pytest.skip(f"{name} is not installed")
