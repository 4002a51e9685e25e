"""The card of a model at a dataset's image size: protocol rule 8 with parameters, MACs and activations."""

from collections.abc import Mapping
from typing import Any

from vitbench import datasets
from vitbench.config import DatasetEntry
from vitbench.models import MODELS, checked_cost, resolve
from vitbench.spec import Recipe, named_version, with_options


def cards(name: str, size: str | None, dataset: DatasetEntry,
          options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One card for `size`, or one for each size of a model that comes in sizes. Loads torch.

    Raises UnknownName, BadOption or ModelError.
    """
    meta = MODELS.get(name).meta
    sizes = (size,) if size is not None else tuple(meta.sizes) or (None,)
    return [_card(name, one, dataset, options) for one in sizes]


def _card(name: str, size: str | None, dataset: DatasetEntry, options: Mapping[str, Any]) -> dict[str, Any]:
    meta = MODELS.get(name).meta
    data, changed = datasets.resolve(dataset.name, dataset.options)
    full, _ = resolve(name, size, options)
    cost = checked_cost(name, size, options, data.image, data.num_classes)
    return {"model": named_version(name, meta.version), "family": meta.family_with(full), "size": size,
            "dataset": with_options(named_version(dataset.name, data.version), changed), "image_size": data.image.size,
            "channels": data.image.channels, "classes": data.num_classes, "options": full.model_dump(mode="json"),
            "parameters": cost.params, "macs": cost.macs, "activations": cost.activations,
            "card": {**meta.card(full, data.image), "regularisers": Recipe().regularisers}}
