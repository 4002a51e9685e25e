"""What every model promises, checked on a built one; the models that ship and a user's file alike."""

from collections.abc import Callable

import torch
from torch import nn

from vitbench import cost
from vitbench.spec import ImageSpec

NUM_CLASSES = 7
IMAGES = tuple(ImageSpec(size, channels) for size in (8, 28, 32) for channels in (1, 3))
Build = Callable[[ImageSpec, int], nn.Module]


class BrokenPromise(ValueError):
    """What a model does instead of what it should."""


def gives_finite_logits(build: Build, image: ImageSpec) -> None:
    """Images B x channels x size x size become finite logits B x classes."""
    logits = _seeded(build, image)(_images(3, image))
    if not isinstance(logits, torch.Tensor):
        raise BrokenPromise(f"should give a tensor of logits; found {type(logits).__name__}")
    if logits.shape != (3, NUM_CLASSES):
        raise BrokenPromise(f"should give logits of shape (3, {NUM_CLASSES}) for 3 images and {NUM_CLASSES} classes; "
                            f"found {tuple(logits.shape)}")
    if not torch.isfinite(logits).all():
        raise BrokenPromise("should give finite logits; found infinite ones or NaN")


def trains_all_parameters(build: Build, image: ImageSpec) -> None:
    """Each parameter has a finite gradient."""
    model = _seeded(build, image)
    if not any(p.requires_grad for p in model.parameters()):
        raise BrokenPromise("should have parameters to train; found none")
    model(_images(3, image)).square().sum().backward()
    silent = [name for name, p in model.named_parameters() if p.grad is None or not torch.isfinite(p.grad).all()]
    if silent:
        raise BrokenPromise(f"should train every parameter; without a finite gradient: {', '.join(silent)}")


def draws_weights_from_torch(build: Build, image: ImageSpec) -> None:
    """The same state of torch's global generator gives the same weights, so that a run can be repeated."""
    first, second = (dict(_seeded(build, image).named_parameters()) for _ in range(2))
    other = [name for name in first if not torch.equal(first[name], second[name])]
    if other:
        raise BrokenPromise(f"should take all chance from torch's global generator; other weights the second time: "
                            f"{', '.join(other)}")


def judges_an_image_alone(build: Build, image: ImageSpec) -> None:
    """In evaluation an image's logits do not depend on the images beside it."""
    model, images = _seeded(build, image).eval(), _images(5, image)
    if not torch.allclose(model(images)[3:4], model(images[3:4]), rtol=1e-4, atol=1e-5):
        raise BrokenPromise("should give an image the same logits alone and in a batch, in evaluation mode")


def is_countable(build: Build, image: ImageSpec) -> None:
    """Parameters, multiply-adds and activations can be counted without data, on torch's meta device."""
    if cost.count(lambda: build(image, NUM_CLASSES), image).macs < 1:
        raise BrokenPromise("should have multiply-adds to count; found none")


PROMISES = (gives_finite_logits, trains_all_parameters, draws_weights_from_torch, judges_an_image_alone, is_countable)


def _seeded(build: Build, image: ImageSpec) -> nn.Module:
    torch.manual_seed(5)
    return build(image, NUM_CLASSES)


def _images(count: int, image: ImageSpec) -> torch.Tensor:
    return torch.randn(count, image.channels, image.size, image.size, generator=torch.Generator().manual_seed(0))
