"""What a regime does to the batches of a run: a pure function of (augmentation stream, step)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vitbench.datasets import DatasetMeta
from vitbench.datasets._variant import pixel_order
from vitbench.regimes import LABEL_SMOOTHING, applied
from vitbench.spec import Regime
from vitbench.streams import Streams
from vitbench.training.operations import erased, mixed, moved, rand_augmented


@dataclass(frozen=True)
class Augmentation:
    """A regime for the images of one dataset. Every image of a batch has its own draw."""

    words: tuple[str, ...]  # of vitbench.regimes
    targets_KK: Tensor | None  # class -> target; None: targets stay classes, for nothing smooths or mixes them
    streams: Streams
    order_P: Tensor | None = None  # where each pixel of an image comes from, if they come shuffled

    @classmethod
    def of(cls, regime: Regime, meta: DatasetMeta, streams: Streams, device: torch.device, *,
           shuffled: bool = False) -> "Augmentation | None":
        """None for the regime `none`. `shuffled`: pixels of the images come shuffled. Raises ForbiddenRegime."""
        words = applied(regime, meta.keeps_labels, meta.image)
        if regime == "none":
            return None
        K = meta.num_classes
        smoothed_KK = torch.eye(K, device=device) * (1 - LABEL_SMOOTHING) + LABEL_SMOOTHING / K
        order_P = torch.from_numpy(pixel_order(meta.image.size**2)).to(device) if shuffled else None
        return cls(words, smoothed_KK if regime == "strong" else None, streams, order_P)

    def __call__(self, step: int, images_NCSS: Tensor, labels_N: Tensor, fill_1C11: Tensor) -> tuple[Tensor, Tensor]:
        """Images of one step in grey levels, and their targets: labels N, or shares N x classes that sum to 1.

        `images_NCSS` are uint8 and are left as they are; `fill_1C11` is what stands where a rectangle is hidden.
        """
        if self.order_P is None:
            return self._augmented(step, images_NCSS, labels_N, fill_1C11)
        # A shift of shuffled pixels would be none: what happens to an image is the same, whether shuffled or not.
        whole_NCSS = images_NCSS.flatten(2)[..., self.order_P.argsort()].view_as(images_NCSS)
        whole_NCSS, targets = self._augmented(step, whole_NCSS, labels_N, fill_1C11)
        return whole_NCSS.flatten(2)[..., self.order_P].view_as(whole_NCSS), targets

    def _augmented(self, step: int, images_NCSS: Tensor, labels_N: Tensor,
                   fill_1C11: Tensor) -> tuple[Tensor, Tensor]:
        rng, words = self.streams.augment_rng(step), self.words
        images_NCSS = moved(images_NCSS, rng, shift="shift" in words, flip="flip" in words)
        if self.targets_KK is None:
            return images_NCSS, labels_N
        images_NCSS = rand_augmented(images_NCSS, rng, words)
        if "erase" in words:
            images_NCSS = erased(images_NCSS, rng, fill_1C11)
        kinds = [kind for kind in ("mixup", "cutmix") if kind in words]
        return mixed(images_NCSS, self.targets_KK[labels_N], rng, kinds)
