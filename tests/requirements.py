"""What a test needs beyond Python: what is missing skips it, or fails it where it is required."""

import os
import shutil
from pathlib import Path

import pytest

DATASETS = Path("/usr/share/datasets")  # of Debian's packages dataset-NAME


def require_program(name: str) -> str:
    """Path of `name`. Skips with the reason where it is missing, fails where VITBENCH_REQUIRE lists it."""
    return _required(name, shutil.which(name))


def require_dataset(name: str) -> Path:
    """Folder of Debian's package dataset-`name`. Skips or fails as `require_program` does."""
    folder = DATASETS / name
    return Path(_required(name, str(folder) if folder.is_dir() else None))


def _required(name: str, path: str | None) -> str:
    if path is not None:
        return path
    if name in os.environ.get("VITBENCH_REQUIRE", "").replace(" ", "").split(","):
        pytest.fail(f"{name} is not installed and VITBENCH_REQUIRE lists it")
    pytest.skip(f"{name} is not installed")
