"""Models: one light entry a file; torch is imported only when one is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import ValidationError

from vitbench.registry import Registry, nearest
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn

Family = Literal["attention", "convolution", "hybrid", "control"]


class ModelError(ValueError):
    """A model that cannot be built as asked; the message names the option and what is allowed."""


class NoOptions(Frozen):
    """The options of a model that has none."""


Card = dict[str, str | int | float | bool | None]


def _takes_all_images(_options: Any, _image: ImageSpec) -> None:
    """For models that take any size."""


def _no_parts(_options: Any, _image: ImageSpec) -> Card:
    """For models without stem, patches or normalisation."""
    return {}


@dataclass(frozen=True)
class ModelMeta:
    """What is known about a model without building it.

    `sizes` maps xs..xl to option values; `check` raises ModelError where the options do not fit the images;
    `card` gives what protocol rule 8 asks for: stem, stride, patch, tokens, normalisation. The
    regularisers of a run are its recipe's.
    """

    family: Family
    version: int = 1
    options: type[Frozen] = NoOptions
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    check: Callable[[Any, ImageSpec], None] = _takes_all_images
    card: Callable[[Any, ImageSpec], Card] = _no_parts


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
    preset = meta.options(**(meta.sizes[size] if size else {}))
    unknown = sorted(set(options) - set(meta.options.model_fields))
    if unknown:
        allowed = list(meta.options.model_fields)
        raise ModelError(f"{unknown[0]}: {name!r} has no such option; allowed: {', '.join(allowed) or 'none'}."
                         f"{nearest(unknown[0], allowed)}")
    try:
        full = meta.options.model_validate({**preset.model_dump(), **options})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ModelError(f"{place}: {first['msg'].removeprefix('Value error, ').removeprefix('Input ')}; "
                         f"found {first['input']!r}") from None
    changed = {k: v for k, v in full.model_dump(mode="json").items() if v != preset.model_dump(mode="json")[k]}
    return full, changed


def build(name: str, size: str | None, options: Mapping[str, Any], image: ImageSpec, num_classes: int) -> "nn.Module":
    """A fresh torch module that maps images B x channels x size x size to logits B x classes.

    Its weights come from torch's global generator. Raises ModelError where it cannot take these images.
    """
    entry = MODELS.get(name)
    full, _ = resolve(name, size, options)
    entry.meta.check(full, image)
    builder = cast("Callable[..., nn.Module]", entry.build)
    return builder(image, num_classes, *([] if entry.meta.options is NoOptions else [full]))
