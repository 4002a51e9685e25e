"""How long the quick study takes, how well `plan` forecasts it, what a run costs beside training, how fast it is read.

    python benchmarks/quick.py [--write]

Prints a Markdown page; `--write` puts it into docs/performance.md. All figures come from one run on one machine.
Machines differ and are shared: the ratios carry over, the seconds do not.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vitbench.config import DatasetEntry, find, load
from vitbench.environment import describe
from vitbench.grid import Run
from vitbench.record import Execution, RunRecord
from vitbench.store import ResultStore
from vitbench.study.engines.local import LocalEngine
from vitbench.study.engines.worker import Task
from vitbench.study.folder import StudyFolder
from vitbench.study.meaning import resolved

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
HERE = Execution(device="cpu", threads=1, deterministic=True, environment="0" * 16, code_version="benchmark")


def command(*arguments: object, status: int = 0) -> float:
    """Seconds of a vitbench command that ends with `status`."""
    started = time.perf_counter()
    ended = subprocess.run([sys.executable, "-m", "vitbench", *map(str, arguments)], check=False,
                           stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    assert ended.returncode == status
    return seconds


def records(folder: Path) -> list[RunRecord]:
    return [RunRecord.from_json(path.read_bytes()) for path in folder.glob("runs/*/record.json")]


def study(folder: Path, *overrides: str) -> StudyFolder:
    loaded = load(find("quick", folder), list(overrides))
    meaning, names = resolved(loaded, import_plugins=False)
    return StudyFolder("quick", meaning, names, ResultStore(folder / "quick"))


def overheads(folder: Path, repeats: int = 12) -> list[float]:
    """Seconds of a run, from the driver's decision to its stored record, that are no training and no evaluation."""
    of = study(folder, f"seeds={repeats}", "fractions=[0.1]", "models=[linear]", "budgets=[{steps: 20}]")
    of.store.prepare()
    found = []
    with LocalEngine() as engine:
        engine.inspect(DatasetEntry(name="digits"), ())
        for run in of.runs:
            started = time.perf_counter()
            engine.start(Task(run.spec, HERE, of.store.folder, (), False))
            while not list(engine.ended(timeout=1.0)):
                pass
            cost = of.store.read(run.spec.run_id).cost  # type: ignore[union-attr]
            found.append(time.perf_counter() - started - cost.train_seconds - cost.eval_seconds)
    return found


READ = """
import time
import numpy as np
from vitbench import subset
from vitbench.datasets import DATASETS, load
started = time.perf_counter()
arrays = load("fashion_mnist")
counts = subset.counts(DATASETS.get("fashion_mnist").meta.train_counts, fraction="0.1")
subset.draw(arrays.train_labels, counts, np.random.default_rng(0))
print(time.perf_counter() - started)
"""


def fashion_mnist(folder: Path) -> tuple[str, str]:
    """Seconds of reading Fashion-MNIST and drawing a tenth of it: without our cache, and the median of five with it."""
    times = []
    for _ in range(6):
        done = subprocess.run([sys.executable, "-c", READ], env={**os.environ, "VITBENCH_CACHE": str(folder)},
                              capture_output=True, text=True, check=False)
        if done.returncode:
            return ("not measured: its files are not here",) * 2
        times.append(float(done.stdout))
    return f"{times[0]:.2f} s", f"{statistics.median(times[1:]):.3f} s"


def many(folder: Path, template: RunRecord, logits: bytes, seeds: int) -> int:
    """Fill a results folder with records of the template's numbers and its logits; how many."""
    of = study(folder, f"seeds={seeds}")
    of.store.prepare()
    of.write({})

    def write(run: Run) -> None:
        target = of.store.runs / run.spec.run_id
        target.mkdir()
        record = template.model_copy(update={"run_id": run.spec.run_id, "spec": run.spec})
        (target / "record.json").write_text(record.to_json())
        (target / "logits.npy").write_bytes(logits)

    for run in of.runs:
        write(run)
    return len(of.runs)


