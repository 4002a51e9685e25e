"""What a study's controls do to a dataset before a run sees it: pixels shuffled, labels wrong, duplicates masked."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitbench.datasets import Arrays, DatasetError, UInt8, digests
from vitbench.spec import DataVariant
from vitbench.streams import Streams
from vitbench.subset import Subset

SHUFFLE_SEED = 0  # one permutation for all runs of all studies


def varied(arrays: Arrays, chosen: Subset, variant: DataVariant, streams: Streams,
           num_classes: int) -> tuple[Arrays, Subset]:
    """The arrays as the run sees them, and which of the chosen images it may look at.

    Only labels of the training part are ever wrong, and only test and validation images are ever left out, so that
    the subset that a run's record names stays what was drawn.
    """
    if variant.duplicates == "masked":
        arrays, chosen = _without_known(arrays, chosen)
    if variant.label_noise != "0":
        labels_N = arrays.train_labels.copy()
        noisy_N = noisy_labels(labels_N, float(variant.label_noise), num_classes, streams.noise_rng())
        labels_N[chosen.train] = noisy_N[chosen.train]
        arrays = replace(arrays, train_labels=labels_N)
    if variant.pixels == "shuffled":
        arrays = replace(arrays, train_images=shuffled(arrays.train_images), test_images=shuffled(arrays.test_images))
    return arrays, chosen


def shuffled(images: UInt8) -> UInt8:
    """Images N x C x S x S with their places permuted, all channels of all images alike: no neighbourhood is left."""
    places = images.shape[2] * images.shape[3]
    return images.reshape(*images.shape[:2], places)[..., pixel_order(places)].reshape(images.shape)


def pixel_order(places: int) -> npt.NDArray[np.int64]:
    """Where each place of a shuffled image comes from, in raster order."""
    return np.random.default_rng(SHUFFLE_SEED).permutation(places)


def noisy_labels(labels_N: UInt8, share: float, num_classes: int, rng: np.random.Generator) -> UInt8:
    """Labels N of which about `share` became another class, each other class alike.

    Nested: the same generator state makes a smaller share's wrong labels wrong in a larger one, too, and alike.
    """
    wrong_N = rng.random(len(labels_N)) < share
    other_N = (labels_N + rng.integers(1, num_classes, len(labels_N))) % num_classes
    return np.where(wrong_N, other_N, labels_N).astype(labels_N.dtype)


def labels_of_test(arrays: Arrays, variant: DataVariant) -> UInt8:
    """Labels of the test images that a run of this variant is judged on, in their order."""
    return arrays.test_labels[_new(arrays)] if variant.duplicates == "masked" else arrays.test_labels


def _new(arrays: Arrays) -> np.ndarray:
    """True for each test image that the training split does not hold."""
    return _not_among(arrays.test_images, arrays.train_images)


def _not_among(images: UInt8, others: UInt8) -> np.ndarray:
    known = set(digests(others))
    return np.array([digest not in known for digest in digests(images)], dtype=bool)


def _without_known(arrays: Arrays, chosen: Subset) -> tuple[Arrays, Subset]:
    """Without test images that the training split holds and validation images that the training part holds."""
    new = _new(arrays)
    if not new.any():
        raise DatasetError(f"duplicates: masked leaves none of the {len(new):,} test images, for the training split "
                           "holds them all; use kept")
    unseen = _not_among(arrays.train_images[chosen.validation], arrays.train_images[chosen.train])
    return (replace(arrays, test_images=arrays.test_images[new], test_labels=arrays.test_labels[new]),
            Subset(chosen.train, chosen.validation[unseen]))
