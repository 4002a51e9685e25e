"""Convolutions that make the tokens, then attention: the compact convolutional transformer (Hassani et al. 2021)."""

from typing import TYPE_CHECKING

from vitbench.models import MODELS, ModelMeta
from vitbench.models.token_transformer import META, Options, token_transformer
from vitbench.spec import ImageSpec

if TYPE_CHECKING:
    from torch import nn

CCT = {"tokens": "conv_stem", "pooling": "attention"}
SIZES = {
    "xs": CCT | {"embed_dim": 28, "depth": 2, "num_heads": 2, "mlp_ratio": 3.0},
    "s": CCT | {"embed_dim": 64, "depth": 2, "num_heads": 4, "mlp_ratio": 3.0},
    "m": CCT | {"embed_dim": 100, "depth": 3, "num_heads": 4},
    "l": CCT | {"embed_dim": 168, "depth": 4, "num_heads": 4},
    "xl": CCT | {"embed_dim": 344, "depth": 4, "num_heads": 8},
}


@MODELS.add("hybrid", ModelMeta("hybrid", options=Options, sizes=SIZES, **META))
def hybrid(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """`token_transformer` on features of a convolutional stem, with attention for pooling."""
    return token_transformer(image, num_classes, options)
