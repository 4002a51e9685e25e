"""Which packages a piece of code loads, in a fresh process."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "torchvision", "timm", "pytorch_lightning", "torchmetrics", "wandb")

_STEPS = """
import contextlib, io, json, sys, traceback
told = {{}}
for name, code in {steps!r}:
    out, error = io.TextIOWrapper(io.BytesIO(), "utf-8"), None
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        try:
            exec(code, {{"__name__": "__probe__"}})
        except Exception:
            error = traceback.format_exc()
    out.flush()
    told[name] = [sorted(set(sys.modules) & set({packages!r})), out.buffer.getvalue().decode(), error]
print(json.dumps(told))
"""


class Step(NamedTuple):
    """What is loaded after a piece of code, what it printed, and the traceback where it failed."""

    loaded: list[str]
    printed: str
    error: str | None


def after_each(steps: Sequence[tuple[str, str]], packages: Sequence[str], cwd: Path = ROOT) -> dict[str, Step]:
    """Runs named pieces of code one after the other in one fresh process, looking for `packages` after each."""
    code = _STEPS.format(steps=list(steps), packages=list(packages))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, timeout=120,
                          check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    return {name: Step(*told) for name, told in json.loads(done.stdout).items()}


def loads(code: str, *packages: str) -> bool:
    """True if `code` loads any of `packages` in a fresh process."""
    step = after_each([("code", code)], packages)["code"]
    assert step.error is None, step.error
    return bool(step.loaded)


def loads_torch(code: str) -> bool:
    """True if `code` loads torch in a fresh process."""
    return loads(code, "torch")
