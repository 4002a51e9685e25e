"""How attention is spread over pairs of places, of models whose weights are known."""

from itertools import product
from math import dist, nan

import numpy as np
import pytest
import torch

from tests.probes.by_hand import even, images, selfish, silent, transformer
from vitbench.nn.attention import SelfAttention
from vitbench.nn.looking import attention_layers, looks
from vitbench.probes import ProbeError
from vitbench.probes._spread import shares_of, spreads

NORMALISERS = ["softmax", "relu", "sigmoid", "none"]


def mean_distance(rows: int, columns: int, side: float) -> float:
    """Between the centres of two tokens, over all pairs, each with itself too."""
    places = [(side * row, side * column) for row, column in product(range(rows), range(columns))]
    return sum(dist(a, b) for a, b in product(places, places)) / len(places)**2


@pytest.mark.parametrize("side", [1, 2, 4])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_even_attention_has_the_mean_distance_of_all_pairs_of_places(side: int, pooling: str) -> None:
    """A class token, which takes a part of every row, changes nothing: it is left out."""
    for spread in spreads(even(side=side, pooling=pooling), images()):
        expected = mean_distance(8 // side, 8 // side, side)
        assert spread.mean_H(spread.distance_NN) == pytest.approx([expected, expected], abs=1e-6)
        assert (spread.even_NN * spread.distance_NN).sum() == pytest.approx(expected)
        assert spread.empty_H.tolist() == [0, 0]


def test_a_grid_that_is_no_square_has_its_own_distances() -> None:
    model = even(positions="sinusoidal_2d")
    found = spreads(model, torch.randn(2, 1, 4, 8, generator=torch.Generator().manual_seed(0)))[0]
    assert found.mean_H(found.distance_NN) == pytest.approx([mean_distance(2, 4, 2)] * 2, abs=1e-6)
    assert (found.grid_width, found.side) == (4, 2)


@pytest.mark.parametrize("options", [{}, {"pooling": "cls"}])
def test_attention_to_oneself_has_distance_0_and_lies_within_radius_0(options: dict[str, str]) -> None:
    for spread in spreads(selfish(**options), images()):
        assert spread.mean_H(spread.distance_NN) == [0, 0]
        assert spread.mean_H(spread.within(0)) == pytest.approx([1, 1])


def test_a_window_of_1_sees_itself_alone_and_even_attention_in_it_too() -> None:
    for spread in spreads(transformer(span="window", window=1), images()):
        assert spread.mean_H(spread.distance_NN) == [0, 0]
        assert (spread.even_NN * spread.distance_NN).sum() == 0


def test_all_of_a_window_lies_within_its_reach() -> None:
    for spread in spreads(transformer(span="window", window=3), images()):
        assert spread.mean_H(spread.within(1)) == pytest.approx([1, 1])
        assert max(spread.mean_H(spread.within(0))) < 0.9  # type: ignore[type-var]


@pytest.mark.parametrize("span", [{"span": "causal"}, {"span": "window", "window": 3}])
def test_even_attention_is_over_what_a_token_may_see(span: dict[str, object]) -> None:
    for spread in spreads(even(**span), images()):
        for share_NN in spread.share_HNN:
            assert share_NN == pytest.approx(spread.even_NN, abs=1e-7)
        assert spread.even_NN.sum() == pytest.approx(1)


@pytest.mark.parametrize("radius", [0, 1, 2, 3])
def test_within_a_radius_lies_a_square_cut_off_at_the_border(radius: int) -> None:
    spread = spreads(even(), images())[0]
    expected = np.mean([max(abs(a - c), abs(b - d)) <= radius for a, b, c, d in product(range(4), repeat=4)])
    assert spread.mean_H(spread.within(radius)) == pytest.approx([expected, expected], abs=1e-6)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_weights_of_every_normaliser_become_shares_of_their_size(normaliser: str) -> None:
    """Of each row of each image; over so many images that they come in several parts."""
    model, some = transformer(normaliser=normaliser), images(40)
    for weight, spread in zip(looks(model, some), spreads(model, some), strict=True):
        rows_BHN = np.abs(weight.double().numpy()).reshape(-1, 16)
        live = [row / row.sum() if row.sum() else np.full(16, nan) for row in rows_BHN]
        share_BHNN = np.array(live).reshape(40, 2, 16, 16)
        for head in range(2):
            known = ~np.isnan(share_BHNN[:, head, :, 0])
            assert spread.empty_H[head] == pytest.approx(1 - known.mean())
            assert spread.share_HNN[head] == pytest.approx(np.nansum(share_BHNN[:, head], axis=0) / known.sum())


def test_a_head_that_gives_no_weight_has_no_distance_and_its_neighbour_has() -> None:
    model = transformer(normaliser="relu", depth=1)
    (layer,) = attention_layers(model).values()
    layer.query_key_value.weight.data[:4] = 0  # the queries of head 0
    layer.query_key_value.bias.data[:4] = 0
    (spread,) = spreads(model, images())
    first, second = spread.mean_H(spread.distance_NN)
    assert first is None
    assert second is not None
    assert second > 0
    assert spread.empty_H[0] == 1


def test_shares_of_a_row_without_weights_are_0() -> None:
    found = shares_of(torch.tensor([[1.0, -3.0], [0.0, 0.0]]))
    assert found.tolist() == [[0.25, 0.75], [0, 0]]


@pytest.mark.parametrize("positions", ["learned", "relative", "rotary"])
def test_it_is_the_same_where_layers_run_fused(positions: str) -> None:
    model = transformer(positions=positions)
    fused = [spread.share_HNN for spread in spreads(model, images())]
    for layer in attention_layers(model).values():
        layer.written_out = True
    for a, b in zip(fused, spreads(model, images()), strict=True):
        assert a == pytest.approx(b.share_HNN, abs=1e-6)


def test_a_model_without_attention_of_ours_is_refused() -> None:
    with pytest.raises(ProbeError, match="Linear has no layer of"):
        spreads(torch.nn.Linear(2, 2), images())


def test_a_layer_in_which_queries_are_silent_is_even() -> None:
    """The tool of these tests can fail: without it attention is not even."""
    layer = SelfAttention(8, 2)
    assert isinstance(next(iter(attention_layers(transformer()).values())), SelfAttention)
    before = spreads(transformer(), images())[0]
    assert before.share_HNN[0] != pytest.approx(before.even_NN, abs=1e-4)
    silent(layer)
    assert not layer.query_key_value.weight[:8].any()
