"""What augmentation costs: the batches of each regime beside a training step of convnet s, turn by turn in one run.

    python benchmarks/regimes.py [--write]

One thread; random images of the datasets' form. Prints a section; `--write` puts it into docs/performance.md.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pages import write

from vitbench import models
from vitbench.datasets import DATASETS, DatasetMeta
from vitbench.spec import Regime
from vitbench.streams import Streams
from vitbench.training.augment import Augmentation

TITLE = "What augmentation costs"
STEPS, WARM_UP = 60, 5
CASES: list[tuple[str, int, Regime, str]] = [  # the last: the largest share asked for
    ("fashion_mnist", 64, "light", ""), ("fashion_mnist", 64, "strong", "25 %"),
    ("digits", 32, "light", ""), ("digits", 32, "strong", "")]
CPU = torch.device("cpu")


def training_step(meta: DatasetMeta) -> Callable[[torch.Tensor, torch.Tensor], None]:
    model = models.build("convnet", "s", {}, meta.image, meta.num_classes)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step(images: torch.Tensor, targets: torch.Tensor) -> None:
        loss = F.cross_entropy(model((images.float() - 72.0) / 90.0), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def seconds(meta: DatasetMeta, batch: int, regime: Regime) -> tuple[float, float]:
    """Medians of a step without augmentation and of the augmentation of one batch."""
    train, augmentation = training_step(meta), Augmentation.of(regime, meta, Streams(0, 0, 0, 0), CPU)
    assert augmentation is not None
    rng, fill, times = np.random.default_rng(0), torch.full((1, 1, 1, 1), 72.0), []
    form = (batch, meta.image.channels, meta.image.size, meta.image.size)
    for step in range(WARM_UP + STEPS):
        images = torch.from_numpy(rng.integers(0, 256, form, dtype=np.uint8))
        labels = torch.from_numpy(rng.integers(0, meta.num_classes, batch))
        began = time.perf_counter()
        train(images, labels)
        between = time.perf_counter()
        augmentation(step, images, labels, fill)
        times.append((between - began, time.perf_counter() - between))
    steps, augmentations = zip(*times[WARM_UP:], strict=True)
    return statistics.median(steps), statistics.median(augmentations)


def section() -> str:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # as in a run
    rows = []
    for name, batch, regime, asked in CASES:
        meta = DATASETS.get(name).meta
        step, augmentation = seconds(meta, batch, regime)
        rows.append(f"| {meta.image.size} px, {batch} images, words of {name} | `{regime}` | {asked} | "
                    f"{augmentation / step:.0%} ({1000 * augmentation:.1f} of {1000 * step:.0f} ms) |\n")
    return (f"{TITLE}\n\nMade by `python benchmarks/regimes.py --write`: a batch's augmentation as a share of a "
            "training step of convnet s\nwithout it; medians, one thread.\n\n"
            "| batch | regime | asked for | measured |\n| --- | --- | ---: | ---: |\n" + "".join(rows))


if __name__ == "__main__":
    text = section()
    print(f"## {text}")
    if "--write" in sys.argv:
        write(TITLE, text)
