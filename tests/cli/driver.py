"""Runs the command line as a user does: in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

STUDY = """\
question: Does it run?
dataset: digits
models: [linear, mlp:xs]
fractions: [0.02, 0.1]
seeds: 2
budgets: [{steps: 5}]
recipe: {batch_size: 32}
"""
SLOW = {"models": "[convnet:m]", "fractions": "[1]", "seeds": "4", "budgets": "[{steps: 10000}]"}


def write_study(folder: Path, text: str = STUDY, name: str = "tiny") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def vitbench(*arguments: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run to its end; output as text, both streams kept."""
    return subprocess.run([sys.executable, "-m", "vitbench", *map(str, arguments)], cwd=cwd, text=True,
                          capture_output=True, timeout=240, env={**os.environ, "COLUMNS": "160", **env}, check=False)


def start(*arguments: object, cwd: Path) -> "subprocess.Popen[str]":
    """Start in a process group of its own, so that a signal reaches what a terminal's would."""
    return subprocess.Popen([sys.executable, "-m", "vitbench", *map(str, arguments)], cwd=cwd, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def until(ready: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait for a condition; the test fails where it never comes."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def interrupt(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """Ctrl-C to the whole group; what it printed."""
    os.killpg(process.pid, signal.SIGINT)
    return process.communicate(timeout=60)


def records(folder: Path) -> dict[str, bytes]:
    """Text of each record of the study `tiny`, by run id; what a killed process left half-written (.*) is none."""
    return {p.parent.name: p.read_bytes() for p in folder.glob("results/tiny/runs/[!.]*/record.json")}