CLOTHES = ("models=[token_transformer:xs,convnet:xs,resnet:xs,linear,mlp:s]", "fractions=[0.002,0.01]", "seeds=2",
           "budgets=[{steps: 300}]")  # 20 runs


def forecast(folder: Path, name: str, *overrides: str) -> tuple[float, float]:
    """Seconds of a study that was never run here: as `plan --probe` tells, and as it takes."""
    arguments = (name, *overrides, "--results", folder)
    told = subprocess.run([sys.executable, "-m", "vitbench", "plan", *map(str, arguments), "--probe", "--json"],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return json.loads(told)["seconds"], command("run", *arguments)


def told_and_taken(seconds: tuple[float, float]) -> str:
    told, taken = seconds
    return f"{told:.0f} s, took {taken:.0f} s ({taken / told - 1:+.0%})"


def page(folder: Path) -> str:
    quick = forecast(folder, "quick")
    first = quick[1]
    clothes = forecast(folder / "clothes", "fashion_mnist", *CLOTHES)
    planning = command("plan", "quick", "seeds=417", "--results", folder / "planned")
    found = records(folder / "quick")
    again = command("run", "quick", "--results", folder)
    training = sum(r.cost.train_seconds for r in found)
    evaluation = sum(r.cost.eval_seconds for r in found)
    peak = max(r.cost.peak_memory_bytes for r in found)
    over = overheads(folder / "overhead")
    logits = folder / "quick" / "runs" / found[0].run_id / "logits.npy"
    count = many(folder / "many", found[0], logits.read_bytes(), seeds=42)
    reading = command("tables", "quick", "--results", folder / "many")
    # All have the subset of one: every check is made, and faults are found.
    verifying = command("verify", "quick", "--results", folder / "many", status=1)
    helping = command("--help")
    cold, cached = fashion_mnist(folder / "cache")
    cores = len(os.sched_getaffinity(0))
    lines = [
        "# Performance", "",
        "Made by `python benchmarks/quick.py --write`. Seconds are of one run on one shared machine: "
        f"{describe('')['processor']}, {cores} cores, torch {describe('')['packages']['torch']}.", "",  # type: ignore[index]
        "| what | asked for | measured |", "| --- | ---: | ---: |",
        f"| quick study, {len(found)} runs, {cores} workers, imports included | 60 s | {first:.1f} s |",
        f"| its training alone, summed over runs | | {training:.1f} s |",
        f"| its evaluation alone, summed over runs | | {evaluation:.1f} s ({evaluation / training:.0%} of training) |",
        f"| (training + evaluation) / (wall time x workers) | | {(training + evaluation) / (first * cores):.0%} |",
        f"| peak memory of a worker | 1,500 MB | {peak / 1e6:.0f} MB |",
        f"| the unchanged study again | 2 s | {again:.2f} s |",
        f"| a run beside training and evaluation, fork included: median of {len(over)} | 250 ms | "
        f"{1000 * statistics.median(over):.0f} ms |",
        f"| the same, largest | | {1000 * max(over):.0f} ms |",
        f"| `tables` on {count:,} records | 2 s | {reading:.2f} s |",
        f"| `verify` of {count:,} records and their logits | some seconds | {verifying:.2f} s |",
        f"| reading Fashion-MNIST's .gz files and drawing 10 % of it | 0.7 s | {cold} |",
        f"| the same from the cache, median of 5 | 0.1 s | {cached} |",
        f"| forecast of the quick study by `plan --probe` | within 25 % | {told_and_taken(quick)} |",
        f"| the same of 20 runs on Fashion-MNIST | within 25 % | {told_and_taken(clothes)} |",
        f"| `plan` of 10,008 runs | 5 s | {planning:.2f} s |",
        f"| `vitbench --help` | 0.5 s | {helping:.2f} s |", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        text = page(Path(temporary))
    print(text)
    if "--write" in sys.argv:
        _, *others = PAGE.read_text().split("\n## ")  # sections of the other benchmarks
        PAGE.write_text("\n## ".join([text, *others]))
