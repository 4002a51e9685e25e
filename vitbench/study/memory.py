"""Whether the runs of a study fit into this machine's memory: asked before any of them starts."""

from collections.abc import Mapping, Sequence

from vitbench.cost import ModelCost
from vitbench.environment import memory_bytes, memory_limit_bytes
from vitbench.grid import Resolved, Run, counts_of
from vitbench.study.forecast import SHARED_BYTES, Expected, image_bytes, peak_bytes
from vitbench.units import byte_text


class TooLarge(ValueError):
    """Runs that do not fit into memory; the message has the numbers and what would fit."""


def allowed_bytes() -> int:
    """Memory that this process and its workers may use."""
    return memory_limit_bytes() or memory_bytes()


def least_bytes(run: Run, counted: ModelCost, resolved: Resolved) -> int:
    """Memory that a run needs at the very least: images, weights, gradients, the optimiser's averages, half the
    activations.

    Half, because of a normalisation and the activation function after it one output is kept.
    """
    images = (sum(counts_of(run, resolved).drawn) + resolved.test_images) * image_bytes(resolved)
    recipe = run.spec.recipe
    averages = 2 if recipe.optimizer == "adamw" else 1
    batch = recipe.batch(sum(counts_of(run, resolved).train))
    width = 2 if recipe.precision == "bf16" else 4  # of activations; weights are kept in float32
    return SHARED_BYTES + images + 4 * (2 + averages) * counted.params + width * counted.activations * batch // 2


def refuse_too_large(runs: Sequence[Run], resolved: Resolved, costs: Mapping[str, ModelCost],
                     measured: Mapping[tuple[str, ...], Expected | None], workers: int) -> None:
    """Raise TooLarge where `workers` of the largest runs at once need more than this process may use.

    `costs` are by label, `measured` by key: what was measured here counts more than the estimate.
    """
    needed = []
    for run in runs:
        known = measured.get(run.key)
        needed.append(known.peak_memory_bytes if known else least_bytes(run, costs[run.label], resolved))
    allowed, at_once = allowed_bytes(), peak_bytes(needed, workers)
    if at_once <= allowed:
        return
    most, largest = max(zip(needed, runs, strict=True), key=lambda pair: pair[0])
    fit = next((n for n in range(workers - 1, 0, -1) if peak_bytes(needed, n) <= allowed), 0)
    advice = f"--workers {fit} would fit" if fit else "not even one fits: take a smaller model or batch_size"
    source = "measured" if measured.get(largest.key) else "at least"
    raise TooLarge(f"{workers} runs at a time need {byte_text(at_once)} of memory, and {byte_text(allowed)} may be "
                   f"used; the largest is {largest.label} with batches of {largest.spec.recipe.batch_size}: "
                   f"{source} {byte_text(most)}. {advice}")
