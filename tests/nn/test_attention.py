"""The attention layer against a few lines of float64 NumPy."""

import numpy as np
import torch

from vitbench.nn.attention import SelfAttention
from vitbench.nn.token_transformer import Patches, SinusoidalPositions, TokenTransformer


def _by_hand(layer: SelfAttention, x_ND: np.ndarray) -> np.ndarray:
    weight, bias = (p.detach().numpy() for p in (layer.query_key_value.weight, layer.query_key_value.bias))
    query_ND, key_ND, value_ND = np.split(x_ND @ weight.T + bias, 3, axis=1)
    K = x_ND.shape[1] // layer.num_heads
    heads = []
    for h in range(layer.num_heads):
        at = slice(h * K, (h + 1) * K)
        score_NN = query_ND[:, at] @ key_ND[:, at].T / np.sqrt(K)
        weights_NN = np.exp(score_NN) / np.exp(score_NN).sum(axis=1, keepdims=True)
        heads.append(weights_NN @ value_ND[:, at])
    return np.concatenate(heads, axis=1) @ layer.merge.weight.detach().numpy().T + layer.merge.bias.detach().numpy()


def test_attention_is_what_the_formula_says() -> None:
    layer = SelfAttention(embed_dim=12, num_heads=3).double()
    x_BND = torch.randn(2, 5, 12, dtype=torch.float64)
    expected = np.stack([_by_hand(layer, x.numpy()) for x in x_BND])
    np.testing.assert_allclose(layer(x_BND).detach().numpy(), expected, atol=1e-12)


def test_the_written_out_weights_mix_to_the_fused_result() -> None:
    layer = SelfAttention(embed_dim=12, num_heads=3).double()
    x_BND = torch.randn(2, 5, 12, dtype=torch.float64)
    mixed = layer.merge((layer.weights(x_BND) @ layer.project(x_BND)[2]).transpose(1, 2).flatten(2))
    torch.testing.assert_close(mixed, layer(x_BND), atol=1e-12, rtol=0)
    torch.testing.assert_close(layer.weights(x_BND).sum(-1), torch.ones(2, 3, 5, dtype=torch.float64))


def test_attention_without_positions_is_blind_to_order() -> None:
    layer = SelfAttention(embed_dim=12, num_heads=3).double()
    x_BND = torch.randn(1, 6, 12, dtype=torch.float64)
    order = torch.randperm(6)
    torch.testing.assert_close(layer(x_BND)[:, order], layer(x_BND[:, order]), atol=1e-12, rtol=0)


def test_gradients_pass_gradcheck() -> None:
    layer = SelfAttention(embed_dim=4, num_heads=2).double()
    assert torch.autograd.gradcheck(layer, (torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True),))


def test_a_patch_holds_its_own_pixels_in_raster_order() -> None:
    images = torch.arange(2 * 16).view(1, 2, 4, 4).float()
    patches_BNP = Patches(2)(images)
    assert patches_BNP.shape == (1, 4, 8)
    assert patches_BNP[0, 1].tolist() == [2, 3, 6, 7, 18, 19, 22, 23]  # top right, both channels


def test_sinusoidal_positions_follow_the_formula() -> None:
    table_ND = SinusoidalPositions(7, 6).table_ND.double().numpy()
    for place in range(7):
        for k in range(3):
            angle = place / 10_000 ** (2 * k / 6)
            np.testing.assert_allclose(table_ND[place, 2 * k:2 * k + 2], [np.sin(angle), np.cos(angle)], atol=1e-6)


def test_positions_of_an_odd_width_fit() -> None:
    assert SinusoidalPositions(4, 5)(torch.zeros(1, 4, 5)).shape == (1, 4, 5)


def test_positions_are_not_decayed() -> None:
    model = TokenTransformer(channels=1, image_size=8, num_classes=3, patch_size=2, embed_dim=8, depth=1, num_heads=2,
                             mlp_ratio=2.0, positions="learned")
    assert model.no_weight_decay() <= {name for name, _ in model.named_parameters()}
