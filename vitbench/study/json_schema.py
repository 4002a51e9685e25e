"""JSON Schema of the study file, for editors: what a person may write, short forms and plug-in names included."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from vitbench.claims import CLAIMS
from vitbench.config import Study
from vitbench.datasets import DATASETS
from vitbench.models import MODELS, ModelMeta
from vitbench.spec import Frozen

Schema = dict[str, Any]


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False  # 'Images Per Class' says no more than the key


def study_schema() -> Schema:
    """Refuses unknown keys, and without `plugins` unknown names too. It knows no class counts, pixels or repeats:
    `vitbench plan` does."""
    schema = Study.model_json_schema(schema_generator=_Untitled)
    budget, entry = schema["$defs"]["BudgetEntry"], schema["$defs"]["ModelEntry"]
    short = dict.fromkeys(budget["properties"]["unit"]["enum"], budget["properties"]["amount"])
    one_key = {"type": "object", "properties": short, "additionalProperties": False, "minProperties": 1,
               "maxProperties": 1}
    schema["$defs"]["BudgetEntry"] = {"description": budget.pop("description"), "anyOf": [one_key, budget]}
    schema["$defs"]["ModelEntry"] = _model_entry(entry)
    schema["$defs"]["DatasetEntry"] = _dataset_entry(schema["$defs"]["DatasetEntry"])
    schema["properties"]["claims"]["items"]["examples"] = list(CLAIMS.shipped())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "vitbench study",
            "oneOf": [_given("fractions"), _given("images_per_class")],
            "if": {"properties": {"plugins": {"maxItems": 0}}},  # true of a study without the key
            "then": {"properties": {"dataset": {"anyOf": [{"enum": list(DATASETS.shipped())}, {
                "type": "object", "properties": {"name": {"enum": list(DATASETS.shipped())}}}]},
                                    "claims": {"items": {"enum": list(CLAIMS.shipped())}},
                                    "models": {"items": {"anyOf": [{"type": "string", **_shipped_short()}, {
                                        "type": "object", "properties": {"name": _shipped_name()}}]}}}}}


def _given(key: str) -> Schema:
    return {"required": [key], "properties": {key: {"type": "array"}}}


def _metas() -> dict[str, ModelMeta]:
    return {name: MODELS.get(name).meta for name in MODELS.shipped() if MODELS.open_names(name) is None}


def _open() -> dict[str, ModelMeta]:
    """Those that stand for many: 'timm/vit_tiny_patch16_224' is a name below timm, and all have the same options."""
    return {name: MODELS.get(f"{name}/{below[0]}").meta for name in MODELS.shipped()
            if (below := MODELS.open_names(name))}


def _below() -> Schema:
    return {"pattern": f"^({'|'.join(_open())})/."}


def _shipped_name() -> Schema:
    return {"anyOf": [{"enum": list(_metas())}, _below()]}


def _shipped_short() -> Schema:
    shorts = [f"{name}:{size}" if size else name for name, meta in _metas().items() for size in meta.sizes or [""]]
    return {"anyOf": [{"enum": shorts}, _below()]}


def _model_entry(entry: Schema) -> Schema:
    """A string, or a mapping whose options stand beside the name; those of shipped models are known."""
    own = entry["properties"]
    own["name"]["examples"] = list(_metas())
    own["recipe"] = {"$ref": "#/$defs/Recipe", "description": own["recipe"]["description"]}
    sizes = "|".join(own["size"].pop("anyOf")[0]["enum"])
    others = rf"^(?!({'|'.join(MODELS.shipped())})(:|$))[^:]+(:({sizes}))?$"
    short = {"type": "string", "anyOf": [*_shipped_short()["anyOf"], {"pattern": others}]}
    of_shipped = [{"if": {"properties": {"name": {"const": name}}}, "then": _options(own, meta)}
                  for name, meta in _metas().items()]
    of_shipped += [{"if": {"properties": {"name": {"pattern": f"^{name}/"}}}, "then": _options(own, meta)}
                   for name, meta in _open().items()]
    return {"description": entry["description"], "anyOf": [short, {
        "type": "object", "properties": own, "required": ["name"], "allOf": of_shipped}]}


def _dataset_entry(entry: Schema) -> Schema:
    """A name, or a mapping whose options stand beside it; those of shipped datasets are known."""
    own = entry["properties"]
    own["name"]["examples"] = list(DATASETS.shipped())
    of_shipped = []
    for name in DATASETS.shipped():
        options = _properties(DATASETS.get(name).meta.options)
        inside = {"properties": options, "additionalProperties": False}
        of_shipped.append({"if": {"properties": {"name": {"const": name}}}, "then": {
            "properties": {"name": True, "options": inside, **options}, "additionalProperties": False}})
    return {"description": entry["description"], "anyOf": [{"type": "string", "examples": list(DATASETS.shipped())}, {
        "type": "object", "properties": own, "required": ["name"], "allOf": of_shipped}]}


def _properties(options: type[Frozen]) -> Schema:
    found: Schema = options.model_json_schema(schema_generator=_Untitled).get("properties", {})
    return found


def _options(own: Schema, meta: ModelMeta) -> Schema:
    options = _properties(meta.options)
    size = {"enum": list(meta.sizes)} if meta.sizes else {"type": "null"}
    inside = {"properties": options, "additionalProperties": False}
    return {"properties": {**dict.fromkeys(own, True), "size": size, "options": inside, **options},
            "required": ["size"] if meta.sizes else [], "additionalProperties": False}
