"""A transformer on pixels or patches: each is one vector of a sequence."""

import torch
from torch import Tensor, nn

from vitbench.nn.attention import SelfAttention


class Patches(nn.Module):
    """Cuts images B x C x S x S into B x N x (C P P): each patch of P x P pixels is one vector, in raster order."""

    def __init__(self, patch_size: int) -> None:
        super().__init__()
        self.patch_size = patch_size

    def forward(self, x_BCSS: Tensor) -> Tensor:
        """No arithmetic, only a new arrangement."""
        B, C, S, _ = x_BCSS.shape
        P, G = self.patch_size, S // self.patch_size
        return x_BCSS.view(B, C, G, P, G, P).permute(0, 2, 4, 1, 3, 5).reshape(B, G * G, C * P * P)


class LearnedPositions(nn.Module):
    """Adds a trained vector to each place (Dosovitskiy et al. 2021, equation 1)."""

    def __init__(self, tokens: int, embed_dim: int) -> None:
        super().__init__()
        self.table_ND = nn.Parameter(torch.empty(tokens, embed_dim))
        nn.init.normal_(self.table_ND, std=0.02)

    def forward(self, x_BND: Tensor) -> Tensor:
        """Tokens with their place added."""
        return x_BND + self.table_ND


class SinusoidalPositions(nn.Module):
    """Adds sines and cosines of the raster position (Vaswani et al. 2017, section 3.5)."""

    table_ND: Tensor

    def __init__(self, tokens: int, embed_dim: int) -> None:
        super().__init__()
        rate_K = 10_000.0 ** (-torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim)
        angle_NK = torch.arange(tokens, dtype=torch.float64)[:, None] * rate_K
        table_ND = torch.stack([angle_NK.sin(), angle_NK.cos()], dim=-1).flatten(1)[:, :embed_dim]
        self.register_buffer("table_ND", table_ND.float(), persistent=False)

    def forward(self, x_BND: Tensor) -> Tensor:
        """Tokens with their place added."""
        return x_BND + self.table_ND


class Block(nn.Module):
    """Attention, then a two-layer perceptron for each token; normalised before, added after (pre-norm)."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float) -> None:
        super().__init__()
        hidden = int(embed_dim * mlp_ratio)
        self.attention_norm = nn.LayerNorm(embed_dim)
        self.attention = SelfAttention(embed_dim, num_heads)
        self.mlp_norm = nn.LayerNorm(embed_dim)
        self.mlp = nn.Sequential(nn.Linear(embed_dim, hidden), nn.GELU(), nn.Linear(hidden, embed_dim))
        self.drop_path: nn.Module | None = None  # vitbench.nn.stochastic_depth sets it

    def forward(self, x_BND: Tensor) -> Tensor:
        """Tokens B x N x D to the same shape."""
        x_BND = x_BND + self._branch(self.attention(self.attention_norm(x_BND)))
        return x_BND + self._branch(self.mlp(self.mlp_norm(x_BND)))

    def _branch(self, x_BND: Tensor) -> Tensor:
        kept_BND: Tensor = x_BND if self.drop_path is None else self.drop_path(x_BND)
        return kept_BND


class TokenTransformer(nn.Module):
    """Patches, a linear embedding, positions, blocks, the mean over tokens, a linear head."""

    def __init__(  # noqa: PLR0913 - the options of the model
            self, *, channels: int, image_size: int, num_classes: int, patch_size: int, embed_dim: int,
            depth: int, num_heads: int, mlp_ratio: float, positions: str) -> None:
        super().__init__()
        tokens = (image_size // patch_size) ** 2
        kinds = {"learned": LearnedPositions, "sinusoidal": SinusoidalPositions}
        self.patches = Patches(patch_size)
        self.embed = nn.Linear(channels * patch_size**2, embed_dim)
        self.positions = kinds[positions](tokens, embed_dim)
        self.blocks = nn.Sequential(*(Block(embed_dim, num_heads, mlp_ratio) for _ in range(depth)))
        self.norm = nn.LayerNorm(embed_dim)
        self.head = nn.Linear(embed_dim, num_classes)
        self.apply(_initialise)

    def no_weight_decay(self) -> set[str]:
        """Parameters of two dimensions that are no maps: shrinking them would only blur places."""
        return {"positions.table_ND"}

    def forward(self, x_BCSS: Tensor) -> Tensor:
        """Normalised images B x C x S x S to logits B x classes."""
        x_BND = self.positions(self.embed(self.patches(x_BCSS)))
        logits_BC: Tensor = self.head(self.norm(self.blocks(x_BND)).mean(dim=1))
        return logits_BC


def _initialise(module: nn.Module) -> None:
    # Xavier as in the ViT paper's own code: a fixed deviation of .02 starves the narrow sizes.
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
