"""Models: one light entry a file; torch is imported only when one is built."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from vitbench import cost
from vitbench.cost import Footprint, ModelCost
from vitbench.options import BadOption, NoOptions, validated
from vitbench.registry import PluginError, Registry, UnknownName, nearest
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn

Family = Literal["attention", "convolution", "hybrid", "control"]


class ModelError(ValueError):
    """A model that cannot be built as asked; the message names the option and what is allowed."""


Card = dict[str, str | int | float | bool | None]


def _takes_all_images(_options: Any, _image: ImageSpec) -> None:
    """For models that take any size."""


def _no_parts(_options: Any, _image: ImageSpec) -> Card:
    """For models without stem, patches or normalisation."""
    return {}


def _nothing_smaller(_options: Any, _image: ImageSpec) -> Iterable[Mapping[str, Any]]:
    """For models that cannot say what would cost less."""
    return ()


@dataclass(frozen=True)
class ModelMeta:
    """What is known about a model without building it.

    `sizes` maps xs..xl to option values; `check` raises ModelError where the options do not fit the images;
    `card` gives what protocol rule 8 asks for: stem, stride, patch, tokens, normalisation. `family_of` tells the
    family where options change it. `regularisers` names the options that are off at 0 and in regime `none`.
    `smaller` gives changes of options that cost less time and memory, nearest first: what a refusal proposes. `imports`
    are modules that building it imports: workers share one import.
    """

    family: Family
    version: int = 1
    options: type[Frozen] = NoOptions
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    check: Callable[[Any, ImageSpec], None] = _takes_all_images
    card: Callable[[Any, ImageSpec], Card] = _no_parts
    family_of: Callable[[Any], Family] | None = None
    regularisers: tuple[str, ...] = ()
    smaller: Callable[[Any, ImageSpec], Iterable[Mapping[str, Any]]] = _nothing_smaller
    imports: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        families = get_args(Family)
        if self.family not in families:
            raise PluginError(f"family: should be one of {', '.join(families)}; found {self.family!r}."
                              f"{nearest(self.family, families)}")

    def family_with(self, options: Any) -> Family:
        """The family of the model with these options."""
        return self.family if self.family_of is None else self.family_of(options)

    def regularisers_in(self, options: Any) -> dict[str, float]:
        """Those that are on, by option."""
        return {name: amount for name in self.regularisers if (amount := getattr(options, name))}


MODELS: Registry[ModelMeta] = Registry("model", "vitbench.models")


def resolve(name: str, size: str | None, options: Mapping[str, Any]) -> tuple[Frozen, dict[str, Any]]:
    """The model's options in full, and those that differ from its size's own (they name the run).

    Raises ModelError for a size or option the model does not have.
    """
    meta = MODELS.get(name).meta
    if size is None and meta.sizes:
        raise ModelError(f"size: {name!r} comes in {', '.join(meta.sizes)}; write {name}:{next(iter(meta.sizes))}")
    if size is not None and size not in meta.sizes:
        raise ModelError(f"size: {name!r} comes in {', '.join(meta.sizes) or 'one size'}; found {size!r}")
    try:
        return validated(name, meta.options, meta.sizes[size] if size else {}, options)
    except BadOption as error:
        raise ModelError(str(error)) from None


LEAST_TOKENS = 16


def default_patch_size(image: ImageSpec) -> int:
    """2 at 8 pixels, 4 at 28 and 32, 8 at 64: 16 tokens or more (protocol rule 8)."""
    return next((p for p in (8, 4, 2) if image.size % p == 0 and (image.size // p) ** 2 >= 49), 2)


def patch_sizes(image: ImageSpec) -> list[int]:
    """Those that cover the image with 16 tokens or more."""
    return [p for p in range(1, image.size + 1) if image.size % p == 0 and (image.size // p) ** 2 >= LEAST_TOKENS]


def check_patch_size(patch: int, image: ImageSpec) -> None:
    """Raise ModelError, naming the fitting ones, where patches do not cover the image or are fewer than 16."""
    fitting = patch_sizes(image)
    if patch not in fitting:
        raise ModelError(f"patch_size: should be one of {', '.join(map(str, fitting))} at {image.size} pixels "
                         f"({LEAST_TOKENS} tokens at least); found {patch}")


def build(name: str, size: str | None, options: Mapping[str, Any], image: ImageSpec, num_classes: int) -> "nn.Module":
    """A fresh torch module that maps images B x channels x size x size to logits B x classes.

    Its weights come from torch's global generator. Raises ModelError where it cannot take these images.
    """
    entry = MODELS.get(name)
    full, _ = resolve(name, size, options)
    entry.meta.check(full, image)
    builder = cast("Callable[..., nn.Module]", entry.build)
    return builder(image, num_classes, *([] if entry.meta.options is NoOptions else [full]))


def checked_cost(name: str, size: str | None, options: Mapping[str, Any], image: ImageSpec,
                 num_classes: int) -> ModelCost:
    """What the model costs, once it was seen to map images to logits in training and in evaluation.

    Runs it on the meta device: no memory, no arithmetic, no draw of weights. Raises ModelError with the shape that
    was found and the one that was wanted, or with the reason why the model cannot be built or run.
    """
    with _on_meta(name, size, options, image, num_classes) as model:
        return cost.count(lambda: model, image)


def checked_footprint(name: str, size: str | None, options: Mapping[str, Any], image: ImageSpec,
                      num_classes: int) -> Footprint:
    """The same with the memory that an image takes. Raises ModelError."""
    with _on_meta(name, size, options, image, num_classes) as model:
        return cost.footprint(model, image)


@contextmanager
def _on_meta(name: str, size: str | None, options: Mapping[str, Any], image: ImageSpec,
             num_classes: int) -> "Iterator[nn.Module]":
    """The model, checked; what fails inside is a ModelError, too."""
    import torch

    try:
        with torch.random.fork_rng(devices=[]):
            with torch.device("meta"), torch.no_grad():
                model = build(name, size, options, image, num_classes)
                for mode in ("training", "evaluation"):
                    images = torch.empty(2, image.channels, image.size, image.size)
                    logits = model.train(mode == "training")(images)
                    _refuse_other_shapes(f"{name!r} in {mode}", logits, (2, num_classes))
            if not any(p.requires_grad for p in model.parameters()):
                raise ModelError(f"name: {name!r} has no parameters to train")
            yield model
    except (ModelError, UnknownName):
        raise
    except Exception as error:
        shape = f"{image.size} x {image.size} x {image.channels}"
        raise ModelError(f"name: {name!r} fails on images of {shape} and {num_classes} classes: "
                         f"{type(error).__name__}: {error}") from error


def _refuse_other_shapes(what: str, output: Any, wanted: tuple[int, int]) -> None:
    import torch

    found = tuple(output.shape) if isinstance(output, torch.Tensor) else f"a {type(output).__name__}"
    if found != wanted:
        raise ModelError(f"name: {what} should map 2 images to logits of shape {wanted}, images x classes; found "
                         f"{found}")
