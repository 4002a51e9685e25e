"""From many vectors to one: how a sequence of tokens becomes what the classes are read from."""

from typing import Literal

import torch
from torch import Tensor, nn

PoolingKind = Literal["mean", "cls", "max", "attention"]


class Mean(nn.Module):
    """The mean over tokens."""

    def forward(self, x_BMD: Tensor, real_BN: Tensor | None) -> Tensor:
        """B x D; `real_BN` is False where a token is padding, None where none is."""
        if real_BN is None:
            return x_BMD.mean(dim=1)
        return (x_BMD * real_BN[..., None]).sum(dim=1) / real_BN.sum(dim=1, keepdim=True)


class ClassToken(nn.Module):
    """The last token, which belongs to no place and has seen all others (Dosovitskiy et al. 2021, equation 4)."""

    def forward(self, x_BMD: Tensor, _real_BN: Tensor | None) -> Tensor:
        """B x D."""
        return x_BMD[:, -1]


class Max(nn.Module):
    """The largest of each number over tokens."""

    def forward(self, x_BMD: Tensor, real_BN: Tensor | None) -> Tensor:
        """B x D."""
        return (x_BMD if real_BN is None else x_BMD.masked_fill(~real_BN[..., None], -torch.inf)).amax(dim=1)


class AttentionPooling(nn.Module):
    """A mean weighted by the softmax of a trained score of each token (Hassani et al. 2021, section 3.2)."""

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.score = nn.Linear(embed_dim, 1, bias=False)

    def forward(self, x_BMD: Tensor, real_BN: Tensor | None) -> Tensor:
        """B x D."""
        score_BM1 = self.score(x_BMD)
        if real_BN is not None:
            score_BM1 = score_BM1.masked_fill(~real_BN[..., None], -torch.inf)
        return (torch.softmax(score_BM1, dim=1).mT @ x_BMD).squeeze(1)


def pooling_of(kind: PoolingKind, embed_dim: int) -> nn.Module:
    """The module of that kind: (tokens B x M x D, which are real or None) to B x D."""
    return AttentionPooling(embed_dim) if kind == "attention" else {"mean": Mean, "cls": ClassToken, "max": Max}[kind]()
