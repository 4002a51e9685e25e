"""How long judging takes: `claims` on 10,000 made-up records of 60 curve points.

    python benchmarks/verdicts.py [--write]

Two minutes, most of them for making the records. Prints a section; `--write` puts it into docs/performance.md.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pages import write

from vitbench.config import load
from vitbench.record import Cost, Curves, Data, Execution, Final, RunRecord, pack_hits
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder
from vitbench.study.meaning import resolved

TITLE = "Judging claims"
POINTS, IMAGES = 60, 360
CLAIMS = ("large_attention_overfits_little_data", "small_cnn_resists_overfitting", "family_not_size",
          "attention_catches_up_with_data", "attention_overtakes_with_enough_data",
          "attention_underfits_rather_than_overfits", "augmentation_replaces_data", "budget_changes_the_ranking")
STUDY = {
    "question": "made up", "dataset": "digits", "seeds": 100, "fractions": ["0.035", "0.07", "0.14", "0.34", "1"],
    "models": ["token_transformer:s", "token_transformer:l", "convnet:s", "convnet:l", "linear"],
    "regimes": ["none", "light"], "budgets": [{"steps": 300}, {"steps": 600}], "claims": list(CLAIMS)}
PARAMS = {"s": 100_000, "l": 1_600_000, None: 650}


def curves(end: int, rng: np.random.Generator) -> Curves:
    steps = tuple(int(step) for step in np.unique(np.linspace(1, end, POINTS).round()))
    falling = tuple(float(f"{v:.6g}") for v in np.linspace(2.3, 0.1, len(steps)) + rng.normal(0, 0.01, len(steps)))
    rising = tuple(float(f"{v:.6g}") for v in np.linspace(0.1, 0.9, len(steps)))
    return Curves(step=steps, images_seen=tuple(16 * s for s in steps), learning_rate=falling, gradient_norm=falling,
                  train_loss=falling, train_accuracy=rising, val_loss=falling, val_accuracy=rising, test_loss=falling,
                  test_accuracy=rising)


def fill(folder: Path) -> int:
    """Write the study and a record of every run; how many."""
    path = folder / "judging.yaml"
    path.write_text(json.dumps(STUDY))
    study, names = resolved(load(path), import_plugins=False)
    (folder / "judging").mkdir()
    home = StudyFolder("judging", study, names, ResultStore(folder / "judging"))
    home.write({})
    rng = np.random.default_rng(0)
    for run in home.runs:
        hits, drawn = rng.random(IMAGES) < rng.normal(0.85, 0.02), 100
        test = float(hits.mean())
        attention = run.spec.model.startswith("token")
        home.store.write(RunRecord(
            run_id=run.spec.run_id, spec=run.spec, family=names.models[run.label].family, outcome="done",
            data=Data(drawn_images=drawn, train_images=80, val_images=20, test_images=IMAGES, num_classes=10,
                      subset="a" * 64, dataset_sha256="b" * 64),
            card={}, curves=curves(run.spec.budget.amount, rng), test_correct=pack_hits(hits), predictions_sha256=None,
            cost=Cost(params=PARAMS[run.spec.size] + attention, macs=PARAMS[run.spec.size], activations=1,
                      train_images_per_second=1.0, peak_memory_bytes=1, train_seconds=1.0, eval_seconds=1.0,
                      seconds=2.0, shared=False),
            final=Final(train_loss=0.1, train_accuracy=0.95, val_loss=0.5, val_accuracy=test, test_loss=0.5,
                        test_accuracy=test),
            execution=Execution(device="cpu", threads=1, deterministic=True, environment="d" * 16,
                                code_version="made up"),
            started="2026-01-01T00:00:00Z", finished="2026-01-01T00:00:02Z"), None)
    return len(home.runs)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        count = fill(Path(name))
        began = time.perf_counter()
        ended = subprocess.run([sys.executable, "-m", "vitbench", "claims", "judging", "--results", name, "--format",
                                "json"], check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    judged = json.loads(ended.stdout)
    made = (f"{TITLE}\n\nMade by `python benchmarks/verdicts.py --write`: {len(judged)} claims on {count:,} made-up "
            f"records of {POINTS} curve points and {IMAGES} test images, start-up included.\n\n"
            "| what | asked for | measured |\n| --- | ---: | ---: |\n"
            f"| `claims` | 10 s | {seconds:.1f} s |\n| its peak memory | 1,000 MB | {peak:,.0f} MB |\n")
    print(made)
    print([(each["claim"], each["verdict"], each["n"]) for each in judged])
    if "--write" in sys.argv:
        write(TITLE, made)


if __name__ == "__main__":
    main()
