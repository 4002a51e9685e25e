"""What a run changes in its process is taken back, for in tests it is not the last thing that the process does."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _own_arithmetic() -> Iterator[None]:
    yield
    torch.set_flush_denormal(False)
    torch.use_deterministic_algorithms(False)
