import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitbench import registry as registry_module
from vitbench.models import MODELS
from vitbench.registry import (
    MAX_PLUGIN_BYTES,
    PluginError,
    Registry,
    UnknownName,
    load_plugin,
    nearest,
    plugin_sha256,
)

PLUGIN = """
from shelf import THINGS

@THINGS.add({name!r}, "known without building")
def build():
    return 3
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package `shelf` of three things; `broken` cannot be imported, `_private` is none."""
    folder = tmp_path / "packages" / "shelf"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from vitbench.registry import Registry\n"
                                        "THINGS = Registry('thing', 'shelf')\n")
    for name in ("apple", "orange"):
        (folder / f"{name}.py").write_text(PLUGIN.format(name=name))
    (folder / "broken.py").write_text("raise RuntimeError('imported')\n")
    (folder / "_private.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setattr(registry_module, "_LOADED", {})
    before = set(sys.modules)
    import shelf as made  # type: ignore[import-not-found]

    yield made
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def things(shelf: ModuleType) -> Registry[str]:
    found: Registry[str] = shelf.THINGS
    return found


def plugin(tmp_path: Path, name: str, source: str | None = None) -> Path:
    path = tmp_path / f"{name}.py"
    path.write_text(PLUGIN.format(name=name) if source is None else source)
    return path


def test_the_folder_is_the_list_and_listing_imports_nothing(things: Registry[str]) -> None:
    assert things.names() == things.shipped() == ("apple", "broken", "orange")
    assert not {"shelf.apple", "shelf.broken"} & set(sys.modules)


def test_an_entry_is_imported_when_it_is_asked_for(things: Registry[str]) -> None:
    entry = things.get("apple")
    assert (entry.name, entry.meta, entry.plugin_sha256, entry.build()) == ("apple", "known without building", None, 3)
    assert "shelf.apple" in sys.modules
    assert "shelf.orange" not in sys.modules
    assert things.get("apple") is entry


@pytest.mark.parametrize(("asked", "message"), [
    ("aple", r"unknown thing 'aple'; allowed: apple, broken, orange\. Did you mean 'apple'\?"),
    ("zzz", r"unknown thing 'zzz'; allowed: apple, broken, orange\.$"),
    ("_private", "unknown thing '_private'"), ("__init__", "unknown thing"), ("../apple", "unknown thing"),
    ("", "unknown thing ''"), ("apple.py", "unknown thing"), ("os", "unknown thing 'os'"),
])
def test_an_unknown_name_lists_the_known_ones_and_the_nearest(things: Registry[str], asked: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        things.get(asked)


def test_a_kind_without_a_package_has_no_names() -> None:
    nothing: Registry[str] = Registry("thing", "vitbench.no_such_package")
    assert nothing.names() == ()
    with pytest.raises(UnknownName, match="allowed: none"):
        nothing.get("x")


def test_a_users_file_registers_itself_with_its_hash(things: Registry[str], tmp_path: Path) -> None:
    path = plugin(tmp_path, "mine")
    digest = load_plugin(path)
    assert digest == plugin_sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert things.get("mine").plugin_sha256 == digest
    assert things.names() == ("apple", "broken", "mine", "orange")
    assert things.shipped() == ("apple", "broken", "orange")


def test_a_users_file_is_run_once(things: Registry[str], tmp_path: Path) -> None:
    path = plugin(tmp_path, "mine")
    assert load_plugin(path) == load_plugin(path)
    assert things.get("mine").build() == 3


def test_the_name_of_a_shipped_plug_in_is_refused(things: Registry[str], tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="'apple' is the name of one that ships with vitbench; choose another"):
        load_plugin(plugin(tmp_path, "apple"))
    assert things.get("apple").plugin_sha256 is None


def test_two_files_of_one_name_are_refused(things: Registry[str], tmp_path: Path) -> None:
    load_plugin(plugin(tmp_path, "mine"))
    with pytest.raises(PluginError, match="'mine' is registered twice"):
        load_plugin(plugin(tmp_path, "mine", PLUGIN.format(name="mine") + "# changed\n"))


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_plug_in_under_another_name_than_its_files_is_refused(things: Registry[str], tmp_path: Path,
                                                               attempts: int) -> None:
    path = plugin(tmp_path, "mine", PLUGIN.format(name="other"))
    for _ in range(attempts):
        with pytest.raises(PluginError, match=r"'other' stands in a file named 'mine'; name the file other.py"):
            load_plugin(path)
    assert "other" not in things.names()


@pytest.mark.parametrize(("source", "message"), [
    ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"), ("x = (", "SyntaxError"),
    ("raise RuntimeError('why')", "RuntimeError: why"), ("1 / 0", "ZeroDivisionError"), ("\0", "null byte"),
    ("import sys; sys.exit(0)", "SystemExit: 0"),
])
@pytest.mark.parametrize("attempts", [1, 2])
def test_a_plug_in_that_fails_names_itself_and_why_each_time(shelf: ModuleType, tmp_path: Path, source: str,
                                                             message: str, attempts: int) -> None:
    path = plugin(tmp_path, "mine", source)
    for _ in range(attempts):
        with pytest.raises(PluginError, match=message) as caught:
            load_plugin(path)
        assert str(path) in str(caught.value)


def test_a_plug_in_may_hold_a_dataclass_with_postponed_annotations(things: Registry[str], tmp_path: Path) -> None:
    source = ("from __future__ import annotations\nfrom dataclasses import dataclass\n"
              "@dataclass\nclass Options:\n    heads: int = 1\n") + PLUGIN.format(name="mine")
    load_plugin(plugin(tmp_path, "mine", source))
    assert things.get("mine").build() == 3


@pytest.mark.parametrize("name", ["Mine.py", "my-model.py", "mine.txt", "mine", "1st.py", "_mine.py", "a b.py",
                                  f"{'m' * 65}.py", "mine.py.bak", "übung.py"])
def test_a_file_that_is_not_named_like_a_plug_in_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(PluginError, match="named in small letters, digits and _"):
        plugin_sha256(tmp_path / name)


@pytest.mark.parametrize("place", ["missing.py", "no/such/folder/mine.py", "nul\0byte/mine.py",
                                   "x" * 300 + "/mine.py"])
def test_a_file_that_cannot_be_read_says_so(tmp_path: Path, place: str) -> None:
    with pytest.raises(PluginError, match="cannot read this plug-in: "):
        plugin_sha256(tmp_path / place)


@pytest.mark.parametrize(("size", "taken"), [(MAX_PLUGIN_BYTES, True), (MAX_PLUGIN_BYTES + 1, False)])
def test_a_plug_in_has_a_largest_size(tmp_path: Path, size: int, taken: bool) -> None:
    path = plugin(tmp_path, "mine", "#" * size)
    if taken:
        assert len(plugin_sha256(path)) == 64
    else:
        with pytest.raises(PluginError, match="a plug-in has at most 262,144"):
            plugin_sha256(path)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "zero.py").symlink_to("/dev/zero")  # without an end
    os.mkfifo(tmp_path / "pipe.py")  # whose opening waits
    (tmp_path / "folder.py").mkdir()
    for name in ("zero.py", "pipe.py", "folder.py"):
        with pytest.raises(PluginError, match="a plug-in is a file, which this is not"):
            plugin_sha256(tmp_path / name)


def test_a_name_is_registered_once_in_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODELS, "_entries", dict(MODELS._entries))  # which keeps the first of the two
    once = "@MODELS.add('twice', ModelMeta('control'))\ndef {}(image, num_classes):\n    ...\n"
    source = "from vitbench.models import MODELS, ModelMeta\n" + once.format("a") + once.format("b")
    path = plugin(tmp_path, "twice", source)
    with pytest.raises(PluginError, match="'twice' is registered twice"):
        load_plugin(path)


def test_a_family_that_is_none_is_refused(tmp_path: Path) -> None:
    path = plugin(tmp_path, "zebra", "from vitbench.models import ModelMeta\nModelMeta('convolutoin')\n")
    with pytest.raises(PluginError, match=r"found 'convolutoin'\. Did you mean 'convolution'"):
        load_plugin(path)


def test_hashing_a_plug_in_runs_nothing(tmp_path: Path) -> None:
    plugin_sha256(plugin(tmp_path, "mine", f"open({os.fspath(tmp_path / 'ran')!r}, 'w')"))
    assert not (tmp_path / "ran").exists()


@given(st.text(max_size=30), st.lists(st.text(max_size=10), max_size=6))
def test_the_nearest_name_is_an_allowed_one(asked: str, allowed: list[str]) -> None:
    hint = nearest(asked, allowed)
    assert hint == "" or hint in {f" Did you mean {name!r}?" for name in allowed}


def test_a_name_is_nearest_to_itself() -> None:
    assert nearest("convnet", ["mlp", "convnet", "linear"]) == " Did you mean 'convnet'?"
    assert nearest("covnet", ["mlp", "convnet", "linear"]) == " Did you mean 'convnet'?"
    assert nearest("xyz", ["mlp", "convnet", "linear"]) == ""


# A file for many names

OPEN = """
from shelf import THINGS
from vitbench.registry import UnknownName

COLOURS = ("red", "green")

def meta(name):
    if name not in COLOURS:
        raise UnknownName(f"no paint is {name!r}")
    return f"{name} before it is built"

@THINGS.add_open("paint", lambda: COLOURS, meta)
def build(name, *rest):
    return name, rest
"""


@pytest.fixture
def paints(things: Registry[str], tmp_path: Path) -> Registry[str]:
    """The three things, and paint in two colours."""
    load_plugin(plugin(tmp_path, "paint", OPEN))
    return things


def test_a_file_for_many_names_builds_each_of_them(paints: Registry[str], tmp_path: Path) -> None:
    entry = paints.get("paint/red")
    assert (entry.name, entry.meta, entry.build(1, 2)) == ("paint/red", "red before it is built", ("red", (1, 2)))
    assert entry.plugin_sha256 == plugin_sha256(tmp_path / "paint.py")
    assert paints.open_names("paint") == ("green", "red")
    assert paints.open_names("apple") is None


@pytest.mark.parametrize(("asked", "message"), [
    ("paint/blue", "no paint is 'blue'"), ("paint/", "no paint is ''"), ("paint/red/dark", "no paint is 'red/dark'"),
    ("paint", "thing 'paint' stands for many: write paint/NAME"), ("apple/red", "unknown thing 'apple/red'"),
    ("pain/red", r"unknown thing 'pain/red'; allowed: .*Did you mean 'paint'\?"),
])
def test_a_name_that_a_file_for_many_does_not_have_is_refused(paints: Registry[str], asked: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        paints.get(asked)


def test_a_file_for_many_names_is_named_like_its_file_too(things: Registry[str], tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="'paint' stands in a file named 'other'"):
        load_plugin(plugin(tmp_path, "other", OPEN))
    with pytest.raises(PluginError, match="'apple' is the name of one that ships with vitbench"):
        load_plugin(plugin(tmp_path, "apple", OPEN.replace("paint", "apple")))
