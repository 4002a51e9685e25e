"""Logits of images, a batch at a time."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 128


def logits(model: "Callable[[Tensor], Tensor]", images: "Tensor") -> "Tensor":
    """B x classes, without gradients. The model is in evaluation mode."""
    import torch

    with torch.no_grad():
        return torch.cat([model(part) for part in images.split(BATCH)])


def right(logits_BC: "Tensor", labels_B: npt.NDArray[np.int64]) -> float:
    """Share of images whose largest logit is that of their label."""
    predicted_B = logits_BC.argmax(dim=1).cpu().numpy()
    return float((predicted_B == labels_B).mean())
