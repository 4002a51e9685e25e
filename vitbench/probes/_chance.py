"""torch's chance, for as long as a probe draws from it."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def seeded(seed: int | np.int64) -> Iterator[None]:
    """Within, torch draws from `seed` on the CPU; afterwards its generator is as it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        yield
