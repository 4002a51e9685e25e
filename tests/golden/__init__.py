"""Golden files: defaults that are frozen, and ids of twenty runs.

A changed default gives stored results another meaning under the same run id; a changed id orphans them.
`python -m tests.golden` adds what is new and refuses to change or drop what is there.
"""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from vitbench.config import FitRule, Study
from vitbench.config.controls import Crossed
from vitbench.config.tuning import Range, Tuning
from vitbench.datasets import DATASETS
from vitbench.models import MODELS, resolve
from vitbench.spec import Budget, DataVariant, Recipe, RunSpec, StreamSeeds, named_version

FOLDER = Path(__file__).parent
ADVICE = ("A default is frozen once a result rests on it. Take the change back, or make it a new field, "
          "or raise the version of the model or dataset (protocol rule 29).")
_VERSIONED = re.compile(r"([\w/]+)@(\d+)")  # 'convnet@1:s.width'
ONE_OF_MANY = {"timm": "timm/resnet18"}  # all names of a file share their options
NOT_FROZEN = {"RunSpec.numerics"}  # always part of the id: raising it renames all runs, on purpose


class GoldenChanged(ValueError):
    """Something that is frozen would change."""


def read(name: str) -> Any:
    """Content of a golden file."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def write(name: str, content: Any) -> None:
    """Write a golden file, one entry a line."""
    opening, closing = "{}" if isinstance(content, dict) else "[]"
    entries = ([f"{json.dumps(k)}: {json.dumps(v)}" for k, v in content.items()] if isinstance(content, dict)
               else [json.dumps(entry) for entry in content])
    text = opening + "\n" + ",\n".join(entries) + "\n" + closing + "\n"
    (FOLDER / name).write_text(text, encoding="utf-8")


def defaults() -> dict[str, Any]:
    """Every default that a run id leaves out, by its dotted name; those of the shipped models size by size."""
    found = {}
    for schema in (Recipe, Budget, StreamSeeds, DataVariant, RunSpec, FitRule, Tuning, Range, Crossed, Study):
        for name, info in schema.model_fields.items():
            if not info.is_required() and f"{schema.__name__}.{name}" not in NOT_FROZEN:
                found[f"{schema.__name__}.{name}"] = _plain(info.get_default(call_default_factory=True))
    for model in (ONE_OF_MANY.get(file, file) for file in MODELS.shipped()):
        meta = MODELS.get(model).meta
        for size in meta.sizes or (None,):
            options, _ = resolve(model, size, {})
            for option, value in options.model_dump(mode="json").items():
                version = 1 if model in ONE_OF_MANY.values() else meta.version  # else timm's own
                label = named_version(model, version) + (f":{size}" if size else "")
                found[f"{label}.{option}"] = value
    for dataset in DATASETS.shipped():
        meta = DATASETS.get(dataset).meta
        for option, value in meta.options().model_dump(mode="json").items():
            found[f"{named_version(dataset, meta.version)}.{option}"] = value
    return found


def _plain(value: object) -> Any:
    """JSON of a value; a nested model counts by what differs from its own defaults, which stand apart."""
    adapter: TypeAdapter[Any] = TypeAdapter(type(value) if isinstance(value, BaseModel) else Any)
    return adapter.dump_python(value, mode="json", exclude_defaults=True)


def merged(kept: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """`kept` with the new entries of `found`. Raises GoldenChanged where an entry differs or is gone.

    The defaults of a model's earlier version stay in the file when a later version takes its place.
    """
    versions = dict(match.groups() for match in map(_VERSIONED.match, found) if match)
    changed = []
    for name, value in kept.items():
        match = _VERSIONED.match(name)
        if name not in found and match and int(versions.get(match[1], 0)) > int(match[2]):
            continue
        if name not in found or found[name] != value:
            changed.append(f"{name}: {json.dumps(value)} -> {json.dumps(found[name]) if name in found else 'gone'}")
    if changed:
        raise GoldenChanged("\n".join([*changed, ADVICE]))
    return {**kept, **found}


def ids() -> dict[str, str]:
    """Name -> run id, computed now, of each spec in ids.json."""
    return {entry["name"]: RunSpec.model_validate_json(json.dumps(entry["spec"])).run_id for entry in read("ids.json")}


def regenerate() -> list[str]:
    """Add what is new; the names of what was added. Raises GoldenChanged before anything is written."""
    kept, entries = read("defaults.json"), read("ids.json")
    new_defaults = merged(kept, defaults())
    kept_ids = {entry["name"]: entry["id"] for entry in entries if "id" in entry}
    new_ids = merged(kept_ids, ids())
    write("defaults.json", new_defaults)
    write("ids.json", [{"name": entry["name"], "id": new_ids[entry["name"]], "spec": entry["spec"]}
                       for entry in entries])
    return [name for name in [*new_defaults, *new_ids] if name not in kept and name not in kept_ids]
