"""The wheel, installed without a clone."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment that holds the wheel, and for the rest sees this one's packages."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT], check=True,
                   capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    (site,) = folder.glob("env/lib/python*/site-packages")
    # Behind the wheel's own folder; its .pth files are not read, so the clone that is installed here stays unseen.
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def run(installed: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([installed / "vitbench", *map(str, arguments)], cwd=cwd, text=True, capture_output=True,
                          timeout=240, check=False, env=environment)


@pytest.mark.slow
def test_the_quick_study_runs_from_any_folder_without_a_clone(installed: Path, tmp_path: Path) -> None:
    where = subprocess.run([installed / "python", "-c", "import vitbench; print(vitbench.__file__)"], cwd=tmp_path,
                           text=True, capture_output=True, check=True).stdout
    assert where.startswith(str(installed.parent))
    ended = run(installed, "run", "quick", "seeds=1", "fractions=[0.1]", "models=[linear,convnet:xs]", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "results" / "quick" / "report.html").stat().st_size > 100_000
    assert "convnet:xs" in run(installed, "tables", "quick", cwd=tmp_path).stdout
    assert "fashion_mnist" in run(installed, "list", "studies", cwd=tmp_path).stdout


@pytest.mark.slow
def test_the_wheel_holds_what_the_package_reads(installed: Path) -> None:
    (package,) = installed.parent.glob("lib/python*/site-packages/vitbench")
    shipped = {path.relative_to(ROOT / "configs") for path in (ROOT / "configs").rglob("*") if path.is_file()}
    assert shipped == {path.relative_to(package / "configs") for path in (package / "configs").rglob("*")
                       if path.is_file()}
    assert {path.name for path in (package / "report").glob("page.*")} == {"page.css", "page.js", "page.html.j2"}
