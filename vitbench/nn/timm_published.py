"""A timm model as it was published: its patches, and what makes its stem coarse. Looked at on the meta device."""

import inspect
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import timm
import torch
from timm.layers.hybrid_embed import HybridEmbed
from torch import Tensor, nn

STEM_DEPTH = 3  # convolutions of the deepest published stems; a pool behind more of them is no part of the stem


class CannotFit(ValueError):
    """A model that cannot take these images. The message is one line, timm's own words where it has some."""


@dataclass(frozen=True)
class Stem:
    """What makes a published stem coarse: its first convolutions and a pool, with their strides."""

    convolutions: tuple[str, ...] = ()
    stride: int = 1
    pool: str | None = None
    pool_stride: int = 1


def create(name: str, channels: int, num_classes: int, given: dict[str, Any]) -> nn.Module:
    """What timm builds, its weights drawn anew. Raises CannotFit with timm's reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model: nn.Module = timm.create_model(name, pretrained=False, in_chans=channels, num_classes=num_classes,
                                                 **given)
        except Exception as error:
            raise CannotFit(reason_of(error)) from error
    return model


@contextmanager
def on_meta() -> Iterator[None]:
    """Shapes only: no memory, no arithmetic, and no draw from the generator that weights come from."""
    with torch.device("meta"), torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@lru_cache(maxsize=4)
def published(name: str, channels: int) -> Any:
    """The model as published but for its channels, on the meta device."""
    with on_meta():
        return create(name, channels, 2, {}).eval()


def takes(name: str, channels: int) -> set[str]:
    """Arguments of the model's class and of those that it passes the rest on to."""
    classes = type(published(name, channels)).__mro__
    return {parameter for of in classes for parameter in inspect.signature(of.__init__).parameters}  # type: ignore[misc]


def published_patch(name: str, channels: int) -> int | None:
    """The patch size of a model that cuts its images into patches whose size can be set; None where it has none, or
    where they are cut from a network's features."""
    model = published(name, channels)
    if not {"img_size", "patch_size"} <= takes(name, channels) or \
            any(isinstance(module, HybridEmbed) for module in model.modules()):
        return None
    found = (getattr(module, "patch_size", None) for module in model.modules())
    sizes = {side for size in found for side in (size if isinstance(size, tuple | list) else (size,))
             if isinstance(side, int)}
    if len(sizes) > 1 and isinstance(inspect.signature(type(model)).parameters["patch_size"].default, tuple):
        raise CannotFit(f"its branches cut patches of {' and '.join(map(str, sorted(sizes)))} pixels; "
                        "these cannot be set")
    return max(sizes, default=None)


@lru_cache(maxsize=64)
def stem_of(name: str, channels: int) -> Stem:
    """The parts of the published stem that a small image does not need. A first layer that embeds patches, in a model
    whose patches can be set, is no stem."""
    model = published(name, channels)
    named = model.pretrained_cfg.get("first_conv") or ()
    modules = dict(model.named_modules())
    first = {n: modules[n] for n in ((named,) if isinstance(named, str) else named)
             if isinstance(modules.get(n), nn.Conv2d)}
    strides = {conv.stride[0] for conv in first.values()}
    patch = published_patch(name, channels)
    if len(strides) != 1 or patch in {conv.kernel_size[0] for conv in first.values()}:
        return Stem()
    return Stem(tuple(first), strides.pop(), *_first_pool(model, channels))


def _first_pool(model: Any, channels: int) -> tuple[str | None, int]:
    """The outermost module without parameters that makes the image smaller behind the first convolutions."""
    names = {module: name for name, module in model.named_modules()}
    seen: list[tuple[nn.Module, int]] = []
    convolutions = 0

    def look(module: nn.Module, inputs: tuple[object, ...], output: object) -> None:
        nonlocal convolutions
        convolutions += isinstance(module, nn.Conv2d)
        before = inputs[0] if inputs else None
        if (0 < convolutions <= STEM_DEPTH and isinstance(before, Tensor) and isinstance(output, Tensor)
                and before.dim() == output.dim() == 4 and before.shape[1] == output.shape[1]
                and before.shape[3] > output.shape[3] > 1 and not any(True for _ in module.parameters())):
            seen.append((module, round(before.shape[3] / output.shape[3])))

    hooks = [module.register_forward_hook(look) for module in names]
    size = model.pretrained_cfg["input_size"][-1]
    try:
        with on_meta():
            model(torch.empty(1, channels, size, size))
    except Exception:
        seen.clear()  # it does not run even at its own size: `places` will tell why
    finally:
        for hook in hooks:
            hook.remove()
    if not seen:
        return None, 1
    pool, stride = seen[0]
    for (inner, _), (outer, outer_stride) in pairwise(seen):
        if not names[inner].startswith(f"{names[outer]}."):
            break
        pool, stride = outer, outer_stride
    return names[pool], stride


def cuts_patches(convolution: nn.Conv2d) -> bool:
    """True where a convolution looks at each pixel once."""
    return convolution.stride[0] > 1 and convolution.kernel_size == convolution.stride


def reason_of(error: Exception) -> str:
    """timm's words on one line, or where it has none the line of its code that refused."""
    lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if "/timm/" in frame.filename]
    words = " ".join(str(error).split()) or f"{type(error).__name__} at `{lines[-1] if lines else '?'}`"
    return words if len(words) <= 160 else f"{words[:159]}…"
