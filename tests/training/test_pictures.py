"""The grid of augmented images."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from vitbench import datasets
from vitbench.config import DatasetEntry
from vitbench.training.pictures import CLASSES, DRAWS, picture


def cells(png: bytes, side: int) -> torch.Tensor:
    """Row x column x S x S, the grey lines between them taken out."""
    grid = torch.from_numpy(np.array(Image.open(BytesIO(png))))
    assert grid.shape == (CLASSES * (side + 1) + 1, (1 + DRAWS) * (side + 1) + 1)
    return torch.stack([torch.stack([grid[1 + r * (side + 1):, 1 + c * (side + 1):][:side, :side]
                                     for c in range(1 + DRAWS)]) for r in range(CLASSES)])


@pytest.mark.parametrize("regime", ["light", "strong"])
def test_a_row_shows_a_training_image_as_it_is_and_in_draws_that_differ(regime: str) -> None:
    arrays = datasets.load("digits")
    found = cells(picture(DatasetEntry(name="digits"), regime), 8)  # type: ignore[arg-type]
    for label, row in enumerate(found):
        first = arrays.train_images[arrays.train_labels == label][0, 0]
        assert torch.equal(row[0], torch.tensor(first))
        assert len({one.numpy().tobytes() for one in row[1:]}) > DRAWS // 2


@pytest.mark.parametrize("regime", ["none", "light", "strong"])
def test_the_same_bytes_each_time(regime: str) -> None:
    first = picture(DatasetEntry(name="digits"), regime)  # type: ignore[arg-type]
    torch.rand(5)
    assert picture(DatasetEntry(name="digits"), regime) == first  # type: ignore[arg-type]
    assert first.startswith(b"\x89PNG")
    assert len(first) < 100_000
