"""Which images a run sees: stratified, nested, paired over models, named by a hash (protocol rules 1-3)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
VALIDATION_EVERY = 5  # positions 5, 10, 15, ... of each class's permutation


class EmptyClass(ValueError):
    """A share that leaves a class without an image, or asks for more than it has."""


@dataclass(frozen=True)
class Counts:
    """Images a class: drawn, and how they part into training and validation (all 0 if any class would have none)."""

    drawn: tuple[int, ...]
    train: tuple[int, ...]
    validation: tuple[int, ...]

    @property
    def has_validation(self) -> bool:
        """True if every class has a validation image."""
        return sum(self.validation) > 0

    def refitted(self) -> "Counts":
        """The same images, all of them for training."""
        return Counts(self.drawn, self.drawn, (0,) * len(self.drawn))


def counts(class_counts: tuple[int, ...], *, fraction: str | None = None,
           images_per_class: int | None = None) -> Counts:
    """Images a class for an exact decimal `fraction`, floor(f N + 1/2), or a number a class.

    Raises EmptyClass with the class and the smallest share that would do.
    """
    short = min(range(len(class_counts)), key=class_counts.__getitem__)
    if images_per_class is not None:
        if class_counts[short] < images_per_class:
            raise EmptyClass(f"class {short} has {class_counts[short]} training images; "
                             f"at most {class_counts[short]} a class can be drawn; found {images_per_class}")
        drawn = (images_per_class,) * len(class_counts)
    else:
        assert fraction is not None
        drawn = tuple(floor(Fraction(fraction) * n + Fraction(1, 2)) for n in class_counts)
    if drawn[short] == 0:
        n = class_counts[short]
        up = Context(prec=4, rounding=ROUND_CEILING)  # so that the share named is one that does
        advice = f"at least {up.divide(1, 2 * n)} is needed" if n else "no share helps"
        raise EmptyClass(f"class {short} with {n} training images gets none; {advice}; found {fraction}")
    validation = tuple(k // VALIDATION_EVERY for k in drawn)
    if 0 in validation:
        validation = (0,) * len(drawn)
    return Counts(drawn, tuple(k - v for k, v in zip(drawn, validation, strict=True)), validation)


@dataclass(frozen=True)
class Subset:
    """Sorted indices into the training split."""

    train: Ints
    validation: Ints

    def refitted(self) -> "Subset":
        """The same images, all of them for training."""
        return Subset(self.drawn, self.validation[:0])

    @property
    def drawn(self) -> Ints:
        """Both parts, sorted."""
        return np.sort(np.concatenate([self.train, self.validation]))

    @property
    def sha256(self) -> str:
        """Names the drawn images: SHA-256 of the sorted indices as decimal text, one a line."""
        return sha256_of(self.drawn)


def sha256_of(sorted_indices: Ints) -> str:
    """SHA-256 of indices as decimal text, one a line."""
    return hashlib.sha256("\n".join(map(str, sorted_indices.tolist())).encode()).hexdigest()


LISTED_BELOW = 0.5  # larger subsets are named by hash and rule: the list would be most of the dataset


def index_file(chosen: Subset, dataset: str, share: str, seed: int, total: int, *,
               options: Mapping[str, Any]) -> dict[str, object]:
    """What is kept with a study to answer 'which images exactly?'; `seed` is that of the subset stream, `options` are
    the dataset's."""
    content: dict[str, object] = {"dataset": dataset, "share": share, "seed": seed, "sha256": chosen.sha256,
                                  "rule": "vitbench.subset.draw of vitbench.streams.Streams.subset_rng"}
    if options:
        content["dataset_options"] = dict(options)
    if len(chosen.drawn) < LISTED_BELOW * total:
        content |= {"train": chosen.train.tolist(), "validation": chosen.validation.tolist()}
    return content


def draw(labels_N: npt.NDArray[np.integer], wanted: Counts, rng: np.random.Generator) -> Subset:
    """The first `wanted.drawn` images of one permutation for each class, every fifth of them for validation.

    Nested: the same generator state gives a smaller share's subset inside a larger one's, part by part
    where both have validation.
    """
    train, validation = [], []
    for label, k in enumerate(wanted.drawn):
        prefix = rng.permutation(np.flatnonzero(labels_N == label))[:k]
        held_out = np.arange(1, k + 1) % VALIDATION_EVERY == 0
        if not wanted.has_validation:
            held_out[:] = False
        train.append(prefix[~held_out])
        validation.append(prefix[held_out])
    return Subset(np.sort(np.concatenate(train)), np.sort(np.concatenate(validation)))


def stratified_sample(labels_N: npt.NDArray[np.integer], limit: int, rng: np.random.Generator) -> Ints:
    """Sorted positions of at most `limit` items, classes in proportion (largest remainder)."""
    if len(labels_N) <= limit:
        return np.arange(len(labels_N))
    classes, sizes = np.unique(labels_N, return_counts=True)
    exact = sizes * limit / len(labels_N)
    share = np.floor(exact).astype(int)
    share[np.argsort(share - exact, kind="stable")[: limit - share.sum()]] += 1
    picked = [rng.permutation(np.flatnonzero(labels_N == c))[:k] for c, k in zip(classes, share, strict=True)]
    return np.sort(np.concatenate(picked))
