"""A transformer on pixels, patches or features: each is one vector of a sequence."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torchvision.ops import StochasticDepth

from vitbench.nn.attention import Normaliser, ScoreKind, SelfAttention
from vitbench.nn.grid import Grid
from vitbench.nn.pooling import PoolingKind, pooling_of
from vitbench.nn.positions import (
    LearnedPositions,
    NoPositions,
    RelativeBias,
    RotaryPositions,
    SinusoidalPositions,
)
from vitbench.nn.span import Kind, Span
from vitbench.nn.tokens import Codes, ConvStem, Lookup, OneHot, Patches, grid_of

PositionKind = Literal["none", "learned", "sinusoidal", "sinusoidal_2d", "relative", "rotary"]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a token transformer is made of; the options of the model say what each means."""

    side: int  # pixels of a token's side
    conv_stem: bool
    embedding: Literal["linear", "one_hot", "lookup"]
    levels: int
    code_dim: int
    embed_dim: int
    depth: int
    num_heads: int
    mlp_ratio: float
    score: ScoreKind
    normaliser: Normaliser
    positions: PositionKind
    span: Kind
    window: int | None
    pooling: PoolingKind
    norm_place: Literal["pre", "post"]
    layer_scale: float
    stochastic_depth: float
    dropout: float


class Block(nn.Module):
    """Attention, then a two-layer perceptron for each token, each added to its input. `pre`: normalised before the
    branch; `post`: after the sum, as in Vaswani et al. 2017."""

    def __init__(self, shape: Shape, attention: SelfAttention, rate: float) -> None:
        super().__init__()
        D, hidden = shape.embed_dim, int(shape.embed_dim * shape.mlp_ratio)
        self.norm_first = shape.norm_place == "pre"
        self.attention_norm = nn.LayerNorm(D)
        self.attention = attention
        self.mlp_norm = nn.LayerNorm(D)
        dropout = [nn.Dropout(shape.dropout)] if shape.dropout else []
        self.mlp = nn.Sequential(nn.Linear(D, hidden), nn.GELU(), *dropout, nn.Linear(hidden, D))
        self.drop_path: nn.Module | None = StochasticDepth(rate, "row") if rate else None  # else nn.stochastic_depth's
        self.dropout = dropout[0] if dropout else None
        # Each branch begins small (Touvron et al. 2021, section 2).
        self.attention_scale, self.mlp_scale = (
            nn.Parameter(torch.full((D,), shape.layer_scale)) if shape.layer_scale else None for _ in range(2))

    def forward(self, x_BMD: Tensor, grid: Grid) -> Tensor:
        """Tokens B x M x D to the same shape."""
        if self.norm_first:
            x_BMD = x_BMD + self._branch(self.attention(self.attention_norm(x_BMD), grid), self.attention_scale)
            return x_BMD + self._branch(self.mlp(self.mlp_norm(x_BMD)), self.mlp_scale)
        x_BMD = self.attention_norm(x_BMD + self._branch(self.attention(x_BMD, grid), self.attention_scale))
        summed_BMD: Tensor = self.mlp_norm(x_BMD + self._branch(self.mlp(x_BMD), self.mlp_scale))
        return summed_BMD

    def _branch(self, x_BMD: Tensor, scale_D: Tensor | None) -> Tensor:
        x_BMD = x_BMD if self.dropout is None else self.dropout(x_BMD)
        x_BMD = x_BMD if scale_D is None else x_BMD * scale_D
        kept_BMD: Tensor = x_BMD if self.drop_path is None else self.drop_path(x_BMD)
        return kept_BMD


