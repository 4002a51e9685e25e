"""Handwritten digits of 43 writers, 8 x 8 pixels in 17 grey levels, bundled with scikit-learn."""

import numpy as np

from vitbench.datasets import DATASETS, Arrays, DatasetMeta
from vitbench.spec import Duplicates, ImageSpec

META = DatasetMeta(
    version=1,
    image=ImageSpec(size=8, channels=1),
    class_names=tuple("0123456789"),
    train_counts=(142, 146, 142, 146, 145, 145, 145, 143, 139, 144),
    test_counts=(36, 36, 35, 37, 36, 37, 36, 36, 35, 36),
    source="scikit-learn's load_digits: the test part of UCI 'Optical Recognition of Handwritten Digits'",
    licence="CC BY 4.0",
    citation="E. Alpaydin, C. Kaynak (1998). Optical Recognition of Handwritten Digits. UCI Machine Learning "
             "Repository. doi:10.24432/C50P49",
    split="no official split here: 80/20, stratified, drawn once with seed 0; writers are in both parts",
    # Not flip: a mirrored digit is another sign. Not invert: strokes become ground. Not erase and cutmix: without its
    # left half an 8 is a 3.
    keeps_labels=("shift", "rotate", "shear", "intensity", "contrast", "sharpness", "mixup"),
    duplicates=Duplicates(test_in_train=0, within_train=0),
    sha256="51216318dce5b220efe1a6034c435fe4b7ebd4b9715444382679f43e0fb65fb1",
    at_hand=lambda: "bundled with scikit-learn",
)


@DATASETS.add("digits", META)
def digits() -> Arrays:
    """1,437 training and 360 test images, grey levels 0-16 spread over 0-255."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = np.floor(bunch.images[:, None] * 255 / 16 + 0.5).astype(np.uint8)
    labels = bunch.target.astype(np.uint8)
    train, test = _split(labels)
    return Arrays(images[train], labels[train], images[test], labels[test])


def _split(labels_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of both parts. Own draw rather than a library's, whose ties may change between versions."""
    rng = np.random.default_rng(0)
    test = [rng.permutation(np.flatnonzero(labels_N == digit))[:count] for digit, count in enumerate(META.test_counts)]
    chosen = np.sort(np.concatenate(test))
    return np.setdiff1d(np.arange(len(labels_N)), chosen), chosen
