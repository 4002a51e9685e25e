"""When a run steps, how fast, and where its curve is measured and on how much: pure functions, without torch."""

from math import cos, pi

from vitbench.spec import Recipe

LOG_POINTS, SHARES = 8, 10
EVALUATION_BATCH = {"cpu": 128, "cuda": 1024}  # on a CPU the activations stay near its caches; CUDA is filled by more
# Images of each part that inner curve points look at. Harms rest on validation and test; clean train is only drawn.
SAMPLE = {"train": 500, "val": 1000, "test": 1000}


def curve_points(steps: int) -> list[int]:
    """Steps after which the curve is measured: 8 log-spaced points and every tenth of the schedule (rule 14)."""
    log_spaced = {round(steps ** (k / (LOG_POINTS - 1))) for k in range(LOG_POINTS)}
    tenths = {-(-steps * k // SHARES) for k in range(1, SHARES + 1)}
    return sorted(log_spaced | tenths)


def images_evaluated(steps: int, images: dict[str, int]) -> int:
    """Images that a run evaluates: a sample of each part at inner curve points, all of them at the last.

    `images` counts 'train', 'val' and 'test'.
    """
    sampled = sum(min(images[part], SAMPLE[part]) for part in SAMPLE)
    return (len(curve_points(steps)) - 1) * sampled + sum(images.values())


def learning_rate(recipe: Recipe, step: int, steps: int) -> float:
    """Learning rate of step 0, 1, ..., steps - 1.

    `cosine`: linear warm-up to the peak, then half a cosine to 0 (Loshchilov and Hutter 2017, without restarts).
    `one_cycle`: half a cosine from peak / 25 up, then half a cosine down to peak / 250,000 (Smith and Topin
    2018, with torch's default factors); both change over at `warmup` x steps.
    """
    peak, turn = recipe.learning_rate, recipe.warmup * steps
    if recipe.schedule == "cosine":
        if step < turn:
            return peak * (step + 1) / (turn + 1)
        return peak * (1 + cos(pi * (step - turn) / (steps - turn))) / 2
    low, last, top = peak / 25, peak / 250_000, recipe.warmup * steps - 1
    if step <= top:
        return _half_cosine(low, peak, step / top if top > 0 else 1.0)
    return _half_cosine(peak, last, (step - top) / max(steps - 1 - top, 1))


def _half_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + cos(pi * share)) / 2