class TokenTransformer(nn.Module):
    """Tokens, their embedding and positions, blocks, pooling, a linear head."""

    def __init__(self, shape: Shape, *, channels: int, image_size: int, num_classes: int) -> None:
        super().__init__()
        grid = Grid(image_size // shape.side, image_size // shape.side)
        self.side = shape.side
        self.embed = _embedding(shape, channels)
        self.positions = _positions(shape, grid)
        self.class_token = nn.Parameter(torch.zeros(shape.embed_dim)) if shape.pooling == "cls" else None
        self.dropout = nn.Dropout(shape.dropout) if shape.dropout else None
        span = Span(grid, shape.span, shape.window, shape.pooling == "cls")
        rates = [shape.stochastic_depth * i / shape.depth for i in range(1, shape.depth + 1)]
        self.blocks = nn.ModuleList(Block(shape, _attention(shape, grid, span), rate) for rate in rates)
        self.norm = nn.LayerNorm(shape.embed_dim) if shape.norm_place == "pre" else nn.Identity()
        self.pooling = pooling_of(shape.pooling, shape.embed_dim)
        self.head = nn.Linear(shape.embed_dim, num_classes)
        self.apply(_initialise)

    def no_weight_decay(self) -> set[str]:
        """Parameters of two dimensions that are no maps: shrinking them would only blur places."""
        return {f"{name}.{table}" for name, module in self.named_modules()
                for kind, table in ((LearnedPositions, "table_ND"), (RelativeBias, "table_HO"))
                if isinstance(module, kind)}

    def see_normalisation(self, mean_C: Tensor, inverse_C: Tensor) -> None:
        """How images are normalised: codes are of the grey levels before it."""
        for module in self.modules():
            if isinstance(module, Codes):
                module.see_normalisation(mean_C, inverse_C)

    def forward(self, x_BCHW: Tensor, sizes_B2: Tensor | None = None) -> Tensor:
        """Normalised images B x C x H x W to logits B x classes.

        `sizes_B2` are the height and width in pixels of each image where smaller ones are padded to the right and
        below (vitbench.nn.grid.padded): each gets the logits that it gets alone. Raises CannotTake.
        """
        x_BMD, grid = self.tokens(x_BCHW, sizes_B2)
        for block in self.blocks:
            x_BMD = block(x_BMD, grid)
        logits_BC: Tensor = self.head(self.pooling(self.norm(x_BMD), grid.real_BN))
        return logits_BC

    def tokens(self, x_BCHW: Tensor, sizes_B2: Tensor | None = None) -> tuple[Tensor, Grid]:
        """The tokens that enter the first block, B x M x D, and where they lie. Raises CannotTake."""
        grid = grid_of(x_BCHW, self.side, sizes_B2)
        x_BND = self.embed(x_BCHW, sizes_B2) if isinstance(self.embed, ConvStem) else self.embed(x_BCHW)
        x_BMD = self.positions(x_BND, grid)
        if self.class_token is not None:
            x_BMD = torch.cat([x_BMD, self.class_token.expand(len(x_BMD), 1, -1)], dim=1)
        return (x_BMD if self.dropout is None else self.dropout(x_BMD)), grid


def _embedding(shape: Shape, channels: int) -> nn.Module:
    """Images to tokens B x N x D."""
    D, pixels = shape.embed_dim, shape.side**2
    if shape.conv_stem:
        return ConvStem(channels, D, shape.side.bit_length() - 1)
    if shape.embedding == "linear":
        return nn.Sequential(Patches(shape.side), nn.Linear(pixels * channels, D))
    codes = Codes(channels, shape.levels)
    one_hot = shape.embedding == "one_hot"
    vectors = OneHot(codes.codes) if one_hot else Lookup(codes.codes, shape.code_dim)
    width = codes.codes if one_hot else shape.code_dim
    return nn.Sequential(codes, Patches(shape.side), vectors, nn.Linear(pixels * width, D))


def _positions(shape: Shape, grid: Grid) -> nn.Module:
    D = shape.embed_dim
    if shape.positions == "learned":
        return LearnedPositions(grid, D)
    if shape.positions in ("sinusoidal", "sinusoidal_2d"):
        return SinusoidalPositions(grid, D, dimensions=2 if shape.positions == "sinusoidal_2d" else 1)
    return NoPositions()  # the others act in the attention


def _attention(shape: Shape, grid: Grid, span: Span) -> SelfAttention:
    rotary = shape.positions == "rotary"
    return SelfAttention(
        shape.embed_dim, shape.num_heads, score=shape.score, normaliser=shape.normaliser, span=span,
        relative=RelativeBias(grid, shape.num_heads) if shape.positions == "relative" else None,
        rotary=RotaryPositions(grid, shape.embed_dim // shape.num_heads) if rotary else None)


def _initialise(module: nn.Module) -> None:
    # Xavier as in the ViT paper's own code: a fixed deviation of .02 starves the narrow sizes.
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
