"""Whether the runs of a study fit into this machine's memory: asked before any of them starts."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from vitbench.cost import Footprint
from vitbench.environment import memory_bytes, memory_limit_bytes
from vitbench.grid import Resolved, Run, counts_of
from vitbench.study.forecast import SHARED_BYTES, Expected, image_bytes, peak_bytes
from vitbench.study.smaller import nearest_that_fits
from vitbench.training.schedule import EVALUATION_BATCH
from vitbench.units import byte_text

SLACK = 4.0  # what is proposed must fit, too, and runs were measured to take 2 to 4 times their least (docs/log.md)


class TooLarge(ValueError):
    """Runs that do not fit into memory; the message has the numbers and what would fit."""


def allowed_bytes() -> int:
    """Memory that this process and its workers may use."""
    return memory_limit_bytes() or memory_bytes()


def least_bytes(run: Run, counted: Footprint, resolved: Resolved) -> int:
    """Memory that a run needs at the very least: images, weights, gradients, the optimiser's averages, and a batch in
    training or one in evaluation, whichever holds more.

    In bf16 half of what a batch holds in float32: weights and averages stay as they are. Real runs take more, as far as
    kernels and the allocator hold memory of their own (docs/log.md).
    """
    counts, recipe = counts_of(run, resolved), run.spec.recipe
    parts = (sum(counts.train), sum(counts.validation), resolved.test_images)
    averages = 2 if recipe.optimizer == "adamw" else 1
    held = max(recipe.batch(parts[0]) * counted.training_bytes,
               min(EVALUATION_BATCH["cpu"], max(parts)) * counted.evaluation_bytes)
    images = (sum(counts.drawn) + resolved.test_images) * image_bytes(resolved)
    weights = 4 * (2 + averages) * counted.params
    return SHARED_BYTES + images + weights + (held // 2 if recipe.precision == "bf16" else held)


def refuse_too_large(runs: Sequence[Run], resolved: Resolved, costs: Mapping[str, Footprint],
                     measured: Mapping[tuple[str, ...], Expected | None], workers: int) -> None:
    """Raise TooLarge where `workers` of the largest runs at once need more than this process may use.

    `costs` are by label, `measured` by key: what was measured here counts more than the estimate.
    """
    needed = [known.peak_memory_bytes if (known := measured.get(run.key)) else
              least_bytes(run, costs[run.label], resolved) for run in runs]
    allowed, at_once = allowed_bytes(), peak_bytes(needed, workers)
    if at_once <= allowed:
        return
    most, largest = max(zip(needed, runs, strict=True), key=lambda pair: pair[0])
    fit = next((n for n in range(workers - 1, 0, -1) if peak_bytes(needed, n) <= allowed), 0)
    counted, known = costs[largest.label], measured.get(largest.key)
    slack = (most - SHARED_BYTES) / (least_bytes(largest, counted, resolved) - SHARED_BYTES) if known else SLACK

    def fits(run: Run, changed: Footprint) -> bool:
        return SHARED_BYTES + slack * (least_bytes(run, changed, resolved) - SHARED_BYTES) <= allowed

    advice = f"--workers {fit} would fit" if fit else f"not even one fits; {_smaller(largest, counted, resolved, fits)}"
    source = "measured" if known else "at least"
    need = f"{workers} runs at a time need" if workers > 1 else "a run needs"
    raise TooLarge(f"{need} {byte_text(at_once)} of memory, and {byte_text(allowed)} may be "
                   f"used; the largest is {largest.label} with batches of {largest.spec.recipe.batch_size}: "
                   f"{source} {byte_text(most)}. {advice}")


def _smaller(run: Run, counted: Footprint, resolved: Resolved, fits: Callable[[Run, Footprint], bool]) -> str:
    """The nearest options of the model and the largest batch with which one run fits."""
    def too_large(batch_size: int) -> bool:
        recipe = run.spec.recipe.model_dump() | {"batch_size": batch_size}
        return not fits(replace(run, spec=run.spec.changed(recipe=recipe)), counted)

    options = nearest_that_fits(run, resolved, lambda changed: fits(run, changed))
    batch = bisect_right(range(1, run.spec.recipe.batch_size), False, key=too_large)
    found = [text for text in (options, f"batch_size: {batch}" if batch else None) if text]
    return f"one would with {' or '.join(found)}" if found else "take a smaller model or batch_size"
