import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.boundaries.probe import ROOT


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter over the package in `folder`."""
    program = Path(sys.executable).with_name("lint-imports")
    if not program.exists():
        pytest.skip("import-linter is not installed")
    return subprocess.run([str(program), "--no-cache"], cwd=folder, capture_output=True, text=True, timeout=60,
                          check=False, env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"})


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "vitbench", tmp_path / "vitbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports_go_down_only() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("place", "line", "contract"), [
    ("report/frame.py", "def f() -> None:\n    import torch\n", "reading results never reaches torch"),
    ("report/frame.py", "def f() -> None:\n    from vitbench.models import MODELS\n",
     "reading results never reaches torch"),
    ("spec.py", "from vitbench.record import RunRecord\n", "imports go down only"),
    ("store.py", "def f() -> None:\n    import vitbench.report.frame\n", "imports go down only"),
    ("metrics/classification.py", "import vitbench.training.run\n", "imports go down only"),
])
def test_an_import_that_goes_up_or_reaches_torch_is_caught_even_inside_a_function(
        clone: Path, place: str, line: str, contract: str) -> None:
    path = clone / "vitbench" / place
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}", encoding="utf-8")
    done = lint(clone)
    assert done.returncode == 1, done.stdout
    assert f"{contract} BROKEN" in done.stdout
