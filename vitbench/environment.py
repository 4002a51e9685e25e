"""What the machine and the packages were, without names of people, hosts or folders."""

import contextlib
import os
import platform
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import vitbench
from vitbench.spec import sha256_json

PACKAGES = ("torch", "torchvision", "pytorch-lightning", "timm", "numpy", "scipy", "scikit-learn", "pydantic",
            "omegaconf", "altair")

# Set before torch or wandb is imported; a value that the user set wins.
SWITCHES = {
    "WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true",
    "HF_HUB_OFFLINE": "1",  # without a network each look-up hangs for 47 s
    "RAY_USAGE_STATS_ENABLED": "0", "MPLBACKEND": "Agg",
    # glibc maps and unmaps each array over 128 KB, and the kernel zeroes it: up to a third of a step.
    "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**26),
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # what deterministic matrix products on CUDA ask for
}


def set_switches(threads: int) -> None:
    """Set the environment that workers inherit. Thread counts must be set before torch is imported."""
    for name, value in SWITCHES.items():
        os.environ.setdefault(name, value)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)


@cache
def code_version() -> str:
    """Version, and in a clone the commit, with `+` where the package differs from it: '0.1.0 (1a2b3c4+)'."""
    package = Path(vitbench.__file__).parent
    if not (package.parent / ".git").exists():
        return vitbench.__version__

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(package.parent), *arguments], capture_output=True, text=True,
                              timeout=10, check=True).stdout.strip()

    try:
        dirty = "+" if git("status", "--porcelain", "--untracked-files=no", "--", "vitbench") else ""
        return f"{vitbench.__version__} ({git('rev-parse', '--short=10', 'HEAD')}{dirty})"
    except (OSError, subprocess.SubprocessError):
        return vitbench.__version__


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """What a container or batch job allows this process, None where that is no less than the machine has."""
    with contextlib.suppress(OSError):
        groups = [line.split(":", 2) for line in (root / "proc/self/cgroup").read_text().splitlines()]
        limits = [limit for _, kinds, path in groups for limit in _limits(root / "sys/fs/cgroup", kinds, path)]
        return min((limit for limit in limits if limit < memory_bytes()), default=None)
    return None


def _limits(root: Path, kinds: str, path: str) -> Iterator[int]:
    """Of a control group and those above it, version 2 (no kinds) or 1; in a container `path` may be the host's."""
    if kinds and "memory" not in kinds.split(","):
        return
    top, name = (root / "memory", "memory.limit_in_bytes") if kinds else (root, "memory.max")
    own = top / path.lstrip("/")
    for folder in (own, *own.parents):
        with contextlib.suppress(OSError, ValueError):  # no such file; 'max'
            yield int((folder / name).read_text())
        if folder == top:
            return


def processor() -> str:
    """The processor's name as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def describe(device_name: str) -> dict[str, object]:
    """Versions and machine kind, ready for environments/<hash>.json."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "missing"
    return {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine(),
            "processor": processor(), "cores": os.cpu_count(), "device_name": device_name, "packages": versions}


def environment_id(description: dict[str, object]) -> str:
    """First 16 hex digits of the description's SHA-256."""
    return sha256_json(description)[:16]
