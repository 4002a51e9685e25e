"""Datasets with options: apart in the cache, checked there, and a plug-in may have them, too."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vitbench import registry
from vitbench.datasets import DATASETS, DatasetError, content_sha256, load, resolve
from vitbench.options import BadOption
from vitbench.registry import load_plugin

FEW = {"images": 100, "test_images": 100}

PLUGIN = """
from typing import Annotated
import numpy as np
from pydantic import Field
from vitbench.datasets import DATASETS, Arrays, DatasetMeta
from vitbench.spec import Duplicates, Frozen, ImageSpec

class Options(Frozen):
    start: Annotated[int, Field(ge=0, le=100)] = 3

def meta(options):
    return DatasetMeta(
        version=1, image=ImageSpec(size=2, channels=1), class_names=("even", "odd"), train_counts=(3, 3),
        test_counts=(1, 1), source="here", licence="MIT", citation="none", split="none", keeps_labels=(), sha256=None,
        duplicates=Duplicates(test_in_train=0, within_train=0), options=Options, variant=meta)

@DATASETS.add("mine", meta(Options()))
def mine(options):
    images = np.arange(8 * 4, dtype=np.uint8).reshape(8, 1, 2, 2) + np.uint8(options.start)
    labels = np.arange(8, dtype=np.uint8) % 2
    return Arrays(images[:6], labels[:6], images[6:], labels[6:])
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VITBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def builds(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows by the options each time near_pairs is built anew."""
    entry, made = DATASETS.get("near_pairs"), list[object]()
    monkeypatch.setitem(DATASETS._entries, "near_pairs",
                        replace(entry, build=lambda options: made.append(options) or entry.build(options)))
    return made


def test_each_choice_of_options_has_a_cache_of_its_own(cache: Path, builds: list[object]) -> None:
    for options in ({}, FEW, {**FEW, "seed": 1}, FEW, {}, {"canvas": 28}):  # 28 is the default
        load("near_pairs", options)
    assert len(builds) == 3
    names = sorted(path.name for path in cache.iterdir())
    assert names[0] == "near_pairs@1"
    assert all(name.startswith("near_pairs@1-") for name in names[1:])
    assert isinstance(load("near_pairs", FEW).train_images, np.memmap)


def test_the_checksum_of_what_was_built_comes_with_it_from_the_cache_too(builds: list[object]) -> None:
    built, cached = load("near_pairs", FEW), load("near_pairs", FEW)
    assert built.sha256 == cached.sha256 == content_sha256(cached)
    assert load("digits").sha256 == DATASETS.get("digits").meta.sha256


@pytest.mark.parametrize("damage", ["flipped", "no checksum", "wrong checksum", "binary checksum"])
def test_a_damaged_cache_of_options_is_healed(cache: Path, builds: list[object], damage: str) -> None:
    whole = load("near_pairs", FEW).sha256
    (folder,) = cache.iterdir()
    path = folder / ("train_images.npy" if damage == "flipped" else "sha256")
    content = path.read_bytes()
    if damage == "no checksum":
        path.unlink()
    else:
        path.write_bytes({"flipped": content[:-1] + bytes([content[-1] ^ 1]), "wrong checksum": b"0" * 64,
                          "binary checksum": b"\xff\xfe"}[damage])
    assert load("near_pairs", FEW).sha256 == whole
    assert len(builds) == 2
    load("near_pairs", FEW)
    assert len(builds) == 2


def test_made_up_images_that_repeat_are_refused_and_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = DATASETS.get("near_pairs")
    arrays = load("near_pairs", FEW)
    twice = replace(arrays, test_images=arrays.train_images)
    monkeypatch.setitem(DATASETS._entries, "near_pairs", replace(entry, build=lambda _: twice))
    monkeypatch.setenv("VITBENCH_CACHE", str(cache / "other"))
    with pytest.raises(DatasetError, match=r"declares duplicates test_in_train=0 .*; found test_in_train=100 "):
        load("near_pairs", FEW)
    assert not (cache / "other").exists()


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for a plug-in; what it registers goes again."""
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS._entries))
    monkeypatch.setattr(registry, "_LOADED", {})
    return tmp_path / "mine.py"


def test_a_plug_in_may_have_options(cache: Path, plugged: Path) -> None:
    plugged.write_text(PLUGIN)
    load_plugin(plugged)
    assert load("mine").train_images.flat[0] == 3
    assert load("mine", {"start": 9}).train_images.flat[0] == 9
    assert resolve("mine", {"start": 3})[1] == {}
    assert resolve("mine", {"start": 9})[1] == {"start": 9}
    with pytest.raises(BadOption, match="start: should be less than or equal to 100; found 101"):
        load("mine", {"start": 101})
    with pytest.raises(BadOption, match=r"strt: 'mine' has no such option; allowed: start. Did you mean 'start'\?"):
        load("mine", {"strt": 1})


def test_an_edited_plug_in_without_a_checksum_does_not_find_what_its_earlier_form_built(
        cache: Path, plugged: Path) -> None:
    plugged.write_text(PLUGIN)
    load_plugin(plugged)
    first = load("mine").sha256
    del DATASETS._entries["mine"]
    plugged.write_text(PLUGIN.replace("np.arange(8 * 4,", "7 + np.arange(8 * 4,"))
    load_plugin(plugged)
    assert load("mine").sha256 != first
