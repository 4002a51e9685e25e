"""A timm model made to take small images: patches or a stem that fit, regularisers off, weights drawn anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import timm
import torch
from torch import Tensor, nn

from vitbench.nn.timm_published import (
    CannotFit,
    Stem,
    create,
    cuts_patches,
    on_meta,
    published,
    published_patch,
    reason_of,
    stem_of,
    takes,
)
from vitbench.spec import ImageSpec

LEAST_PLACES = 16
StemChoice = Literal["auto", "published", "small"]


@dataclass(frozen=True)
class Fit:
    """How a model is made to take images: what timm is told, and the stride that its stem gives up."""

    gives_up: int = 1  # 1: the published stem
    img_size: int | None = None  # timm sizes its tables for a published stem: image size x gives_up
    patch_size: int | None = None  # in pixels of `img_size`
    stride: int | None = None  # of patches that overlap

    @property
    def tokens(self) -> int | None:
        """Patches of an image where patches can be set. Raises CannotFit where pixels would go unseen."""
        if self.img_size is None or self.patch_size is None:
            return None
        rest, step = self.img_size - self.patch_size, self.stride or self.patch_size
        if rest % step:
            raise CannotFit(f"patches of {self.patch_size} pixels do not cover {self.img_size}")
        return int((rest // step + 1) ** 2)


def build(name: str, image: ImageSpec, num_classes: int, fit: Fit) -> nn.Module:
    """The model with weights from torch's global generator, without dropout or stochastic depth."""
    given = {} if fit.img_size is None else {"img_size": fit.img_size}
    patches = {k: v for k, v in (("patch_size", fit.patch_size), ("stride", fit.stride)) if v is not None}
    with _told(type(published(name, image.channels)), patches):
        model = create(name, image.channels, num_classes, given)
    if fit.gives_up > 1:
        stem = stem_of(name, image.channels)
        _make_small(model, stem if fit.gives_up > stem.stride else replace(stem, pool=None))
    switch_off_regularisers(model)
    return model


@lru_cache(maxsize=64)
def choose(name: str, image: ImageSpec, patch_size: int | None, default_patch: int, stem: StemChoice) -> Fit:
    """The first way that runs and leaves 16 places: the published stem, then the same with stride 1 and no pool, then
    with its pool; patches are the asked ones, else the published or the default ones, whichever are smaller, else
    halves and quarters of these, which a model that shrinks its images many times needs.

    Fewer than 16 tokens are refused; of convolutional stems that leave fewer places the finest is taken. Raises
    CannotFit.
    """
    reasons: list[str] = []
    coarse: list[tuple[int, Fit]] = []
    for fit in _ways(name, image, patch_size, default_patch, stem):
        try:
            left = places(name, image, fit)
        except CannotFit as reason:
            reasons.append(str(reason))
            continue
        if left is not None and left >= LEAST_PLACES:
            return fit
        if fit.patch_size is None and stem_of(name, image.channels).convolutions:
            coarse.append((left or 0, fit))
        reasons.append(f"{'an unknown number of' if left is None else left} tokens are left, not {LEAST_PLACES}")
    if not coarse:
        raise CannotFit(reasons[0])
    return max(coarse, key=lambda found: (found[0], found[1].gives_up))[1]


