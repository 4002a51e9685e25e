"""A run whose model stops giving finite numbers is found, wherever the number stands."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from vitbench import datasets, subset
from vitbench.spec import Recipe
from vitbench.streams import Streams
from vitbench.training.data import Resident
from vitbench.training.module import LARGEST_FLOAT16, Classifier


class Spoilt(nn.Module):
    """Logits of ten classes; those of the image whose first pixel is `where` are `value`."""

    def __init__(self, value: float, where: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.value, self.where, self.seen = value, where, 0

    def forward(self, x_BCSS: Tensor) -> Tensor:
        logits_BC = self.scale * x_BCSS.flatten(1)[:, :10]
        first = self.where - self.seen
        self.seen += len(logits_BC)
        if 0 <= first < len(logits_BC):
            logits_BC = logits_BC.clone()
            logits_BC[first, 0] = self.value
        return logits_BC


def classifier(value: float, where: int) -> Classifier:
    """Before its only step; image `where` in the order of evaluation (train, then test) is spoilt."""
    arrays = datasets.load("digits")
    wanted = subset.counts(datasets.DATASETS.get("digits").meta.train_counts, fraction="0.02")
    streams = Streams(0, 0, 0, 0)
    chosen = subset.draw(arrays.train_labels, wanted, streams.subset_rng())
    data = Resident(arrays, chosen, streams, Recipe(batch_size=8), torch.device("cpu"))
    made = Classifier(Spoilt(value, where), data, Recipe(), [0], lambda _: None)
    made.steps_done = 1
    return made


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("part", ["train", "test"])
def test_one_logit_that_is_not_finite_is_found_at_the_last_point(value: float, part: str) -> None:
    where = 0 if part == "train" else len(classifier(0.0, -1).data.train.labels_N) + 200
    module = classifier(value, where)
    # The sample that curves look at leaves the image out.
    module.data.parts = {name: replace(kept, sample=np.arange(1, 20)) for name, kept in module.data.parts.items()}
    assert not module._add_point(norm=1.0)
    assert module.points == []


def test_the_probe_can_pass() -> None:
    assert classifier(0.0, 0)._add_point(norm=1.0)


def test_a_finite_logit_beyond_float16_is_kept_at_its_largest() -> None:
    module = classifier(1e30, 0)
    logits_IC = module.logits(module.data.train)
    assert logits_IC[0, 0] == LARGEST_FLOAT16
    assert np.isfinite(logits_IC).all()
