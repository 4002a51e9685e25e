"""From images to tokens: cutting patches, codes of intensities, a convolutional stem."""

from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from vitbench.nn.grid import CannotTake, Grid


class Patches(nn.Module):
    """Cuts images B x C x H x W into B x N x (C P P): each patch of P x P pixels is one vector, in raster order."""

    def __init__(self, patch_size: int) -> None:
        super().__init__()
        self.patch_size = patch_size

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """No arithmetic, only a new arrangement."""
        B, C, H, W = x_BCHW.shape
        P = self.patch_size
        return x_BCHW.view(B, C, H // P, P, W // P, P).permute(0, 2, 4, 1, 3, 5).reshape(B, H * W // P**2, C * P * P)


class Codes(nn.Module):
    """The code of each pixel: its intensity, or all channels' together, in `levels` equal steps of the 256.

    Models see normalised images; `see_normalisation` tells what undoes it.
    """

    mean_C11: Tensor
    inverse_C11: Tensor
    place_C11: Tensor

    def __init__(self, channels: int, levels: int) -> None:
        super().__init__()
        self.levels, self.codes = levels, levels**channels
        self.register_buffer("mean_C11", torch.full((channels, 1, 1), 127.5))
        self.register_buffer("inverse_C11", torch.full((channels, 1, 1), 1 / 64))
        self.register_buffer("place_C11", levels ** torch.arange(channels).view(channels, 1, 1), persistent=False)

    def see_normalisation(self, mean_C: Tensor, inverse_C: Tensor) -> None:
        """Mean, and one over the deviation, of each channel's grey levels, 0 to 255."""
        self.mean_C11.copy_(mean_C.view(-1, 1, 1))
        self.inverse_C11.copy_(inverse_C.view(-1, 1, 1))

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """Normalised images to codes B x 1 x H x W, 0 to levels ** C - 1."""
        grey_BCHW = x_BCHW.float() / self.inverse_C11 + self.mean_C11
        # Half a thousandth, for a grey level on a step's edge must not fall by rounding.
        level_BCHW = ((grey_BCHW + 5e-4) * (self.levels / 256)).floor().clamp(0, self.levels - 1).long()
        return (level_BCHW * self.place_C11).sum(dim=1, keepdim=True)


class OneHot(nn.Module):
    """Codes B x N x P as vectors of zeros and a one, P codes beside each other: no code is nearer to one than to
    another."""

    def __init__(self, codes: int) -> None:
        super().__init__()
        self.codes = codes

    def forward(self, code_BNP: Tensor) -> Tensor:
        """B x N x (P codes), float32."""
        return F.one_hot(code_BNP, self.codes).flatten(2).float()


class Lookup(nn.Module):
    """Codes B x N x P as trained vectors of `code_dim` numbers, one table for all places of a patch: what codes have
    to do with each other can be learned (Bengio et al. 2003)."""

    def __init__(self, codes: int, code_dim: int) -> None:
        super().__init__()
        self.table = nn.Embedding(codes, code_dim)

    def forward(self, code_BNP: Tensor) -> Tensor:
        """B x N x (P code_dim)."""
        vector_BNPE: Tensor = self.table(code_BNP)
        return vector_BNPE.flatten(2)


class ConvStem(nn.Module):
    """Convolutions of 3 x 3, each with ReLU and a pool of stride 2, make the tokens (Hassani et al. 2021, section
    3.1); all but the last have half the width."""

    def __init__(self, channels: int, embed_dim: int, halvings: int) -> None:
        super().__init__()
        widths = [channels, *[max(embed_dim // 2, 1)] * (halvings - 1), embed_dim]
        self.convolutions = nn.ModuleList(nn.Conv2d(before, after, 3, padding=1, bias=False)
                                          for before, after in pairwise(widths))
        for convolution in self.convolutions:
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")  # type: ignore[arg-type]

    def forward(self, x_BCHW: Tensor, sizes_B2: Tensor | None = None) -> Tensor:
        """Images to features B x N x D, N = H/2^h W/2^h. Outside of an image's own size nothing is left, so that
        padding acts as the border does."""
        sizes_B2 = None if sizes_B2 is None else sizes_B2.to(x_BCHW.device)
        x_BCHW = _inside(x_BCHW, sizes_B2)
        for convolution in self.convolutions:
            # Clear before pooling, too: a pool takes the largest, and all that is inside is at least 0.
            x_BCHW = F.max_pool2d(_inside(torch.relu(convolution(x_BCHW)), sizes_B2), 3, stride=2, padding=1)
            sizes_B2 = None if sizes_B2 is None else sizes_B2 // 2
            x_BCHW = _inside(x_BCHW, sizes_B2)
        return x_BCHW.flatten(2).mT


def _inside(x_BCHW: Tensor, sizes_B2: Tensor | None) -> Tensor:
    if sizes_B2 is None:
        return x_BCHW
    rows_H, columns_W = (torch.arange(side, device=x_BCHW.device) for side in x_BCHW.shape[2:])
    inside_BHW = (rows_H[:, None] < sizes_B2[:, :1, None]) & (columns_W < sizes_B2[:, 1:, None])
    return x_BCHW * inside_BHW[:, None]


def grid_of(x_BCHW: Tensor, side: int, sizes_B2: Tensor | None) -> Grid:
    """The grid of tokens of `side` pixels a side. Raises CannotTake where they do not cover an image, or where sizes
    are none of this batch."""
    if sizes_B2 is not None:
        _refuse_other_sizes(x_BCHW, sizes_B2)
    sides = [*x_BCHW.shape[2:]] if sizes_B2 is None else [*x_BCHW.shape[2:], *sizes_B2.flatten().tolist()]
    odd = next((s for s in sides if s % side or not s), None)
    if odd is not None:
        raise CannotTake(f"images: tokens of {side} x {side} pixels do not cover a side of {odd} pixels; the nearest "
                         f"that they cover is {max(round(odd / side), 1) * side}")
    sizes_B2 = None if sizes_B2 is None else sizes_B2.to(x_BCHW.device) // side
    return Grid(x_BCHW.shape[2] // side, x_BCHW.shape[3] // side, x_BCHW.device, sizes_B2)


def _refuse_other_sizes(x_BCHW: Tensor, sizes_B2: Tensor) -> None:
    B, (H, W) = len(x_BCHW), x_BCHW.shape[2:]
    if tuple(sizes_B2.shape) != (B, 2) or sizes_B2.dtype not in (torch.int32, torch.int64):
        raise CannotTake(f"sizes: should be whole numbers, the height and width of each image, {B} x 2; found "
                         f"{' x '.join(map(str, sizes_B2.shape))} of {sizes_B2.dtype}")
    wrong = next((size for size in sizes_B2.tolist() if not (0 < size[0] <= H and 0 < size[1] <= W)), None)
    if wrong:
        raise CannotTake(f"sizes: should be 1 x 1 to {H} x {W} pixels, the sides of the batch; found {wrong[0]} x "
                         f"{wrong[1]}")
