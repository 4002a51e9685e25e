"""Each promise of a model can be broken, and is then named."""

import numpy as np
import pytest
import torch
from torch import nn

from vitbench.spec import ImageSpec
from vitbench.training.conformance import PROMISES, BrokenPromise

IMAGE = ImageSpec(8, 1)


class Around(nn.Module):
    """A linear model with something wrong about it."""

    def __init__(self, image: ImageSpec, num_classes: int, fault: str) -> None:
        super().__init__()
        self.fault, self.linear = fault, nn.Linear(image.channels * image.size**2, num_classes)
        if fault == "unused parameter":
            self.idle = nn.Parameter(torch.zeros(3))
        if fault == "own chance":
            self.linear.weight.data += float(np.random.default_rng().random())
        if fault == "needs data":
            self.linear.weight.data *= self.linear.weight.std().item()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits = self.linear(images.flatten(1))
        return {"a tuple": lambda: (logits,), "one class too few": lambda: logits[:, 1:],
                "not finite": lambda: logits / 0, "looks at the batch": lambda: logits - logits.mean(0),
                }.get(self.fault, lambda: logits)()


def test_a_sound_model_keeps_all() -> None:
    for promise in PROMISES:
        promise(lambda image, classes: Around(image, classes, "none"), IMAGE)


@pytest.mark.parametrize(("fault", "promise", "message"), [
    ("a tuple", "gives_finite_logits", "found tuple"),
    ("one class too few", "gives_finite_logits", r"shape \(3, 7\) .* found \(3, 6\)"),
    ("not finite", "gives_finite_logits", "found infinite"),
    ("unused parameter", "trains_all_parameters", "without a finite gradient: idle"),
    ("own chance", "draws_weights_from_torch", r"other weights the second time: linear\.weight"),
    ("looks at the batch", "judges_an_image_alone", "alone and in a batch"),
    ("needs data", "is_countable", "meta"),
])
def test_a_broken_promise_is_named(fault: str, promise: str, message: str) -> None:
    with pytest.raises((BrokenPromise, RuntimeError), match=message):
        next(p for p in PROMISES if p.__name__ == promise)(lambda i, c: Around(i, c, fault), IMAGE)


def test_a_model_without_parameters_has_nothing_to_train() -> None:
    with pytest.raises(BrokenPromise, match="found none"):
        PROMISES[1](lambda image, classes: nn.Sequential(nn.Flatten()), IMAGE)
