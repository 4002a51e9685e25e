"""`doctor`: what this machine has, what is missing, and what to do about it. The one light command that loads torch."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Literal

from vitbench.units import byte_text

State = Literal["ok", "warning", "missing", "broken"]
WORKER_BYTES = 500_000_000  # what a small run holds, torch included
LITTLE_DISK_BYTES = 2_000_000_000
OPTIONAL_PROGRAMS = {"chromium": "tests of the page need it", "pdflatex": "nothing in this version needs it",
                     "docker": "nothing in this version needs it", "sbatch": "nothing in this version needs it"}
OPTIONAL_PACKAGES = {"pyarrow": "for `vitbench export --format parquet`: pip install 'vitbench[parquet]'",
                     "ray": "nothing in this version needs it"}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `broken` is something needed; `missing` is not."""

    state: State
    subject: str
    found: str
    advice: str | None = None  # what to do, for any state but ok


def examine(results: Path) -> Iterator[Finding]:
    """All findings. A part that cannot even be looked at is broken, and the others are still told."""
    parts: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
        ("python", _python), ("packages", _packages), ("torch", _torch), ("cores", _cores), ("memory", _memory),
        ("folders", partial(_folders, results)), ("datasets", _datasets), ("optional", _optional),
        ("switches", _switches))
    for subject, part in parts:
        try:
            yield from part()
        except (Exception, SystemExit) as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            yield Finding("broken", subject, told, "install vitbench and its packages again, into a fresh environment")


def _python() -> Iterator[Finding]:
    from packaging.specifiers import SpecifierSet

    from vitbench.environment import code_version

    yield Finding("ok", "vitbench", code_version())
    wanted = metadata("vitbench")["Requires-Python"]
    found = platform.python_version()
    yield _judged("python", found, found in SpecifierSet(wanted), f"use Python {wanted}")
    tried = sys.platform == "linux"
    yield Finding("ok" if tried else "warning", "system", f"{platform.system()} {platform.machine()}",
                  None if tried else "not tried here; on Windows use WSL, since the store needs POSIX file locks")


def _judged(subject: str, found: str, fits: bool, advice: str) -> Finding:
    return Finding("ok", subject, found) if fits else Finding("broken", subject, found, advice)


def _packages() -> Iterator[Finding]:
    from packaging.requirements import Requirement

    for requirement in map(Requirement, requires("vitbench") or ()):
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        advice = f"pip install '{requirement.name}{requirement.specifier}'"
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            yield Finding("broken", requirement.name, "not installed", advice)
            continue
        yield _judged(requirement.name, found, requirement.specifier.contains(found, prereleases=True), advice)


def _torch() -> Iterator[Finding]:
    import torch

    cuda = torch.version.cuda
    yield Finding("ok", "torch build", f"CUDA {cuda}" if cuda else "CPU only")
    devices = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    for i, device in enumerate(devices):
        yield Finding("ok", f"cuda:{i}", f"{device.name}, {byte_text(device.total_memory)}")
    if not devices and shutil.which("nvidia-smi"):
        yield Finding("warning", "cuda", "torch finds no CUDA device, though nvidia-smi is here",
                      f"see whether it lists a device, and whether its driver is new enough for CUDA {cuda}" if cuda
                      else "install a torch built for CUDA")
    elif not devices:
        yield Finding("missing", "cuda", "torch finds no CUDA device", "studies run on the CPU")
    if torch.backends.mps.is_available():
        yield Finding("warning", "mps", "torch finds Apple's MPS", "not used: studies run on the CPU")


def _cores() -> Iterator[Finding]:
    from vitbench.environment import usable_cores

    usable, there = usable_cores(), os.cpu_count()
    yield Finding("ok", "cores", f"{usable} of {there} usable; `vitbench run` starts {usable} workers of one thread")


def _memory() -> Iterator[Finding]:
    from vitbench.environment import memory_bytes, memory_limit_bytes, usable_cores

    limit = memory_limit_bytes()
    allowed, workers = limit or memory_bytes(), usable_cores()
    found = byte_text(memory_bytes()) + (f", of which this container or job may use {byte_text(limit)}" if limit
                                          else "")
    fitting = max(1, allowed // WORKER_BYTES)
    if fitting < workers:
        yield Finding("warning", "memory", found, f"a small run takes about {byte_text(WORKER_BYTES)}: run with "
                                                  f"--workers {fitting}")
    else:
        yield Finding("ok", "memory", found)


def _folders(results: Path) -> Iterator[Finding]:
    from vitbench.datasets import cache_folder

    yield from _folder("results", results, "broken", "choose another folder with --results DIR")
    yield from _folder("cache", cache_folder(), "warning", "set VITBENCH_CACHE to a folder that can be written; else "
                       "datasets are unpacked for every run")


def _folder(subject: str, folder: Path, unwritable: State, advice: str) -> Iterator[Finding]:
    home = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    shown = f"{folder}{'' if folder.exists() else ' (not there yet)'}"
    try:
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        yield Finding(unwritable, subject, f"{shown} cannot be written: {error.strerror}", advice)
        return
    free = shutil.disk_usage(home).free
    little = free < LITTLE_DISK_BYTES
    yield Finding("warning" if little else "ok", subject, f"{shown}, {byte_text(free)} free",
                  "make room; `vitbench prune` shows what can go" if little else None)


def _datasets() -> Iterator[Finding]:
    from vitbench.datasets import DATASETS, where

    for name in DATASETS.names():
        place = where(name)
        yield Finding("ok", f"dataset {name}", place) if place else Finding(
            "missing", f"dataset {name}", "not on this machine", f"from {DATASETS.get(name).meta.source}; fetched when "
            "a study first needs it, else `vitbench run` tells the ways to get it")


def _optional() -> Iterator[Finding]:
    for program, advice in OPTIONAL_PROGRAMS.items():
        place = shutil.which(program)
        yield Finding("ok", program, place) if place else Finding("missing", program, "not installed", advice)
    for package, advice in OPTIONAL_PACKAGES.items():
        try:
            yield Finding("ok", package, version(package))
        except PackageNotFoundError:
            yield Finding("missing", package, "not installed", advice)


def _switches() -> Iterator[Finding]:
    from vitbench.environment import SWITCHES

    changed = {name: os.environ[name] for name, own in SWITCHES.items() if os.environ.get(name, own) != own}
    for name, value in changed.items():
        yield Finding("warning", name, f"{value!r} in your environment", "unset it unless you mean it; vitbench's own "
                      f"is {SWITCHES[name]!r}")
    if not changed:
        yield Finding("ok", "switches", "none of vitbench's is set otherwise")


def show(findings: list[Finding], *, quiet: bool) -> None:
    """A line each, advice below; `quiet` leaves out what is ok."""
    wide = max(len(finding.subject) for finding in findings)
    for finding in findings:
        if finding.state != "ok" or not quiet:
            state = "OK" if finding.state == "ok" else finding.state
            print(f"{state:<7}  {finding.subject:<{wide}}  {finding.found}")
        if finding.advice:  # only what is not ok has one
            print(f"{'':<7}  {'':<{wide}}  -> {finding.advice}")
    broken = sum(finding.state == "broken" for finding in findings)
    print(f"{broken} of what vitbench needs is broken" if broken else "all that vitbench needs is here")
