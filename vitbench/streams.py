"""Independent random streams of a run: subset, initialisation, order and augmentation never share a draw."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitbench.spec import RunSpec

# Spawn keys are part of every result ever made: append, never renumber.
SUBSET, INIT, ORDER, AUGMENT, STEP, SAMPLE, NOISE = range(7)


@dataclass(frozen=True)
class Streams:
    """The seeds of one run's streams. Everything drawn from them is a pure function of (stream, position)."""

    subset: int
    init: int
    order: int
    augment: int

    @classmethod
    def of(cls, spec: RunSpec) -> "Streams":
        """Each stream's seed is the run's, unless `spec.streams` sets it apart."""
        chosen = spec.streams.model_dump()
        return cls(**{name: spec.seed if seed is None else seed for name, seed in chosen.items()})

    def subset_rng(self) -> np.random.Generator:
        """Draws the subset; the same for every model, regime and budget."""
        return np.random.default_rng(np.random.SeedSequence(self.subset, spawn_key=(SUBSET,)))

    def sample_rng(self) -> np.random.Generator:
        """Draws which training and validation images the inner curve points look at."""
        return np.random.default_rng(np.random.SeedSequence(self.subset, spawn_key=(SAMPLE,)))

    def noise_rng(self) -> np.random.Generator:
        """Draws which labels are wrong; the same for every model and share."""
        return np.random.default_rng(np.random.SeedSequence(self.subset, spawn_key=(NOISE,)))

    def init_seed(self) -> int:
        """Seed of torch's generator while the model is built."""
        return int(np.random.SeedSequence(self.init, spawn_key=(INIT,)).generate_state(1, np.uint64)[0])

    def step_seeds(self, steps: int) -> npt.NDArray[np.uint64]:
        """Seeds of torch's generator before each step (dropout); a longer run begins with the same ones."""
        seeds: npt.NDArray[np.uint64] = np.random.SeedSequence(self.order, spawn_key=(STEP,)).generate_state(
            steps, np.uint64)  # type: ignore[assignment]  # NumPy's stubs give the union of both types
        return seeds

    def epoch_order(self, epoch: int, images: int) -> npt.NDArray[np.int64]:
        """Permutation of the training images in pass number `epoch`, whatever ran before."""
        rng = np.random.default_rng(np.random.SeedSequence(self.order, spawn_key=(ORDER, epoch)))
        return rng.permutation(images)

    def augment_rng(self, step: int) -> np.random.Generator:
        """Draws what happens to each image of step number `step`, whatever ran before."""
        return np.random.default_rng(np.random.SeedSequence(self.augment, spawn_key=(AUGMENT, step)))
