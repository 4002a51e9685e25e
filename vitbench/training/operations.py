"""Augmentations of whole batches on their device, each image with numbers of its own.

torchvision's transforms draw once a batch, so its kernels are called here for the images that drew the same.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from math import cos, log, radians, sin

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor
from torchvision.transforms.v2 import functional as kernels

from vitbench import regimes

# What changes grey levels only: images N x C x S x S and a sign, 1 or -1, to images of the same form, uint8.
TONES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "brightness": lambda x, sign: kernels.adjust_brightness_image(x, 1 + sign * regimes.FACTOR),
    "contrast": lambda x, sign: kernels.adjust_contrast_image(x, 1 + sign * regimes.FACTOR),
    "colour": lambda x, sign: kernels.adjust_saturation_image(x, 1 + sign * regimes.FACTOR),
    "sharpness": lambda x, sign: kernels.adjust_sharpness_image(x, 1 + sign * regimes.FACTOR),
    "posterize": lambda x, _: kernels.posterize_image(x, regimes.BITS),
    "solarize": lambda x, _: kernels.solarize_image(x, regimes.THRESHOLD),
    "autocontrast": lambda x, _: kernels.autocontrast_image(x),
    "equalize": lambda x, _: kernels.equalize_image(x),
}
SIGNED = ("brightness", "contrast", "colour", "sharpness")
_COS, _SIN = cos(radians(regimes.DEGREES)), sin(radians(regimes.DEGREES))
# What changes places only: the matrix from a pixel's (x, y) to where it is taken from, for the sign 1; -1: its inverse.
TURNS = {"rotate": ((_COS, -_SIN), (_SIN, _COS)), "shear_x": ((1.0, regimes.SHEAR), (0.0, 1.0)),
         "shear_y": ((1.0, 0.0), (regimes.SHEAR, 1.0))}


def moved(images_NCSS: Tensor, rng: np.random.Generator, *, shift: bool, flip: bool) -> Tensor:
    """Each image shifted by whole pixels, black entering, then mirrored or not: dtype and grey levels stay.

    A regime that does only one of both draws the same for it.
    """
    N, C, S, _ = images_NCSS.shape
    most = max(1, S // regimes.SHIFT)
    by_2N1 = rng.integers(-most, most + 1, size=(2, N, 1)) * shift
    mirrored_N = (rng.random(N) < 0.5) & flip
    row_NS, column_NS = np.arange(S) + most + by_2N1
    column_NS = np.where(mirrored_N[:, None], column_NS[:, ::-1], column_NS)
    places_2NS = _on(images_NCSS.device, np.stack([row_NS, column_NS]))
    padded = F.pad(images_NCSS, (most,) * 4)
    image_N, channel_C = (torch.arange(n, device=images_NCSS.device) for n in (N, C))
    return padded[image_N[:, None, None, None], channel_C[:, None, None], places_2NS[0][:, None, :, None],
                  places_2NS[1][:, None, None, :]]


def rand_augmented(images_NCSS: Tensor, rng: np.random.Generator, words: Collection[str]) -> Tensor:
    """Each uint8 image after two operations of its own, float: RandAugment (Cubuk et al. 2020) limited to `words`.

    Doing nothing is one of the operations. Grey levels first, then places, in one bilinear resampling.
    """
    names = ["identity", *(name for word in words for name in regimes.RAND_AUGMENT.get(word, ()))]
    drawn_LN = rng.integers(len(names), size=(regimes.OPERATIONS_AN_IMAGE, len(images_NCSS)))
    sign_LN = rng.integers(2, size=drawn_LN.shape) * 2 - 1
    images_NCSS = images_NCSS.clone()
    for drawn_N, sign_N in zip(drawn_LN, sign_LN, strict=True):
        for name, sign, index in _groups(names, drawn_N, sign_N, images_NCSS.device):
            images_NCSS.index_copy_(0, index, TONES[name](images_NCSS[index], sign))
    return _turned(images_NCSS.float(), _matrices(tuple(names))[drawn_LN, (sign_LN + 1) // 2])


def _groups(names: list[str], drawn_N: np.ndarray, sign_N: np.ndarray,
            device: torch.device) -> Iterator[tuple[str, int, Tensor]]:
    """Each operation on grey levels that some images drew, its sign, and which images."""
    signed = np.isin(drawn_N, [i for i, name in enumerate(names) if name in SIGNED])
    key_N = 2 * drawn_N + (sign_N > 0) * signed
    keys, counts = np.unique(key_N, return_counts=True)
    order = _on(device, np.argsort(key_N, kind="stable"))  # one copy for all groups
    for key, index in zip(keys.tolist(), torch.split(order, counts.tolist()), strict=True):
        if names[key // 2] in TONES:
            yield names[key // 2], 1 if key % 2 else -1, index


@lru_cache(maxsize=8)
def _matrices(names: tuple[str, ...]) -> np.ndarray:
    """Operation, sign (-1, 1) -> 2 x 2 matrix; the identity for what changes no places."""
    plus_K22 = np.array([TURNS.get(name, ((1.0, 0.0), (0.0, 1.0))) for name in names])
    return np.stack([np.linalg.inv(plus_K22), plus_K22], axis=1)


def _turned(images_NCSS: Tensor, matrix_LN22: np.ndarray) -> Tensor:
    """Float images resampled where a matrix is not the identity; black enters."""
    whole_N22 = matrix_LN22[0]
    for matrix_N22 in matrix_LN22[1:]:
        whole_N22 = whole_N22 @ matrix_N22
    chosen = np.flatnonzero((matrix_LN22 != np.eye(2)).any(axis=(0, 2, 3)))
    if not len(chosen):
        return images_NCSS
    theta_M23 = np.pad(whole_N22[chosen], ((0, 0), (0, 0), (0, 1))).astype(np.float32)
    index = _on(images_NCSS.device, chosen)
    some = images_NCSS[index]
    grid = F.affine_grid(_on(some.device, theta_M23), list(some.shape), align_corners=False)
    return images_NCSS.index_copy_(0, index, F.grid_sample(some, grid, align_corners=False))


def erased(images_NCSS: Tensor, rng: np.random.Generator, fill_1C11: Tensor) -> Tensor:
    """A quarter of the images with a rectangle of `fill`: random erasing (Zhong et al. 2020)."""
    N, S = len(images_NCSS), images_NCSS.shape[-1]
    hit_N = rng.random(N) < regimes.ERASED
    area_N = S * S * rng.uniform(*regimes.ERASED_AREA, N)
    narrow, wide = regimes.ERASED_RATIO
    ratio_N = np.exp(rng.uniform(log(narrow), log(wide), N))
    height_N, width_N = (np.clip(np.rint(np.sqrt(area_N * by_N)), 1, S).astype(np.int64) * hit_N
                         for by_N in (ratio_N, 1 / ratio_N))
    return torch.where(_rectangles(rng, S, height_N, width_N, images_NCSS.device), fill_1C11, images_NCSS)


def mixed(images_NCSS: Tensor, targets_NK: Tensor, rng: np.random.Generator,
          kinds: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Half of the images mixed with the one before them in the batch, targets in the same proportion.

    By mixup (Zhang et al. 2018) or cutmix (Yun et al. 2019). torchvision's draw one kind and one proportion for a whole
    batch, so a short run would see few of them; here each image has its own. Cutmix's square lies inside the image.
    """
    if not kinds:
        return images_NCSS, targets_NK
    N, S, device = len(images_NCSS), images_NCSS.shape[-1], images_NCSS.device
    kind_N = np.where(rng.random(N) < regimes.MIXED, np.array(kinds)[rng.integers(len(kinds), size=N)], "none")
    blend_N, area_N = (rng.beta(alpha, alpha, N) for alpha in (regimes.MIXUP_ALPHA, regimes.CUTMIX_ALPHA))
    own_N = np.where(kind_N == "mixup", blend_N, 1.0)
    side_N = np.where(kind_N == "cutmix", np.rint(S * np.sqrt(area_N)), 0).astype(np.int64)
    share_2N = np.stack([own_N, own_N * (1 - (side_N / S) ** 2)]).astype(np.float32)
    pixel_N, target_N = _on(device, share_2N)
    weight_N1SS = pixel_N[:, None, None, None] * ~_rectangles(rng, S, side_N, side_N, device)
    return (torch.lerp(images_NCSS.roll(1, 0), images_NCSS, weight_N1SS),
            torch.lerp(targets_NK.roll(1, 0), targets_NK, target_N[:, None]))


def _rectangles(rng: np.random.Generator, side: int, height_N: np.ndarray, width_N: np.ndarray,
                device: torch.device) -> Tensor:
    """N x 1 x side x side, true inside one rectangle an image, anywhere within it."""
    top_N, left_N = (rng.integers(0, side - length_N + 1) for length_N in (height_N, width_N))
    edges_4N1 = _on(device, np.stack([top_N, top_N + height_N, left_N, left_N + width_N])[..., None])
    place_S = torch.arange(side, device=device)
    inside_2NS = (place_S >= edges_4N1[::2]) & (place_S < edges_4N1[1::2])
    return inside_2NS[0][:, None, :, None] & inside_2NS[1][:, None, None, :]


def _on(device: torch.device, drawn: np.ndarray) -> Tensor:
    """What was drawn, on the device. A copy from pinned memory does not wait for what the device still does."""
    tensor = torch.from_numpy(drawn)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)
