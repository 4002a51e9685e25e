"""The README's commands, run as written."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# `.ci/run` itself runs these two; here they would run this test again.
MAKE = {"make quickstart", "make test"}


def commands() -> list[str]:
    """Every command of an indented or fenced block of the README, without its comment, in order."""
    lines = re.findall(r"^(?:    )?((?:vitbench|make) [^#\n]*)", (ROOT / "README.md").read_text(), re.MULTILINE)
    return [line.strip() for line in lines]


def test_the_readme_names_both_make_targets_in_its_first_screen() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:24])
    assert all(command in first_screen for command in MAKE)
    for command in MAKE:
        assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.slow
def test_the_readmes_commands_run_as_written(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "results" / "digits", tmp_path / "results" / "digits")
    wanted = [command for command in commands() if command not in MAKE]
    assert len(wanted) >= 5
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in wanted:
        ended = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=600,
                               env={**os.environ, "PATH": path}, check=False)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
