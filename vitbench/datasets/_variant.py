"""What a study's controls do to a dataset before a run sees it: pixels shuffled, labels wrong, duplicates masked."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitbench.datasets import Arrays, UInt8
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


def test_labels(arrays: Arrays, variant: DataVariant) -> UInt8:
    """Labels of the test images that a run of this variant is judged on, in their order."""
    return arrays.test_labels[_new(arrays)] if variant.duplicates == "masked" else arrays.test_labels


def _new(arrays: Arrays) -> np.ndarray:
    """True for each test image that the training split does not hold."""
    split = {image.tobytes() for image in arrays.train_images}
    return np.array([image.tobytes() not in split for image in arrays.test_images], dtype=bool)


def _without_known(arrays: Arrays, chosen: Subset) -> tuple[Arrays, Subset]:
    """Without test images that the training split holds and validation images that the training part holds."""
    part, new = {arrays.train_images[i].tobytes() for i in chosen.train}, _new(arrays)
    unseen = np.array([arrays.train_images[i].tobytes() not in part for i in chosen.validation], dtype=bool)
    return (replace(arrays, test_images=arrays.test_images[new], test_labels=arrays.test_labels[new]),
            Subset(chosen.train, chosen.validation[unseen]))
