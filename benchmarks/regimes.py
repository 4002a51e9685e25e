"""What augmentation costs: the batches of each regime beside a training step of convnet s, turn by turn in one run.

    python benchmarks/regimes.py [--write]

28 x 28 pixels, batches of 64, all words allowed, one thread. Prints a section; `--write` puts it into
docs/performance.md.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

from vitbench import models
from vitbench.datasets import DATASETS
from vitbench.spec import Regime
from vitbench.streams import Streams
from vitbench.training.augment import Augmentation

PAGE, TITLE = Path(__file__).parents[1] / "docs" / "performance.md", "What augmentation costs"
BATCH, STEPS, WARM_UP = 64, 60, 5
CPU = torch.device("cpu")


def training_step() -> Callable[[torch.Tensor, torch.Tensor], None]:
    meta = DATASETS.get("fashion_mnist").meta
    model = models.build("convnet", "s", {}, meta.image, meta.num_classes)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step(images: torch.Tensor, targets: torch.Tensor) -> None:
        loss = F.cross_entropy(model((images.float() - 72.0) / 90.0), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def seconds(regime: Regime) -> tuple[float, float]:
    """Medians of a step without augmentation and of the augmentation of one batch."""
    meta, train = DATASETS.get("fashion_mnist").meta, training_step()
    assert meta.image.size == 28
    augmentation = Augmentation.of(regime, meta, Streams(0, 0, 0, 0), CPU)
    assert augmentation is not None
    rng, fill, times = np.random.default_rng(0), torch.full((1, 1, 1, 1), 72.0), []
    for step in range(WARM_UP + STEPS):
        images = torch.from_numpy(rng.integers(0, 256, (BATCH, 1, 28, 28), dtype=np.uint8))
        labels = torch.from_numpy(rng.integers(0, 10, BATCH))
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
    for regime, asked in (("light", ""), ("strong", "25 %")):
        step, augmentation = seconds(regime)  # type: ignore[arg-type]
        rows.append(f"| `{regime}` | {asked} | {augmentation / step:.1%} | {1000 * augmentation:.1f} of "
                    f"{1000 * step:.0f} ms |\n")
    return (f"{TITLE}\n\nMade by `python benchmarks/regimes.py --write`: batches of {BATCH} images of 28 x 28 pixels, "
            "all words allowed, one\nthread; the rest of the step is convnet s without augmentation.\n\n"
            "| regime | asked for | share of a step | medians |\n| --- | ---: | ---: | ---: |\n" + "".join(rows))


def write(made: str) -> None:
    """In the place of the section of this title, or at the end."""
    first, *sections = PAGE.read_text().split("\n## ")
    others = [part for part in sections if not part.startswith(f"{TITLE}\n")]
    PAGE.write_text("\n## ".join([first, *others, made]))


if __name__ == "__main__":
    text = section()
    print(f"## {text}")
    if "--write" in sys.argv:
        write(text)
