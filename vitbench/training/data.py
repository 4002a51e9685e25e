"""A run's images, resident on the device as uint8 and normalised there by the fraction's own statistics."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from vitbench import subset
from vitbench.datasets import Arrays
from vitbench.spec import Recipe
from vitbench.streams import Streams
from vitbench.training.augment import Augmentation
from vitbench.training.schedule import SAMPLE

TEST_SAMPLE_SEED = 0  # one fixed sample of a dataset's test split for all runs


@dataclass(frozen=True)
class Part:
    """Images N x C x S x S (uint8, on the device), their labels, and which of them inner curve points look at."""

    images: Tensor
    labels_N: np.ndarray
    sample: np.ndarray

    @classmethod
    def of(cls, name: str, images: np.ndarray, labels_N: np.ndarray, rng: np.random.Generator,
           device: torch.device) -> "Part":
        """Copy to `device`; the sample is stratified and at most SAMPLE[name] images."""
        return cls(torch.tensor(images, device=device), labels_N.astype(np.int64),
                   subset.stratified_sample(labels_N, SAMPLE[name], rng))


class Resident:
    """The parts of a run's data, and its training batches. A batch is a pure function of its step.

    `val` is there only where every class has one, `test` only where the arrays hold test images: those of a tuning
    trial do not.
    """

    def __init__(self, arrays: Arrays, chosen: subset.Subset, streams: Streams, recipe: Recipe,
                 device: torch.device, memory_format: torch.memory_format = torch.contiguous_format, *,
                 augmentation: Augmentation | None = None) -> None:
        rng = streams.sample_rng()
        self._memory_format, self._augmentation = memory_format, augmentation

        def part(name: str, indices: np.ndarray) -> Part:
            return Part.of(name, arrays.train_images[indices], arrays.train_labels[indices], rng, device)

        self.train = part("train", chosen.train)
        self.parts = {"train": self.train}
        if len(chosen.validation):
            self.parts["val"] = part("val", chosen.validation)
        if len(arrays.test_labels):
            self.parts["test"] = Part.of("test", arrays.test_images, arrays.test_labels,
                                         np.random.default_rng(TEST_SAMPLE_SEED), device)
        self.batch_size = recipe.batch(len(chosen.train))
        self._labels = torch.from_numpy(self.train.labels_N).to(device)
        self._mean, self._inverse_deviation = (t.to(device) for t in statistics(arrays.train_images[chosen.train]))
        self._streams = streams
        self._order = lru_cache(maxsize=2)(self._epoch_order)

    def _epoch_order(self, epoch: int) -> Tensor:
        # On the device once a pass: a copy in each step would make the GPU wait for the CPU.
        return torch.from_numpy(self._streams.epoch_order(epoch, len(self.train.labels_N))).to(self._labels.device)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Normalised images of one step and their targets, labels or shares of classes: the next `batch_size` of the
        shuffled passes over the training part, so that every batch is full, whatever the number of images.

        Batches alone are augmented: clean train, validation and test never pass here.
        """
        images = len(self.train.labels_N)
        first = step * self.batch_size
        last = first + self.batch_size
        passes = [self._order(e)[max(first - e * images, 0):last - e * images]
                  for e in range(first // images, (last - 1) // images + 1)]
        chosen = passes[0] if len(passes) == 1 else torch.cat(passes)
        images_NCSS, targets = self.train.images[chosen], self._labels[chosen]
        if self._augmentation is not None:
            images_NCSS, targets = self._augmentation(step, images_NCSS, targets, self._mean)
        return self.normalised(images_NCSS), targets

    @property
    def normalisation(self) -> tuple[Tensor, Tensor]:
        """Mean, and one over the deviation, of the training part's grey levels, each 1 x C x 1 x 1."""
        return self._mean, self._inverse_deviation

    def normalised(self, images: Tensor) -> Tensor:
        """Grey levels as float32 with mean 0 and deviation 1 a channel over the training part as it is."""
        return ((images.float() - self._mean) * self._inverse_deviation).contiguous(memory_format=self._memory_format)


def statistics(images: np.ndarray) -> tuple[Tensor, Tensor]:
    """Mean, and one over the deviation (at least one grey level of 255), per channel as 1 x C x 1 x 1.

    From integer sums, so that the order of images cannot change a bit.
    """
    channels = images.shape[1]
    grey = np.arange(256, dtype=np.int64)
    means, inverses = [], []
    for c in range(channels):
        count = np.bincount(images[:, c].ravel(), minlength=256)
        n, total, squares = int(count.sum()), int(count @ grey), int(count @ grey**2)
        means.append(total / n)
        inverses.append(1 / max(np.sqrt((n * squares - total * total) / n**2), 1.0))
    shape = (1, channels, 1, 1)
    return (torch.tensor(means, dtype=torch.float32).view(shape),
            torch.tensor(inverses, dtype=torch.float32).view(shape))


class Segments:
    """The loader of the Trainer: its epoch e holds the steps up to curve point e, several in each batch.

    A batch is the pair (first step, last step + 1). Lightning charges about 0.3 ms for a batch, whatever is in
    it; images are fetched in the training step.
    """

    STEPS_A_BATCH = 16

    def __init__(self, points: list[int]) -> None:
        self._bounds = list(zip([0, *points], points, strict=False))
        self._epoch = 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        start, end = self._bounds[self._epoch]
        self._epoch += 1
        for first in range(start, end, self.STEPS_A_BATCH):
            yield first, min(first + self.STEPS_A_BATCH, end)