def _ways(name: str, image: ImageSpec, patch_size: int | None, default_patch: int, stem: StemChoice) -> Iterator[Fit]:
    taken, patch = takes(name, image.channels), published_patch(name, image.channels)
    if patch_size is not None and patch is None:
        raise CannotFit("patch_size: this model has no patches that can be set")
    coarse = stem_of(name, image.channels)
    small = dict.fromkeys(s for s in (coarse.stride * coarse.pool_stride, coarse.stride) if s > 1)
    if stem == "small" and not small:
        raise CannotFit("stem: the published one has nothing to make smaller; use auto or published")
    given_up = {"published": [1], "small": [*small], "auto": [1, *small]}[stem]
    for part, gives_up in product((1, 2, 4) if patch and patch_size is None else (1,), given_up):
        chosen = None
        if patch is not None:
            chosen = patch_size * gives_up if patch_size else max(1, min(patch, default_patch * gives_up) // part)
        yield Fit(gives_up, image.size * gives_up if "img_size" in taken else None, chosen,
                  max(1, chosen // 2) if chosen and "stride" in taken else None)


@lru_cache(maxsize=64)
def places(name: str, image: ImageSpec, fit: Fit) -> int | None:
    """Tokens of a model with patches, or places of the last feature map; None where timm does not tell.

    Runs the model on the meta device. Raises CannotFit.
    """
    tokens = fit.tokens
    with on_meta():
        model: Any = build(name, image, 2, fit).eval()
        _refuse_unseen_pixels(model, image)
        images = torch.empty(2, image.channels, image.size, image.size)
        try:
            features = model.forward_features(images)
            model.forward_head(features)
        except Exception as error:
            raise CannotFit(reason_of(error)) from error
    return tokens if tokens is not None else _places_of(model, features)


def _places_of(model: Any, features: object) -> int | None:
    if not isinstance(features, Tensor) or features.dim() not in (3, 4):
        return None
    if features.dim() == 3:
        return features.shape[1] - getattr(model, "num_prefix_tokens", 0)
    channels_first = features.shape[1] == getattr(model, "num_features", features.shape[1])
    return features[0, 0].numel() if channels_first else features[0, :, :, 0].numel()


def switch_off_regularisers(model: nn.Module) -> list[str]:
    """Set every dropout and stochastic depth of the model to 0 (protocol rule 8); the names of those that were on."""
    were_on = []
    for place, module in model.named_modules():
        for attribute, value in vars(module).items():
            is_one = "drop" in attribute or (attribute == "p" and "Dropout" in type(module).__name__)
            if is_one and isinstance(value, float) and value > 0:
                were_on.append(f"{place}.{attribute}".removeprefix("."))
                setattr(module, attribute, 0.0)
    return were_on


def describe(name: str, image: ImageSpec, fit: Fit) -> dict[str, str | int | float | bool | None]:
    """What protocol rule 8 asks for: stem, stride, patch, tokens or places at the end, normalisation."""
    with on_meta():
        model = build(name, image, 2, fit)
    norms = {type(m).__name__.replace("Act2d", "").replace("Act", "").removesuffix("2d") for m in model.modules()
             if "Norm" in type(m).__name__ and any(True for _ in m.parameters(recurse=False))}
    patch = {} if fit.patch_size is None else {"patch": fit.patch_size // fit.gives_up}
    left = places(name, image, fit)
    return {**_stem_card(model, name, image, fit), **patch, "tokens" if patch else "places_at_the_end": left,
            "normalisation": ", ".join(sorted(norms)) or "none", "timm": timm.__version__}


def _stem_card(model: nn.Module, name: str, image: ImageSpec, fit: Fit) -> dict[str, str | int]:
    first = next((m for m in model.modules() if isinstance(m, nn.Conv2d)), None)
    stem = stem_of(name, image.channels)
    if first is None or (fit.patch_size is not None and not stem.convolutions):
        return {"stem": "none"}
    pool = ", then a pool" if stem.pool and fit.gives_up <= stem.stride else ""
    stride = stem.stride * stem.pool_stride // fit.gives_up if stem.convolutions else first.stride[0]
    height, width = first.kernel_size
    return {"stem": f"{height}x{width} convolution{pool}", "stride": stride}


def _make_small(model: nn.Module, stem: Stem) -> None:
    """Give the first convolutions stride 1 and take the pool out; the weights keep their shapes."""
    for name in stem.convolutions:
        convolution = model.get_submodule(name)
        assert isinstance(convolution, nn.Conv2d)
        if cuts_patches(convolution):  # has no padding: without some the image would shrink by more than its stride
            side = convolution.kernel_size[0]
            pad = nn.ZeroPad2d(((side - 1) // 2, side // 2) * 2)
            model.set_submodule(name, nn.Sequential(pad, convolution))
        convolution.stride = (1, 1)
    if stem.pool is not None:
        model.set_submodule(stem.pool, nn.Identity())


def _refuse_unseen_pixels(model: nn.Module, image: ImageSpec) -> None:
    first = next((m for m in model.modules() if isinstance(m, nn.Conv2d)), None)
    if first is not None and cuts_patches(first) and not any(first.padding) and image.size % first.stride[0]:
        raise CannotFit(f"patches of {first.stride[0]} pixels do not cover {image.size}")


@contextmanager
def _told(of: Any, arguments: dict[str, int]) -> Iterator[None]:
    """Within, the class is built with these arguments, whatever else timm's function of that name would give it:
    some of these functions refuse them, because they set them too."""
    plain = of.__init__

    def told(self: object, *args: object, **kwargs: object) -> None:
        plain(self, *args, **{**kwargs, **arguments})

    of.__init__ = told if arguments else plain
    try:
        yield
    finally:
        of.__init__ = plain
