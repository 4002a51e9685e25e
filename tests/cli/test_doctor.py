"""`doctor` on machines that lack something."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.driver import vitbench
from vitbench import datasets
from vitbench.cli import doctor
from vitbench.cli.doctor import Finding, examine
from vitbench.datasets import DATASETS
from vitbench.environment import SWITCHES, memory_bytes, memory_limit_bytes, usable_cores


@pytest.fixture
def found(tmp_path: Path):
    """Findings by subject, after changes to this process's environment."""
    return lambda: {finding.subject: finding for finding in examine(tmp_path / "results")}


def without_switches(patch: pytest.MonkeyPatch) -> None:
    for name in SWITCHES:
        patch.delenv(name, raising=False)


def test_a_whole_machine_is_told_in_lines_and_as_json(tmp_path: Path) -> None:
    shown = vitbench("doctor", cwd=tmp_path)
    assert shown.returncode == 0, shown.stdout
    assert shown.stdout.splitlines()[-1] == "all that vitbench needs is here"
    listed = json.loads(vitbench("doctor", "--json", cwd=tmp_path).stdout)
    assert all(finding.keys() == {"state", "subject", "found", "advice"} for finding in listed)
    assert {"vitbench", "python", "torch", "torch build", "cores", "memory", "results", "cache", "dataset digits",
            "dataset fashion_mnist", "chromium", "pyarrow"} <= {finding["subject"] for finding in listed}
    assert all((finding["state"] == "ok") == (finding["advice"] is None) for finding in listed)
    for finding in listed:
        assert f"{finding['subject']} " in shown.stdout
    assert not (tmp_path / "results").exists()  # it looks, and makes nothing


@pytest.mark.parametrize("code", ["raise OSError('libcudart.so: cannot open')", "raise SystemExit(3)", "1 / 0"])
def test_a_torch_that_does_not_import_is_reported_and_the_rest_is_told(tmp_path: Path, code: str) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "torch.py").write_text(code)
    path = f"{tmp_path / 'broken'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    shown = vitbench("doctor", "-q", cwd=tmp_path, PYTHONPATH=path)
    assert shown.returncode == 1
    assert "Traceback" not in shown.stderr
    first, *_, last = shown.stdout.splitlines()
    assert first.split()[:2] == ["broken", "torch"]
    assert last == "1 of what vitbench needs is broken"
    assert not any(line.startswith("OK") for line in shown.stdout.splitlines())


def test_packages_are_held_to_the_installed_metadata(found, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["numpy>=2", "scipy>=99", "no-such-package-here>=1", "pyarrow>=99; extra == 'parquet'"]
    monkeypatch.setattr(doctor, "requires", lambda _: wanted)
    findings = found()
    assert findings["numpy"].state == "ok"
    assert findings["scipy"].state == "broken"
    assert findings["scipy"].advice == "pip install 'scipy>=99'"
    assert findings["no-such-package-here"] == Finding("broken", "no-such-package-here", "not installed",
                                                       "pip install 'no-such-package-here>=1'")
    assert findings["pyarrow"].state != "broken"  # an extra is not needed


def test_a_results_folder_that_cannot_be_written_is_broken_and_a_cache_only_warned_of(
        found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VITBENCH_CACHE", str(tmp_path / "file" / "cache"))
    assert found()["cache"].state == "warning"
    (unwritable,) = (f for f in examine(tmp_path / "file" / "results") if f.subject == "results")
    assert unwritable.state == "broken"
    assert "cannot be written: Not a directory" in unwritable.found
    assert "--results" in str(unwritable.advice)


def test_a_full_disk_and_little_memory_are_warned_of(found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LITTLE_DISK_BYTES", 10**18)
    monkeypatch.setattr(doctor, "WORKER_BYTES", memory_bytes() // usable_cores() + 10**9)
    assert "vitbench prune" in str(found()["results"].advice)
    assert "--workers" in str(found()["memory"].advice)


def test_each_dataset_is_asked_and_one_that_is_not_here_says_where_from(
        found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VITBENCH_DATA", str(tmp_path))  # empty
    assert found()["dataset digits"].found == "bundled with scikit-learn"
    fashion = found()["dataset fashion_mnist"]
    assert fashion.state == "missing"
    assert DATASETS.get("fashion_mnist").meta.source in str(fashion.advice)
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (tmp_path / f"{name}-ubyte.gz").touch()
    assert found()["dataset fashion_mnist"].found == str(tmp_path)
    datasets.load("digits")
    assert found()["dataset digits"].found == f"in the cache, {tmp_path / 'cache' / 'digits@1'}"


def test_a_switch_that_the_user_set_otherwise_is_named(found, monkeypatch: pytest.MonkeyPatch) -> None:
    without_switches(monkeypatch)
    monkeypatch.setenv("MPLBACKEND", "Agg")  # as vitbench sets it
    assert found()["switches"].state == "ok"
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert found()["HF_HUB_OFFLINE"].state == "warning"
    assert "'1'" in str(found()["HF_HUB_OFFLINE"].advice)


@pytest.mark.parametrize(("groups", "files", "limit"), [
    ("0::/job/step\n", {"sys/fs/cgroup/job/memory.max": "1000000\n", "sys/fs/cgroup/job/step/memory.max": "max\n"},
     10**6),
    ("0::/a-path-of-the-host\n", {"sys/fs/cgroup/memory.max": "2000000\n"}, 2 * 10**6),
    ("9:cpu:/x\n4:memory:/x\n0::/\n", {"sys/fs/cgroup/memory/memory.limit_in_bytes": "3000000\n"}, 3 * 10**6),
    ("4:memory:/x\n", {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n"}, None),
    ("0::/\n", {"sys/fs/cgroup/memory.max": "max\n"}, None),
    (None, {}, None),
])
def test_the_memory_limit_of_a_container_or_job_is_found(tmp_path: Path, groups: str | None, files: dict[str, str],
                                                         limit: int | None) -> None:
    for name, text in (files | ({"proc/self/cgroup": groups} if groups else {})).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_limit_bytes(tmp_path) == limit
