"""A study's results folder: its study.yaml, its definite names, and what changed since it was last run."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from vitbench.config import BadStudy, Mistake, Study, load
from vitbench.config.strict_yaml import YamlRefused, parse
from vitbench.expansion import expand
from vitbench.grid import Resolved, Run, by_priority, distinct
from vitbench.record import DamagedRecord, Failure, ForeignRecord, RunRecord
from vitbench.registry import PluginError, load_plugin, nearest, plugin_sha256
from vitbench.report.frame import Frame, build
from vitbench.store import ResultStore, StoreError, write_atomically
from vitbench.study.searches import FOLDER, Wanted, outcomes, wanted


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - a study file may hold none
        return True


@dataclass(frozen=True)
class StudyFolder:
    """A study with its runs, at rest under `store.folder`."""

    name: str
    study: Study
    resolved: Resolved
    store: ResultStore

    @cached_property
    def runs(self) -> list[Run]:
        """Every run of the study as it stands now; those of cells that are not tuned yet are pending."""
        return expand(self.study, self.resolved, outcomes(one.search for one in self.searches))

    @cached_property
    def searches(self) -> list[Wanted]:
        """Every search of the study's tuning, with the trials on record."""
        return wanted(self.study, self.resolved, self.store.folder / FOLDER)

    def frame(self, runs: list[Run] | None = None, read: Callable[[str], RunRecord | Failure] | None = None) -> Frame:
        """The tidy frame of the study, or of some of its runs."""
        frame = build(self.name, self.runs if runs is None else runs, read or self.store.read, self.resolved,
                      self.study.fit)
        return replace(frame, exploratory=self.exploratory(), margin=self.study.margin,
                       searches=tuple(one.search for one in self.searches))

    def again(self) -> "StudyFolder":
        """The same study, read anew: tuning may have found what its runs are."""
        return replace(self)

    def orphans(self) -> set[str]:
        """Ids of runs in the store that are no longer the study's; opens no file."""
        return self.store.ids() - {run.spec.run_id for run in self.runs if not run.pending}

    def in_order(self) -> list[Run]:
        """Every run once, in the order in which they are done."""
        return distinct(by_priority(self.runs, self.study.priority))

    def ended(self) -> set[str]:
        """Ids of the runs in the store that ended with a result, or failed by themselves."""
        return self.store.ids() - self.store.crashed()

    def left(self) -> list[Run]:
        """Runs that have not ended, in the order in which they are done."""
        ended = self.ended()
        return [run for run in self.in_order() if run.pending or run.spec.run_id not in ended]

    def refuse_other_images(self, sha256: str) -> None:
        """Raise StoreError where an earlier run of the study saw a dataset of another content than `sha256`.

        One record tells: no run was ever added to others of another content.
        """
        record = next(self._records(), None)
        if record is not None and record.data.dataset_sha256 != sha256:
            raise StoreError(f"{self.resolved.dataset_text} has other images than run {record.run_id} of this study "
                             f"saw: SHA-256 {sha256}, then {record.data.dataset_sha256}. What makes them has changed "
                             "since, vitbench or NumPy: take the versions that the record names, or another --results "
                             "folder")

    def _records(self) -> Iterator[RunRecord]:
        """Of the study's runs; those that are not whole are passed over."""
        for run_id in sorted(self.store.ids() & {run.spec.run_id for run in self.runs if not run.pending}):
            with contextlib.suppress(DamagedRecord, ForeignRecord):
                found = self.store.read(run_id)
                if isinstance(found, RunRecord):
                    yield found

    def remarks(self) -> list[str]:
        """What a user of this study should know beside its runs."""
        twice, others = len(self.runs) - len(distinct(self.runs)), self.orphans()
        found = [f"{twice} runs stand twice in the study; they are done once"] if twice else []
        if others:
            found.append(f"{len(others)} runs of an earlier form of this study stay in {self.store.runs}; no table "
                         "shows them")
        crashed = self.store.crashed() & {run.spec.run_id for run in self.runs}
        if crashed:
            found.append(f"{len(crashed)} runs lost their worker and will be done again: {', '.join(sorted(crashed))} "
                         "(vitbench logs RUN)")
        if "weights" in self.study.keep:
            found += self._without_weights()
        exploratory = self.exploratory()
        return [*found, exploratory] if exploratory else found

    def _without_weights(self) -> list[str]:
        names = {run.spec.run_id for run in self.runs if not run.pending}
        bare = self.store.without_weights(self.store.ids() & names)
        return [f"{len(bare)} runs ended without keeping their weights and are not done again; probes train them again "
                "where they need them"] if bare else []

    @classmethod
    def open(cls, study: str, results: Path) -> "StudyFolder":
        """The folder of a study that was run: its name or .yaml file, or the folder itself. Raises BadStudy."""
        study = Path(study).stem if Path(study).suffix in (".yaml", ".yml") else study
        folder = next((f for f in (results / study, Path(study)) if (f / "study.yaml").is_file()), None)
        if folder is None:
            known = sorted(p.parent.name for p in results.glob("*/study.yaml"))
            raise BadStudy(study, [Mistake("", f"no results in {results}; there are: {', '.join(known) or 'none'}."
                                               f"{nearest(study, known)} `vitbench run` makes them; --results names "
                                               "another folder")])
        if (folder / "runs").is_file():  # else every run would count as missing
            raise StoreError(f"{folder / 'runs'} is a file; it should be the folder that holds the study's runs")
        loaded = load(folder / "study.yaml")
        # Names are as they were when it ran: results stay readable where a model or plug-in is gone.
        unreadable = [m for m in loaded.mistakes if not m.unknown_name and not m.path.startswith("plugins")]
        if loaded.study is None or unreadable:
            raise BadStudy(loaded.source, unreadable or list(loaded.mistakes))
        try:
            names = Resolved.model_validate_json((folder / "resolved.json").read_bytes())
        except (OSError, ValidationError):
            raise BadStudy(str(folder / "resolved.json"), [
                Mistake("", f"missing or damaged; `vitbench run {loaded.name}` writes it again")]) from None
        return cls(folder.name, loaded.study, names, ResultStore(folder))

    def exploratory(self) -> str | None:
        """A sentence where the seeds were changed after the first run without a declared look (protocol rule 22)."""
        paths = [*(self.store.folder / "earlier").glob("*.yaml"), self.store.folder / "study.yaml"]
        forms = [form for path in paths if path.is_file() and (form := _mapping(path.read_bytes())) is not None]
        forms.append(self.study.model_dump(mode="json"))
        seeds = {tuple(sorted(form["seeds"])) for form in forms if isinstance(form.get("seeds"), list)}
        looks, rising = list(self.study.looks), sorted(map(set, seeds), key=len)
        nested = all(fewer < more for fewer, more in pairwise(rising))  # other seeds would be drawn until they please
        if len(seeds) == 1 or (looks and nested and all(form.get("looks") == looks for form in forms)):
            return None
        counts = ", ".join(map(str, sorted(map(len, seeds))))
        return (f"The seeds were changed after the first run ({counts} of them), and no look was declared beforehand: "
                "verdicts are exploratory.")

    def load_plugins(self) -> tuple[Path, ...]:
        """Import the study's own copies of its plug-ins; their files. Runs their code.

        Raises PluginError where one is not the file that the run ids name.
        """
        paths = {name: self.store.folder / "plugins" / f"{name}.py" for name in self.resolved.plugins}
        for name, path in paths.items():
            if plugin_sha256(path) != self.resolved.plugins[name]:
                raise PluginError(f"{path} is not the plug-in that the study's runs name by its SHA-256; put that back")
            load_plugin(path)
        return tuple(paths.values())

    def write(self, plugins: dict[str, Path]) -> list[str]:
        """Write study.yaml, resolved.json and the plug-ins byte by byte; what changed since the study was last run.

        Raises StoreError where a plug-in is no longer the one that the run ids name.
        """
        folder = self.store.folder
        content = self.study.model_dump(mode="json") | {"plugins": [f"plugins/{n}.py" for n in plugins]}
        text = yaml.dump(content, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=110)
        before = folder / "study.yaml"
        changes = []
        old = before.read_bytes() if before.exists() else text.encode()
        if old != text.encode():
            changes = _changes(old, yaml.safe_load(text))
            (folder / "earlier").mkdir(exist_ok=True)
            write_atomically(folder / "earlier" / f"{hashlib.sha256(old).hexdigest()[:16]}.yaml", old)
        for name, path in plugins.items():
            (folder / "plugins").mkdir(exist_ok=True)
            source = path.read_bytes()
            if hashlib.sha256(source).hexdigest() != self.resolved.plugins[name]:
                raise StoreError(f"plug-in {path} changed while the study was being read; run the same command again")
            write_atomically(folder / "plugins" / f"{name}.py", source)
        write_atomically(folder / "resolved.json", self.resolved.model_dump_json(indent=1) + "\n")
        write_atomically(before, text)
        return changes


def _changes(before: bytes, new: dict[str, Any]) -> list[str]:
    """'recipe.learning_rate: 0.001 -> 0.003' for each key that differs; a damaged file is said to be one."""
    old = _mapping(before)
    if old is None:
        return ["study.yaml was damaged; it is kept under earlier/"]
    return list(_differences(_by_label(old), _by_label(new)))


def _mapping(text: bytes) -> dict[str, Any] | None:
    """A study file's content; None where it is none."""
    try:
        content = parse(text.decode(), [])
    except (YamlRefused, UnicodeDecodeError):
        return None
    return content if isinstance(content, dict) else None


def _by_label(content: dict[str, Any]) -> dict[str, Any]:
    models = content.get("models")
    named = isinstance(models, list) and all(isinstance(entry, dict) and "label" in entry for entry in models)
    return content | {"models": {entry["label"]: entry for entry in models}} if named else content  # type: ignore[union-attr]


def _differences(old: dict[str, Any], new: dict[str, Any], above: str = "") -> Iterator[str]:
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _differences(before, after, f"{above}{key}.")
        elif before != after:
            yield f"{above}{key}: {_short(before)} -> {_short(after)}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."
