"""From a study file to a Study: every mistake in one report, with path, value, what is allowed, nearest name."""

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from os.path import isfile  # Path.is_file raises for a name that is too long
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

import vitbench
from vitbench.config.controls import Control, Crossed, StreamChanges
from vitbench.config.schema import BudgetEntry, FitRule, Study
from vitbench.config.strict_yaml import YamlRefused, parse, read_text
from vitbench.config.tuning import Range, Tuning
from vitbench.options import at_least, one_of
from vitbench.registry import PluginError, Registry, nearest, plugin_sha256
from vitbench.spec import DataVariant, Recipe

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

STUDY_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_SHIPPED = {kind: Registry[Any](kind, f"vitbench.{kind}s") for kind in ("dataset", "model", "claim")}


@dataclass(frozen=True)
class Mistake:
    """One thing wrong with a study: where, and what to do."""

    path: str
    message: str
    unknown_name: bool = False  # of a dataset, model or claim: what is on record under it can still be read


class BadStudy(ValueError):
    """A study that cannot be run, with all its mistakes."""

    def __init__(self, source: str, mistakes: list[Mistake]) -> None:
        self.source, self.mistakes = source, mistakes
        lines = [f"{source}: {m.path + ': ' if m.path else ''}{m.message}" for m in mistakes]
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Loaded:
    """A study with where it came from. `mistakes` are those of the schema; the meaning is checked later."""

    name: str
    source: str
    folder: Path  # plug-in paths are relative to it
    study: Study | None
    mistakes: tuple[Mistake, ...]
    kept_models: tuple[int, ...]  # position in the file of each model of `study`

    def plugin_files(self) -> dict[str, Path]:
        """Plug-in name -> file."""
        return {Path(p).stem: self.folder / p for p in (self.study.plugins if self.study else ())}

    def plugin_hashes(self) -> dict[str, str]:
        """Plug-in name -> SHA-256 of its source; runs no code."""
        return {name: plugin_sha256(path) for name, path in self.plugin_files().items()}


def shipped_studies() -> Path:
    """Folder of the studies that come with vitbench: in the package, or beside it in a clone."""
    package = Path(vitbench.__file__).parent
    inside = package / "configs" / "studies"
    return inside if inside.is_dir() else package.parent / "configs" / "studies"


def find(study: str, results: Path) -> Path:
    """The YAML of a study given as a .yaml file, a results folder or a name. Raises BadStudy."""
    given = Path(study)
    if given.suffix in (".yaml", ".yml"):
        return given
    if isfile(given / "study.yaml"):
        return given / "study.yaml"
    folders = (Path("configs/studies"), shipped_studies())
    for place in (*(folder / f"{study}.yaml" for folder in folders), results / study / "study.yaml"):
        if isfile(place):
            return place
    known = sorted({p.stem for folder in folders for p in folder.glob("*.yaml")}
                   | {p.parent.name for p in results.glob("*/study.yaml")})
    raise BadStudy(study, [Mistake("", f"no such study; known here: {', '.join(known) or 'none'}."
                                       f"{nearest(study, known)} A study is a .yaml file, a results folder or a name")])


def load(path: Path, overrides: list[str] | None = None) -> Loaded:
    """Read, override and validate. Raises BadStudy where not even a part of it can be read."""
    name = path.resolve().parent.name if path.name == "study.yaml" else path.stem
    source = str(path)
    if not name or not set(name) <= STUDY_NAME_CHARACTERS or name.startswith("."):
        raise BadStudy(source, [Mistake("", f"a study is named by its file; {name!r} should hold letters, digits, "
                                            "., _ and - only")])
    try:
        raw = parse(read_text(path), overrides or [])
    except YamlRefused as error:
        raise BadStudy(source, [Mistake("", str(error))]) from None
    if not isinstance(raw, dict):
        raise BadStudy(source, [Mistake("", "a study file is a mapping with question, dataset, models, ...")])
    study, mistakes, kept = _validate(raw)
    loaded = Loaded(name, source, path.parent, study, tuple(mistakes), kept)
    return replace(loaded, mistakes=(*mistakes, *_beyond_the_schema(loaded, raw)))


_STAND_INS = {"question": "?", "dataset": "?", "models": ["?"]}  # names of nothing: nothing follows from them


def _study(raw: dict[Any, Any]) -> Study:
    # Strict validation of JSON takes an array for a tuple, which strict validation of Python values does not.
    return Study.model_validate_json(json.dumps(raw, default=str))


def _validate(raw: dict[Any, Any]) -> tuple[Study | None, list[Mistake], tuple[int, ...]]:
    """The study, or what remains of it without its wrong parts, so that the rest can still be checked."""
    models = raw.get("models")
    positions = tuple(range(len(models))) if isinstance(models, list) else ()
    try:
        return _study(raw), [], positions
    except ValidationError as error:
        places = [e["loc"] for e in error.errors()]
        mistakes = [mistake(e) for e in error.errors() if e["type"] != "too_short" or not _within(e["loc"], places)]
    bad_models = {place[1] for place in places if place[:1] == ("models",) and len(place) > 1}
    bad_keys = {place[0] for place in places if place}
    rest = {**_STAND_INS, **{k: v for k, v in raw.items() if k not in bad_keys}}
    kept = tuple(i for i in positions if i not in bad_models)
    if bad_models and kept:
        rest["models"] = [raw["models"][i] for i in kept]
    elif "models" in bad_keys:
        kept = (0,)
    try:
        return _study(rest), mistakes, kept
    except ValidationError:
        return None, mistakes, ()


