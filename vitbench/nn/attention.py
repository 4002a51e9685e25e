"""One self-attention layer, in parts that can be exchanged: projections, attend, merge."""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn


class SelfAttention(nn.Module):
    """Multi-head scaled dot-product self-attention (Vaswani et al. 2017, section 3.2).

    Tokens B x N x D to B x N x D; H heads of width K = D / H.
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        assert embed_dim % num_heads == 0, "checked by the model's options"
        self.num_heads = num_heads
        self.query_key_value = nn.Linear(embed_dim, 3 * embed_dim)
        self.merge = nn.Linear(embed_dim, embed_dim)

    def forward(self, x_BND: Tensor) -> Tensor:
        """What each token takes from all tokens, weighted by how well its query meets their keys."""
        query_BHNK, key_BHNK, value_BHNK = self.project(x_BND)
        mixed_BHNK = F.scaled_dot_product_attention(query_BHNK, key_BHNK, value_BHNK)
        merged_BND: Tensor = self.merge(mixed_BHNK.transpose(1, 2).flatten(2))
        return merged_BND

    def project(self, x_BND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each B x H x N x K."""
        query, key, value = (part_BND.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
                             for part_BND in self.query_key_value(x_BND).chunk(3, dim=2))
        return query, key, value

    def weights(self, x_BND: Tensor) -> Tensor:
        """Softmax weights B x H x N x N, written out: each row is one token's look at all tokens."""
        query_BHNK, key_BHNK, _ = self.project(x_BND)
        score_BHNN = query_BHNK @ key_BHNK.mT / query_BHNK.shape[-1] ** 0.5
        return torch.softmax(score_BHNN, dim=-1)
