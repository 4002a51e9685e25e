"""How fast made-up images are drawn on one core, at once and in chunks, beside reading as many from the cache.

    python benchmarks/made_up.py [--write]

Prints a Markdown section; `--write` puts it into docs/performance.md. Machines differ and are shared: the ratios carry
over, the rates do not.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module

import numpy as np
from pages import write

from vitbench.datasets import DATASETS, load
from vitbench.datasets._made_up import TRAIN, MadeUp

TITLE = "Drawing made-up images"
NAMES = ("far_pairs", "near_pairs", "textures", "shapes_where")
IMAGES, CHUNK, REPEATS = 20_000, 1_000, 5


def seconds(do: Callable[[], object]) -> float:
    """Median of a few times."""
    found = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        do()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def row(name: str) -> str:
    made = getattr(import_module(f"vitbench.datasets.{name}"), name.upper())
    assert isinstance(made, MadeUp)
    options, image = made.options(), DATASETS.get(name).meta.image
    at_once = seconds(lambda: made.images(options, TRAIN, 0, IMAGES))
    chunks = seconds(lambda: [made.images(options, TRAIN, first, CHUNK) for first in range(0, IMAGES, CHUNK)])
    whole = load(name)  # fills the cache
    cached = seconds(lambda: np.array(load(name).train_images)) * IMAGES / (IMAGES + len(whole.test_labels))
    return (f"| `{name}`, {image.size} x {image.size} | 20,000 | {IMAGES / at_once:,.0f} | {IMAGES / chunks:,.0f} | "
            f"{IMAGES / cached:,.0f} | {at_once / cached:.1f} |")


def section() -> str:
    return "\n".join([
        TITLE, "",
        f"Made by `python benchmarks/made_up.py --write`: images a second on one core, {IMAGES:,} of them. The cache",
        "is read with its checksum, as a run does.", "",
        f"| dataset | asked for | at once | {CHUNK:,} at a time | from the cache | drawing takes x reading |",
        "| --- | ---: | ---: | ---: | ---: | ---: |", *map(row, NAMES), ""])


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["VITBENCH_CACHE"] = temporary
        text = section()
    print(f"## {text}")
    if "--write" in sys.argv:
        write(TITLE, text)
