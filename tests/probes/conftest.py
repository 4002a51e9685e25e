"""Studies trained once, and arithmetic that is taken back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.probes.trained_study import trained_study
from vitbench.study.folder import StudyFolder


@pytest.fixture(autouse=True)
def _own_arithmetic() -> Iterator[None]:
    yield
    torch.set_flush_denormal(False)
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """Two runs without weights. Not to be changed."""
    return trained_study(tmp_path_factory.mktemp("bare") / "results" / "tiny")


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """The same two runs with their weights. Not to be changed."""
    return trained_study(tmp_path_factory.mktemp("kept") / "results" / "tiny", keep=["weights"])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"
