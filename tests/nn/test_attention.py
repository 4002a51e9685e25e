"""The attention layer, every mechanism of it, against a few lines of float64 NumPy; fused against written out."""

from itertools import product

import numpy as np
import pytest
import torch

from tests.nn import by_hand
from vitbench.nn.attention import AdditiveScore, SelfAttention
from vitbench.nn.grid import Grid
from vitbench.nn.positions import RelativeBias, RotaryPositions
from vitbench.nn.span import Span

HEIGHT, WIDTH, D, H = 4, 4, 8, 2
SCORES, NORMALISERS = ("dot", "scaled_dot", "additive"), ("softmax", "relu", "sigmoid", "none")
SPANS = (("global", None), ("window", 3), ("causal", None))
INSIDE = ("none", "relative", "rotary")  # positions that act inside of the layer
EVERY = [(score, normaliser, positions, span, extra)
         for score, normaliser, positions, span, extra in product(SCORES, NORMALISERS, INSIDE, SPANS, (0, 1))
         if not (score == "additive" and positions == "rotary")]
FUSED = [case for case in EVERY if case[0] != "additive" and case[1] == "softmax"]


def layer_of(*case: object, grid: Grid | None = None, width: int = D) -> tuple[SelfAttention, Grid]:
    torch.manual_seed(3)
    score, normaliser, positions, span, extra = case
    grid = grid or Grid(HEIGHT, WIDTH)
    layer = SelfAttention(
        width, H, score=score, normaliser=normaliser, span=Span(grid, *span, bool(extra)),
        relative=RelativeBias(grid, H) if positions == "relative" else None,
        rotary=RotaryPositions(grid, width // H) if positions == "rotary" else None).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.7)  # so that no bias, table or direction is near 0
    return layer, grid


def tokens(grid: Grid, extra: int, width: int = D, batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, grid.tokens + extra, width, dtype=torch.float64,
                       generator=torch.Generator().manual_seed(1))


def same(found: torch.Tensor, wanted: torch.Tensor, tolerance: float) -> None:
    """Within `tolerance` of the largest number, or of 1."""
    torch.testing.assert_close(found, wanted, atol=tolerance * max(1.0, wanted.abs().max().item()), rtol=0)


def expected(layer: SelfAttention, x_MD: np.ndarray, case: tuple, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Output M x D and weights H x M x M."""
    score, normaliser, positions, span, extra = case
    value = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    parts = np.split(x_MD @ value["query_key_value.weight"].T + value["query_key_value.bias"], 3, axis=1)
    seen = by_hand.seen(grid.height, grid.width, *span, extra)
    K, heads, looks = x_MD.shape[1] // H, [], []
    for h in range(H):
        query, key, val = (part[:, h * K:(h + 1) * K] for part in parts)
        if positions == "rotary":
            query, key = (by_hand.rotated(x, grid.width, grid.tokens) for x in (query, key))
        direction_K = value["score.direction_HK1"][h, :, 0] if score == "additive" else None
        scores = by_hand.score(query, key, score, direction_K)
        if positions == "relative":
            N = grid.tokens
            scores[:N, :N] += by_hand.relative(value["relative.table_HO"], grid.height, grid.width)[h]
        looks.append(by_hand.weights(scores, seen, normaliser))
        heads.append(looks[-1] @ val)
    return np.concatenate(heads, axis=1) @ value["merge.weight"].T + value["merge.bias"], np.stack(looks)


@pytest.mark.parametrize("case", EVERY, ids=str)
def test_every_mechanism_is_what_its_formula_says(case: tuple) -> None:
    layer, grid = layer_of(*case)
    x_BMD = tokens(grid, case[-1])
    for image, x_MD in enumerate(x_BMD.numpy()):
        output, looks = expected(layer, x_MD, case, grid)
        same(layer(x_BMD, grid)[image], torch.from_numpy(output), 1e-6)  # tables of places are float32
        same(layer.weights(x_BMD, grid)[image], torch.from_numpy(looks), 1e-6)


@pytest.mark.parametrize(("grid", "dtype"), [(Grid(4, 4), torch.float64), (Grid(6, 5), torch.float32)],
                         ids=["4x4 float64", "6x5 float32"])
@pytest.mark.parametrize("case", FUSED, ids=str)
def test_the_fused_form_equals_the_written_out_one_in_value_and_gradient(case: tuple, dtype: torch.dtype,
                                                                        grid: Grid) -> None:
    layer, _ = layer_of(*case, grid=grid)
    layer.to(dtype)
    found = []
    for written_out in (False, True):
        x_BMD = tokens(grid, case[-1]).to(dtype).requires_grad_()
        layer.written_out = written_out
        layer.zero_grad()
        output = layer(x_BMD, grid)
        (output * torch.linspace(-1, 1, D, dtype=dtype)).sum().backward()
        found.append((output, x_BMD.grad, *(p.grad for p in layer.parameters())))
    for fused, written in zip(*found, strict=True):
        assert written.abs().max() > 0
        same(fused, written, 1e-5)


def test_the_written_out_form_is_another_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the test above can fail: written out, PyTorch's fused attention is not called."""
    layer, grid = layer_of(*FUSED[0])
    x_BMD = tokens(grid, 0)
    layer.written_out = True
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", None)
    layer(x_BMD, grid)
    layer.written_out = False
    with pytest.raises(TypeError):
        layer(x_BMD, grid)


@pytest.mark.parametrize("case", [(s, n, p, span, 0) for s, n, p, span in (
    ("scaled_dot", "softmax", "relative", ("window", 3)), ("additive", "softmax", "relative", ("global", None)),
    ("dot", "sigmoid", "rotary", ("causal", None)), ("scaled_dot", "none", "none", ("window", 3)))], ids=str)
def test_gradients_pass_gradcheck(case: tuple) -> None:
    grid = Grid(5, 2)
    layer, _ = layer_of(*case, grid=grid, width=8)
    weights = dict(layer.named_parameters())

    def run(x_BMD: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, dict(zip(weights, values, strict=True)), (x_BMD, grid))

    assert torch.autograd.gradcheck(run, (tokens(grid, 0, 8, batch=1).requires_grad_(), *weights.values()))


def test_attention_without_positions_is_blind_to_order() -> None:
    layer, grid = layer_of("scaled_dot", "softmax", "none", ("global", None), 0)
    x_BMD, order = tokens(grid, 0), torch.randperm(grid.tokens)
    torch.testing.assert_close(layer(x_BMD, grid)[:, order], layer(x_BMD[:, order], grid), atol=1e-12, rtol=0)


@pytest.mark.parametrize("positions", ["relative", "rotary"])
def test_positions_inside_of_the_layer_are_not(positions: str) -> None:
    layer, grid = layer_of("scaled_dot", "softmax", positions, ("global", None), 0)
    x_BMD, order = tokens(grid, 0), torch.arange(grid.tokens).flip(0).roll(1)
    assert (layer(x_BMD, grid)[:, order] - layer(x_BMD[:, order], grid)).abs().max() > 1e-2


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
@pytest.mark.parametrize("score", SCORES)
def test_the_number_of_heads_does_not_change_the_parameters(score: str, heads: int) -> None:
    count = sum(p.numel() for p in SelfAttention(D, heads, score=score).parameters())
    assert count == 4 * D * D + 4 * D + (D if score == "additive" else 0)


@pytest.mark.parametrize("head_dim", [16, 64, 256])
def test_scores_of_unit_queries_and_keys_have_variance_d_k_and_scaled_1(head_dim: int) -> None:
    query, key = torch.randn(2, 4, 1, 500, head_dim, generator=torch.Generator().manual_seed(0)).unbind(0)
    for scaled, variance in ((False, head_dim), (True, 1)):
        layer = SelfAttention(head_dim, 1, score="scaled_dot" if scaled else "dot")
        assert layer.score(query, key).var().item() == pytest.approx(variance, rel=0.03)


def test_additive_scores_are_no_product() -> None:
    score = AdditiveScore(1, 4)
    query, key = torch.randn(2, 1, 1, 3, 4).unbind(0)
    assert score(query, key).abs().max() <= score.direction_HK1.abs().sum()  # a tangent is at most 1
    torch.testing.assert_close(score(query, key), score(key, query).mT)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_all_normalisers_give_weights_of_the_same_size_at_score_zero_but_none(normaliser: str) -> None:
    """What a layer passes on does not grow with the number of tokens (sigmoid: nearly 1/N each)."""
    layer, grid = layer_of("scaled_dot", normaliser, "none", ("global", None), 0, grid=Grid(8, 8))
    for parameter in layer.query_key_value.parameters():
        torch.nn.init.zeros_(parameter)
    each = {"softmax": 1 / 64, "sigmoid": 1 / 65, "relu": 0.0, "none": 0.0}[normaliser]
    torch.testing.assert_close(layer.weights(tokens(grid, 0), grid), torch.full((2, H, 64, 64), each).double())
