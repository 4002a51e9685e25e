"""One fully connected layer on each vector and its neighbours, shared by all places: what attention stands beside."""

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn


class Block(nn.Module):
    """Each vector, normalised, with its window x window neighbours through one layer and GELU, added to its input.

    Beyond the border of the image all is zero. A convolution computes just this: its weights are the layer's.
    """

    def __init__(self, embed_dim: int, window: int) -> None:
        super().__init__()
        assert window % 2, "checked by the model's options"
        self.norm = nn.LayerNorm(embed_dim)
        self.layer = nn.Conv2d(embed_dim, embed_dim, window, padding=window // 2)
        self.drop_path: nn.Module | None = None  # vitbench.nn.stochastic_depth sets it

    def forward(self, x_BGGD: Tensor) -> Tensor:
        """Vectors of G x G places to the same shape."""
        seen_BDGG = F.gelu(self.layer(self.norm(x_BGGD).permute(0, 3, 1, 2)))
        seen_BGGD = seen_BDGG.permute(0, 2, 3, 1)
        return x_BGGD + (seen_BGGD if self.drop_path is None else self.drop_path(seen_BGGD))


class WindowFC(nn.Module):
    """Patches, a linear embedding, blocks, the mean over places, a linear head. It has no positions: with a window of 1
    it sees a bag of patches, with more the zeros beyond the border tell it where it is."""

    def __init__(self, *, channels: int, num_classes: int, patch_size: int, embed_dim: int, depth: int,
                 window: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(channels, embed_dim, patch_size, stride=patch_size)
        self.blocks = nn.Sequential(*(Block(embed_dim, window) for _ in range(depth)))
        self.norm = nn.LayerNorm(embed_dim)
        self.head = nn.Linear(embed_dim, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")  # by what a place sees (He et al. 2015)
                assert module.bias is not None
                nn.init.zeros_(module.bias)

    def forward(self, x_BCSS: Tensor) -> Tensor:
        """Normalised images B x C x S x S to logits B x classes."""
        x_BGGD = self.embed(x_BCSS).permute(0, 2, 3, 1)
        logits_BC: Tensor = self.head(self.norm(self.blocks(x_BGGD)).mean(dim=(1, 2)))
        return logits_BC
