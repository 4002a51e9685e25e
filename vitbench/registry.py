"""Plug-ins by name: a folder's file names are the list, one file is one plug-in."""

import hashlib
import importlib
import importlib.util
import re
import stat
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

Meta = TypeVar("Meta")
PLUGIN_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
MAX_PLUGIN_BYTES = 256 * 1024


class UnknownName(ValueError):
    """A name that no plug-in has. The message lists the known names and the nearest one."""


class PluginError(ValueError):
    """A plug-in file that cannot be taken; the message says which and why."""


def nearest(name: object, allowed: Iterable[str], *, n: int = 1) -> str:
    """' Did you mean ...?' for the `n` allowed names closest to `name`, or an empty string."""
    near = get_close_matches(str(name), list(allowed), n=n, cutoff=0.5)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


@dataclass(frozen=True)
class Entry(Generic[Meta]):
    """One plug-in: its builder, what is known about it without building, and its source's hash."""

    name: str
    build: Callable[..., object]
    meta: Meta
    plugin_sha256: str | None = None  # None: ships with vitbench, so its version stands for its source


@dataclass(frozen=True)
class OpenEntry(Generic[Meta]):
    """A plug-in file that stands for many names, each written `file/name`."""

    build: Callable[..., object]  # takes the name before what other builders take
    names: Callable[[], Iterable[str]]
    meta: Callable[[str], Meta]  # raises UnknownName for a name that it does not have


Builder = Callable[..., object]
Built = TypeVar("Built", bound=Builder)


@dataclass
class Registry(Generic[Meta]):
    """The plug-ins of one kind. Names come from the folder; a file is imported when its entry is asked for."""

    kind: str
    package: str
    _entries: dict[str, Entry[Meta] | OpenEntry[Meta]] = field(default_factory=dict)

    def add(self, name: str, meta: Meta) -> Callable[[Built], Built]:
        """Decorator of a plug-in file. The name must be the file's own and not taken yet."""
        return self._register(name, lambda build: Entry(name, build, meta, _LOADED.get(build.__module__)))

    def add_open(self, name: str, names: Callable[[], Iterable[str]],
                 meta: Callable[[str], Meta]) -> Callable[[Built], Built]:
        """Decorator of a plug-in file for many names, each written `file/name`; `meta` knows each or raises
        UnknownName."""
        return self._register(name, lambda build: OpenEntry(build, names, meta))

    def _register(self, name: str, entry: Callable[[Builder], Entry[Meta] | OpenEntry[Meta]]
                  ) -> Callable[[Built], Built]:
        def register(build: Built) -> Built:
            origin = build.__module__
            if name != origin.rpartition(".")[2]:
                raise PluginError(f"{self.kind} {name!r} stands in a file named {origin.rpartition('.')[2]!r}; "
                                  f"name the file {name}.py")
            taken = self._entries.get(name)
            if name in self.shipped() and not origin.startswith(f"{self.package}."):
                raise PluginError(f"{self.kind} {name!r} is the name of one that ships with vitbench; choose another")
            if taken is not None:
                raise PluginError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = entry(build)
            return build

        return register

    def shipped(self) -> tuple[str, ...]:
        """Names of the plug-ins in the package's folder, sorted; imports none of them."""
        spec = importlib.util.find_spec(self.package)
        folders = list(spec.submodule_search_locations or ()) if spec else []
        return tuple(sorted(p.stem for f in folders for p in Path(f).glob("*.py") if not p.stem.startswith("_")))

    def names(self) -> tuple[str, ...]:
        """Every known name: shipped ones and those that loaded plug-in files registered."""
        return tuple(sorted({*self.shipped(), *self._entries}))

    def get(self, name: str) -> Entry[Meta]:
        """The entry called `name`, or `file/name` in an open file. Raises UnknownName with the nearest name."""
        file, slash, inner = name.partition("/")
        found = self._find(file)
        if isinstance(found, OpenEntry) and slash:
            return Entry(name, partial(found.build, inner), found.meta(inner), _LOADED.get(found.build.__module__))
        if isinstance(found, OpenEntry):
            raise UnknownName(f"{self.kind} {name!r} stands for many: write {name}/NAME")
        if found is None or slash:
            known = ", ".join(self.names()) or "none"
            raise UnknownName(f"unknown {self.kind} {name!r}; allowed: {known}.{nearest(file, self.names())}")
        return found

    def open_names(self, name: str) -> tuple[str, ...] | None:
        """The names `inner` of all `name/inner`, sorted; None where `name` is itself a plug-in."""
        found = self._find(name)
        return tuple(sorted(found.names())) if isinstance(found, OpenEntry) else None

    def _find(self, name: str) -> Entry[Meta] | OpenEntry[Meta] | None:
        if name not in self._entries and name in self.shipped():
            importlib.import_module(f"{self.package}.{name}")
        return self._entries.get(name)


_LOADED: dict[str, str] = {}  # module name of a loaded plug-in file -> SHA-256 of its source


def plugin_sha256(path: Path) -> str:
    """SHA-256 of a plug-in file's source. Raises PluginError where it is missing, too large or badly named."""
    if not PLUGIN_NAME.fullmatch(path.stem) or path.suffix != ".py":
        raise PluginError(f"{path}: a plug-in is a .py file named in small letters, digits and _")
    source = b""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
        if regular:  # opening a pipe would wait for ever
            with path.open("rb") as file:
                source = file.read(MAX_PLUGIN_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise PluginError(f"{path}: cannot read this plug-in: {getattr(error, 'strerror', error)}") from None
    if not regular:
        raise PluginError(f"{path}: a plug-in is a file, which this is not")
    if len(source) > MAX_PLUGIN_BYTES:
        raise PluginError(f"{path}: too large; a plug-in has at most {MAX_PLUGIN_BYTES:,} bytes")
    return hashlib.sha256(source).hexdigest()


def load_plugin(path: Path) -> str:
    """Import a user's plug-in file so that it registers itself; its source's SHA-256. Runs the file's code."""
    digest = plugin_sha256(path)
    module_name = f"vitbench_plugins_{digest[:12]}.{path.stem}"
    if module_name in _LOADED:
        return digest
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _LOADED[module_name] = digest
    sys.modules[module_name] = module  # where dataclasses look up what their annotations name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del _LOADED[module_name], sys.modules[module_name]
        if isinstance(error, PluginError):
            raise
        raise PluginError(f"{path}: this plug-in fails on import: {type(error).__name__}: {error}") from error
    return digest
