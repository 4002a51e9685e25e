"""Records made by hand, for tests of what keeps and reads them."""

import hashlib
from typing import Any

import numpy as np

from tests.test_spec import spec
from vitbench.record import Cost, Curves, Data, Execution, Failure, Final, RunRecord, pack_hits

LOGITS_IC = np.arange(100, dtype=np.float16).reshape(10, 10)
HITS = np.array([True, False, True, True, False, True, True, True, False, True])


def a_record(seed: int = 3, **changes: Any) -> RunRecord:
    """A whole record of ten test images and three curve points."""
    run = spec(seed=seed)
    return RunRecord(**{
        "run_id": run.run_id, "spec": run, "family": "convolution", "outcome": "done",
        "data": Data(drawn_images=140, train_images=112, val_images=28, test_images=len(HITS), num_classes=10,
                     subset="a" * 64, dataset_sha256="b" * 64),
        "card": {"stem": "3x3", "stride": 1, "dropout": 0.0, "batch_norm": True, "patch": None},
        "cost": Cost(params=1000, macs=5000, activations=300, train_images_per_second=812.5, peak_memory_bytes=2**20,
                     train_seconds=1.5, eval_seconds=0.25, seconds=2.0, shared=False),
        "curves": Curves(step=(0, 100, 300), images_seen=(0, 3200, 9600), learning_rate=(0.0, 1e-3, 1e-05),
                         gradient_norm=(None, 1.25, 0.5), train_loss=(2.3, 0.5, 0.01),
                         train_accuracy=(0.1, 0.8, 1.0), val_loss=(2.3, 0.7, 0.9), val_accuracy=(0.1, 0.7, 0.75),
                         test_loss=(2.3, 0.8, 0.95), test_accuracy=(0.1, 0.6, 0.7)),
        "final": Final(train_loss=0.01, train_accuracy=1.0, val_loss=0.9, val_accuracy=0.75, test_loss=0.95,
                       test_accuracy=0.7),
        "test_correct": pack_hits(HITS), "predictions_sha256": hashlib.sha256(LOGITS_IC.tobytes()).hexdigest(),
        "execution": Execution(device="cpu", threads=1, deterministic=True, environment="d" * 16,
                               code_version="0.1.0"),
        "started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T00:00:02Z", **changes})


def a_failure(seed: int = 3, reason: str = "ValueError: no") -> Failure:
    """A run that failed."""
    run = spec(seed=seed)
    return Failure(run_id=run.run_id, spec=run, reason=reason, started="2026-01-01T00:00:00Z",
                   finished="2026-01-01T00:00:02Z")
