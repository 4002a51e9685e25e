"""Multiply-adds of every mechanism against a count by hand: token_transformer s at 28 x 28, and the hybrid."""

import pytest

from vitbench.models import checked_cost
from vitbench.spec import ImageSpec

N, D, P, C, BLOCKS, HEADS = 49, 64, 16, 10, 2, 4  # tokens, width, pixels of a patch, classes
K = D // HEADS
MAPS = 3 * D * D + D * D + 2 * 4 * D * D  # of a token in a block: queries, keys, values; merge; perceptron
PAIR = 2 * D  # of a query and a key over all heads: their product, and what is taken of the value


def transformer(embedding: int, tokens: int = N, pairs: int | None = None, pair: int = PAIR, pooling: int = 0) -> int:
    return embedding + BLOCKS * (tokens * MAPS + (tokens**2 if pairs is None else pairs) * pair) + pooling + D * C


# Rows of keys of 7 tokens that a window of 3 takes: bands of 2 rows of queries (the last of one), with a row above and
# below; at the border there is none. 28 x 28 in patches of 2 make 14 rows of 14.
BANDS = 14 * 14 * (2 * 3 + 5 * 2 * 4 + 2 * 3)
CASES: list[tuple[dict, int]] = [
    ({}, transformer(N * P * D)),
    ({"tokens": "pixel"}, transformer(784 * D, 784)),
    ({"tokens": "conv_stem"}, transformer(784 * 9 * 32 + 196 * 9 * 32 * 64)),
    ({"embedding": "one_hot"}, transformer(N * P * 16 * D)),
    ({"embedding": "lookup"}, transformer(N * P * 8 * D)),
    ({"score": "dot"}, transformer(N * P * D)),
    ({"score": "additive"}, transformer(N * P * D)),  # a direction times K numbers, as many as a product
    ({"normaliser": "relu"}, transformer(N * P * D)),
    ({"num_heads": 16}, transformer(N * P * D)),
    ({"positions": "none"}, transformer(N * P * D)),
    ({"positions": "relative"}, transformer(N * P * D)),
    ({"positions": "rotary"}, transformer(N * P * D)),  # turning is no matrix product
    ({"span": "causal"}, transformer(N * P * D)),  # masked, not left out
    ({"span": "window", "window": 7}, transformer(N * P * D)),  # too wide for bands
    ({"span": "window", "window": 3, "patch_size": 2}, transformer(196 * 4 * D, 196, BANDS)),
    ({"pooling": "cls"}, transformer(N * P * D + BLOCKS * (MAPS + (2 * N + 1) * PAIR))),  # one more token
    ({"pooling": "max"}, transformer(N * P * D)),
    ({"pooling": "attention"}, transformer(N * P * D, pooling=2 * N * D)),
    ({"norm_place": "post", "layer_scale": 0.1}, transformer(N * P * D)),
]


@pytest.mark.parametrize(("options", "macs"), CASES, ids=str)
def test_macs_of_a_mechanism_agree_with_a_count_by_hand(options: dict, macs: int) -> None:
    assert checked_cost("token_transformer", "s", options, ImageSpec(28, 1), C).macs == macs


def test_macs_of_the_hybrid_agree_with_a_count_by_hand() -> None:
    """A stem of two convolutions, 3 x MLP, pooling by attention."""
    maps = 3 * D * D + D * D + 2 * 3 * D * D
    stem = 784 * 9 * 3 * 32 + 196 * 9 * 32 * 64
    by_hand = stem + BLOCKS * (N * maps + N * N * PAIR) + 2 * N * D + D * C
    assert checked_cost("hybrid", "s", {}, ImageSpec(28, 3), C).macs == by_hand


def test_colour_codes_are_longer() -> None:
    """64 colours a pixel of a patch of 4 x 4."""
    found = [checked_cost("token_transformer", "s", options, ImageSpec(32, 3), C).macs
             for options in ({"embedding": "one_hot"}, {})]
    assert found[0] - found[1] == 64 * P * (64 - 3) * D
