"""A small study, done once and copied."""

import shutil
from pathlib import Path

import pytest

from tests.cli.driver import vitbench, write_study


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study of eight runs, done."""
    folder = tmp_path_factory.mktemp("finished")
    ended = vitbench("run", write_study(folder), cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "8 of 8" in ended.stdout
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy"