def _within(place: tuple[int | str, ...], places: Iterable[tuple[int | str, ...]]) -> bool:
    """True if something inside `place` is wrong, too: a list is short, then, of what was refused."""
    return any(len(other) > len(place) and other[:len(place)] == place for other in places)


def dotted(place: Iterable[int | str]) -> str:
    """('models', 2, 'size') as models[2].size."""
    names = [p if isinstance(p, int) or p.isprintable() else repr(p) for p in place]
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in names).removeprefix(".")


def mistake(error: "ErrorDetails", within: tuple[int | str, ...] = ()) -> Mistake:
    """What one of pydantic's errors means to a user; `within` is the place of what was validated."""
    place = within + tuple(p for p in error["loc"] if p not in ("range", "choices")  # forms of one key, not keys
                           and (p != "unit" or error["type"] != "literal_error"))
    found = f"; found {_short(error['input'])}"
    if error["type"] == "extra_forbidden":
        owner = next((p for p in reversed(place[:-1]) if p in _MODEL_AT), "")  # a range lies below a key of the recipe
        allowed = list(_MODEL_AT.get(owner, Study).model_fields)
        return Mistake(dotted(place), f"unknown key; allowed: {', '.join(allowed)}.{nearest(place[-1], allowed)}")
    if error["type"] == "too_short":
        return Mistake(dotted(place), f"{at_least(error)}{found}")
    if error["type"] == "missing":
        return Mistake(dotted(place), "missing" + ("; every study needs it" if len(place) == 1 else ""))
    if error["type"] == "literal_error":
        allowed = one_of(error)
        near = nearest(error["input"], allowed)
        return Mistake(dotted(place), f"should be one of: {', '.join(allowed)}{found}.{near}")
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return Mistake(dotted(place), message + (found if place else ""))


_MODEL_AT: dict[object, type[BaseModel]] = {
    "recipe": Recipe, "fit": FitRule, "budgets": BudgetEntry, "data": DataVariant, "tuning": Tuning, "space": Range,
    "controls": Control, "streams": StreamChanges, "crossed": Crossed}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _beyond_the_schema(loaded: Loaded, raw: dict[Any, Any]) -> list[Mistake]:
    """Unknown names, repeated entries, missing files: what no schema of a single value tells."""
    study = loaded.study
    if study is None:
        return []
    mistakes = []
    plugins = []
    for position, (name, path) in enumerate(loaded.plugin_files().items()):
        try:
            plugin_sha256(path)
            plugins.append(name)
        except PluginError as error:
            mistakes.append(Mistake(f"plugins[{position}]", str(error)))
    if len(loaded.plugin_files()) < len(study.plugins):
        mistakes.append(Mistake("plugins", "two files of one name"))
    if (raw.get("fractions") is None) == (raw.get("images_per_class") is None):
        mistakes.append(Mistake("fractions", "give exactly one of fractions and images_per_class"))

    if study.looks and len(study.seeds) not in study.looks:
        mistakes.append(Mistake("seeds", f"looks are declared at {', '.join(map(str, study.looks))} seeds; found "
                                         f"{len(study.seeds)}"))

    allowed = {kind: sorted({*registry.shipped(), *plugins}) for kind, registry in _SHIPPED.items()}

    def check(kind: str, name: object, place: str) -> None:
        known = allowed[kind]
        file = name.partition("/")[0] if isinstance(name, str) else None  # what follows only the file itself knows
        if file is not None and file not in known:
            mistakes.append(Mistake(place, f"unknown {kind} {name!r}; allowed: {', '.join(known) or 'none yet'}."
                                           f"{nearest(file, known)}", unknown_name=True))

    dataset = raw.get("dataset")
    check("dataset", dataset.get("name") if isinstance(dataset, dict) else dataset, "dataset")
    for position, entry in enumerate(raw["models"] if isinstance(raw.get("models"), list) else []):
        given = entry.get("name") if isinstance(entry, dict) else entry
        check("model", given.partition(":")[0] if isinstance(given, str) else None, f"models[{position}].name")
    for position, claim in enumerate(study.claims):
        check("claim", claim, f"claims[{position}]")
    places = [f"models[{i}].label" for i in loaded.kept_models]
    mistakes += _repeated(places, [m.label for m in study.models], "; labels are unique: add a label")
    for key in ("fractions", "images_per_class", "seeds", "regimes", "budgets", "claims"):
        values = getattr(study, key) or ()
        mistakes += _repeated([f"{key}[{i}]" for i in range(len(values))], values, "")
    return mistakes


def _repeated(places: Sequence[str], values: Sequence[Hashable], advice: str) -> list[Mistake]:
    first = {value: i for i, value in reversed(list(enumerate(values)))}
    return [Mistake(place, f"{value if isinstance(value, str | int) else 'this entry'} stands twice{advice}")
            for i, (place, value) in enumerate(zip(places, values, strict=True)) if first[value] < i]
