"""The whole model under every option: padding, order, tokens and codes, places of the norm, what is refused."""

import re
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vitbench.models import ModelError, build, checked_cost, resolve
from vitbench.models.token_transformer import Options
from vitbench.nn.attention import SelfAttention
from vitbench.nn.grid import CannotTake, Grid, padded
from vitbench.nn.pooling import AttentionPooling, Max, Mean
from vitbench.nn.token_transformer import TokenTransformer
from vitbench.nn.tokens import Codes, Lookup, OneHot, Patches
from vitbench.spec import ImageSpec

IMAGE = ImageSpec(8, 3)
SMALL = {"embed_dim": 16, "depth": 2, "num_heads": 2}
POSITIONS = ("none", "learned", "sinusoidal", "sinusoidal_2d", "relative", "rotary")
SPANS = ({"span": "global"}, {"span": "window", "window": 3}, {"span": "causal"})
TOKENS = ({"tokens": "patch"}, {"tokens": "pixel"}, {"tokens": "conv_stem"}, {"embedding": "one_hot"},
          {"embedding": "lookup"})


def made(image: ImageSpec = IMAGE, **options: object) -> TokenTransformer:
    torch.manual_seed(2)
    model = build("token_transformer", "s", SMALL | options, image, 5)
    assert isinstance(model, TokenTransformer)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 or "table" in name:
            torch.nn.init.normal_(parameter, std=2.0 if "table" in name else 0.5)  # no bias, token or table near 0
    return model.eval()


def images(count: int, height: int, width: int, channels: int = 3) -> torch.Tensor:
    return torch.randn(count, channels, height, width, generator=torch.Generator().manual_seed(height * 9 + width))


# Padding

PADDED = [{"positions": positions, **span, "pooling": pooling} for positions, span, pooling in
          product(POSITIONS, SPANS, ("mean", "cls", "max", "attention"))]
PADDED += [{"positions": "sinusoidal", **tokens, "pooling": "mean"} for tokens in TOKENS]
PADDED += [{"positions": "learned", "normaliser": normaliser, "score": score, **span}
           for normaliser, score, span in product(("relu", "sigmoid", "none"), ("dot", "additive"), SPANS)]


@pytest.mark.parametrize("options", PADDED, ids=str)
def test_a_padded_batch_gives_every_image_the_logits_that_it_gets_alone(options: dict) -> None:
    model = made(**options)
    alone = [images(1, height, width)[0] for height, width in ((8, 8), (4, 8), (6, 4), (2, 2))]
    batch, sizes = padded(alone)
    batch += (batch == 0) * 1e3  # what stands in the padding must not matter
    together = model(batch, sizes)
    for image, logits in zip(alone, together, strict=True):
        torch.testing.assert_close(logits, model(image[None])[0], atol=1e-5, rtol=1e-5)


def test_padding_is_not_ignored_without_the_sizes() -> None:
    """That the test above can fail."""
    model, alone = made(), [images(1, 8, 8)[0], images(1, 4, 4)[0]]
    batch, sizes = padded(alone)
    assert (model(batch)[1] - model(batch, sizes)[1]).abs().max() > 1e-2


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_padding_holds_for_any_sizes(sides: list[tuple[int, int]]) -> None:
    model = made(positions="relative", pooling="attention")
    alone = [images(1, 2 * height, 2 * width)[0] for height, width in sides]
    for image, logits in zip(alone, model(*padded(alone)), strict=True):
        torch.testing.assert_close(logits, model(image[None])[0], atol=1e-5, rtol=1e-5)


def test_an_image_that_tokens_do_not_cover_is_refused() -> None:
    with pytest.raises(CannotTake, match=r"tokens of 2 x 2 pixels do not cover a side of 7 .*; the nearest .* is 8"):
        made(positions="sinusoidal")(images(1, 7, 8))
    with pytest.raises(CannotTake, match="side of 3 pixels"):
        made()(images(2, 8, 8), torch.tensor([[8, 8], [3, 4]]))
    with pytest.raises(CannotTake, match="learned end at the 4 x 4 tokens"):
        made()(images(1, 10, 8))


@pytest.mark.parametrize("options", [{}, {"tokens": "conv_stem"}], ids=str)
@pytest.mark.parametrize(("sizes", "said"), [
    ([[8, 8], [-2, 4]], "1 x 1 to 8 x 8 pixels, .* found -2 x 4"), ([[8, 8], [8, 10]], "found 8 x 10"),
    ([[8, 8], [0, 4]], "found 0 x 4"), ([[8, 8]], "2 x 2; found 1 x 2"), ([8, 4], "found 2 of"),
    ([[8.0, 8.0], [4.0, 4.0]], "whole numbers, .*float32")])
def test_sizes_that_are_not_those_of_a_batch_are_refused(options: dict, sizes: list, said: str) -> None:
    with pytest.raises(CannotTake, match=said):
        made(**options)(images(2, 8, 8), torch.tensor(sizes))


@pytest.mark.parametrize(("shapes", "said"), [
    ([], "found none"), ([(8, 8)], r"found \(8, 8\)"), ([(3, 8, 8), (1, 4, 4)], "the same channels"),
    ([(3, 8, 8), (3, 0, 4)], r"\(3, 0, 4\)")])
def test_images_that_make_no_batch_are_not_padded(shapes: list[tuple[int, ...]], said: str) -> None:
    with pytest.raises(CannotTake, match=said):
        padded([torch.zeros(shape) for shape in shapes])


# Tokens

def test_an_image_of_5_x_10_rgb_pixels_is_50_vectors_of_length_3() -> None:
    vectors_BNP = Patches(1)(images(1, 5, 10))
    assert vectors_BNP.shape == (1, 50, 3)
    assert torch.equal(vectors_BNP[0, 13], images(1, 5, 10)[0, :, 1, 3])
    model = made(tokens="pixel", positions="sinusoidal")
    tokens_BMD, grid = model.tokens(images(1, 5, 10))
    assert tokens_BMD.shape == (1, 50, 16)
    assert (grid.height, grid.width) == (5, 10)


def test_a_patch_holds_its_own_pixels_in_raster_order() -> None:
    patches_BNP = Patches(2)(torch.arange(2 * 16).view(1, 2, 4, 4).float())
    assert patches_BNP.shape == (1, 4, 8)
    assert patches_BNP[0, 1].tolist() == [2, 3, 6, 7, 18, 19, 22, 23]  # top right, both channels


@pytest.mark.parametrize(("size", "tokens"), [(8, 16), (28, 49), (32, 64), (64, 64)])
def test_a_convolutional_stem_leaves_as_many_tokens_as_patches(size: int, tokens: int) -> None:
    model = made(ImageSpec(size, 1), tokens="conv_stem")
    assert model.tokens(images(1, size, size, 1))[0].shape[1] == tokens
    assert torch.isfinite(model(images(2, size, size, 1))).all()


@pytest.mark.parametrize(("channels", "levels"), [(1, 2), (1, 7), (1, 256), (3, 2), (3, 5)])
def test_codes_are_equal_steps_of_the_grey_levels_before_normalisation(channels: int, levels: int) -> None:
    codes = Codes(channels, levels)
    mean, deviation = torch.linspace(20, 180, channels), torch.linspace(90, 30, channels)
    codes.see_normalisation(mean, 1 / deviation)
    grey = torch.stack([torch.arange(256).roll(17 * c) for c in range(channels)]).view(1, channels, 16, 16)
    expected = sum((grey[:, c] * levels // 256) * levels**c for c in range(channels))
    found = codes((grey.float() - mean.view(-1, 1, 1)) * (1 / deviation).view(-1, 1, 1))
    assert torch.equal(found[:, 0], expected)
    assert codes.codes == levels**channels


def test_one_hot_codes_are_all_equally_far_apart_and_looked_up_ones_are_not() -> None:
    codes = torch.arange(6).view(1, 6, 1)
    one_hot_ND, looked_up_ND = OneHot(6)(codes)[0], Lookup(6, 3)(codes)[0]
    assert torch.equal(one_hot_ND, torch.eye(6))
    distances = torch.pdist(looked_up_ND.detach())
    assert distances.max() / distances.min() > 1.2


def test_a_one_hot_code_times_a_map_is_its_row() -> None:
    """So a trained map behind one-hot codes is a table of vectors, too: one for each place of the patch."""
    model = made(embedding="one_hot", levels=2)
    codes, _, _, linear = model.embed
    x_BCHW = images(2, 8, 8)
    code_BNP = Patches(2)(codes(x_BCHW))
    rows_PVD = linear.weight.T.unflatten(0, (4, 8))
    expected = sum(rows_PVD[p][code_BNP[..., p]] for p in range(4)) + linear.bias
    torch.testing.assert_close(model.embed(x_BCHW), expected)


# Order, pooling, place of the norm

@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "attention"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_only_without_positions_the_order_of_pixels_does_not_matter(positions: str, pooling: str) -> None:
    model, x_BCHW = made(tokens="pixel", positions=positions, pooling=pooling), images(2, 8, 8)
    mixed = x_BCHW.flatten(2)[:, :, torch.randperm(64, generator=torch.Generator().manual_seed(4))].view_as(x_BCHW)
    moved = (model(mixed) - model(x_BCHW)).abs().max().item()
    assert moved < 1e-5 if positions == "none" else moved > 1e-3


def test_pooling_is_what_its_name_says_padding_left_out() -> None:
    x_BND, real = torch.randn(2, 5, 3), torch.tensor([[True] * 5, [True, True, False, False, True]])
    for pool, of in ((Mean(), lambda x: x.mean(0)), (Max(), lambda x: x.amax(0))):
        torch.testing.assert_close(pool(x_BND, None)[0], of(x_BND[0]))
        torch.testing.assert_close(pool(x_BND, real)[1], of(x_BND[1, [0, 1, 4]]))
    pool = AttentionPooling(3)
    score = (x_BND[1, [0, 1, 4]] @ pool.score.weight[0]).softmax(0)
    torch.testing.assert_close(pool(x_BND, real)[1], score @ x_BND[1, [0, 1, 4]])


@pytest.mark.parametrize("place", ["pre", "post"])
def test_the_norm_stands_before_the_branch_or_behind_the_sum(place: str) -> None:
    block, grid = made(norm_place=place).blocks[0], Grid(4, 4)
    x = torch.randn(1, 16, 16)
    if place == "pre":
        x1 = x + block.attention(block.attention_norm(x), grid)
        expected = x1 + block.mlp(block.mlp_norm(x1))
    else:
        x1 = block.attention_norm(x + block.attention(x, grid))
        expected = block.mlp_norm(x1 + block.mlp(x1))
    torch.testing.assert_close(block(x, grid), expected)


def test_layer_scale_begins_each_branch_at_its_value() -> None:
    torch.manual_seed(0)
    plain, scaled = (build("token_transformer", "s", {"depth": 1, "layer_scale": scale}, IMAGE, 5)
                     for scale in (0.0, 1e-4))
    assert sum(p.numel() for p in scaled.parameters()) - sum(p.numel() for p in plain.parameters()) == 2 * 64
    x, grid = torch.randn(1, 16, 64), Grid(4, 4)
    torch.testing.assert_close(scaled.blocks[0](x, grid), x, atol=1e-2, rtol=0)
    assert (plain.blocks[0](x, grid) - x).abs().max() > 0.1


@pytest.mark.parametrize("option", ["dropout", "stochastic_depth"])
def test_regularisers_draw_in_training_alone(option: str) -> None:
    model, x_BCHW = made(**{option: 0.5}), images(4, 8, 8)
    assert torch.equal(model(x_BCHW), model(x_BCHW))
    model.train()
    assert not torch.equal(model(x_BCHW), model(x_BCHW))


def test_tables_of_places_are_not_decayed_and_all_are_parameters() -> None:
    for positions, spared in (("learned", 1), ("relative", 2), ("rotary", 0)):
        model = made(positions=positions)
        assert len(model.no_weight_decay()) == spared
        assert model.no_weight_decay() <= {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16])
def test_heads_do_not_change_the_parameters(heads: int) -> None:
    assert sum(p.numel() for p in made(num_heads=heads).parameters()) == sum(p.numel() for p in made().parameters())


# Every option with every other

CHOICES = {name: st.sampled_from(values) for name, values in {
    "tokens": ("patch", "pixel", "conv_stem"), "embedding": ("linear", "one_hot", "lookup"),
    "score": ("dot", "scaled_dot", "additive"), "normaliser": ("softmax", "relu", "sigmoid", "none"),
    "num_heads": (1, 2, 4, 8, 16), "positions": POSITIONS, "span": ("global", "window", "causal"),
    "window": (None, 1, 3, 5), "pooling": ("mean", "cls", "max", "attention"), "norm_place": ("pre", "post"),
    "layer_scale": (0.0, 0.1), "stochastic_depth": (0.0, 0.2), "dropout": (0.0, 0.1), "levels": (None, 3),
    "code_dim": (None, 2), "depth": (1, 2), "mlp_ratio": (1.0, 2.5)}.items()}
REASONS = ("embedding: .*conv_stem", "levels: belongs", "code_dim: belongs", "window: ", "positions: rotary",
           "num_heads: rotary")


@given(st.fixed_dictionaries(CHOICES))
@settings(max_examples=150, deadline=None)
def test_any_options_train_or_are_refused_with_a_reason(options: dict) -> None:
    image = ImageSpec(8, 1)
    refusal, model = "", None
    try:
        model = build("token_transformer", "s", {"embed_dim": 16} | options, image, 3)
    except ModelError as error:
        refusal = str(error)
    if model is None:
        assert any(re.match(reason, refusal) for reason in REASONS), refusal
        return
    model(images(2, 8, 8, 1)).square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    assert checked_cost("token_transformer", "s", {"embed_dim": 16} | options, image, 3).params == sum(
        p.numel() for p in model.parameters())


@pytest.mark.parametrize(("options", "message"), [
    ({"tokens": "pixel", "patch_size": 2}, "patch_size: has no meaning with tokens pixel; found 2"),
    ({"patch_size": 1}, "patch_size: a patch of 1 pixel is written tokens: pixel"),
    ({"tokens": "conv_stem", "patch_size": 1}, "patch_size: with tokens conv_stem .*one of 2 at 8 pixels; found 1"),
    ({"tokens": "conv_stem", "embedding": "one_hot"}, "embedding: one_hot is of pixel values.*allowed with it: linear"),
    ({"levels": 4}, "levels: belongs to embedding one_hot or lookup; found 4 with embedding linear"),
    ({"embedding": "one_hot", "code_dim": 4}, "code_dim: belongs to embedding lookup"),
    ({"span": "window"}, "window: span window needs one, odd, from 1 to 7"),
    ({"window": 3}, "window: belongs to span window; found 3 with span global"),
    ({"span": "window", "window": 4}, "window: should be odd and at most 7 .*found 4. The nearest is 3"),
    ({"span": "window", "window": 99}, "found 99. The nearest is 7"),
    ({"score": "additive", "positions": "rotary"}, "positions: rotary .*additive has no product. Allowed with it"),
    ({"positions": "rotary", "num_heads": 32}, "num_heads: rotary positions need heads of 4 .*32 heads of embed_dim 64 "
     "have 2. The nearest that fits is 16"),
    ({"embed_dim": 2, "num_heads": 1, "positions": "sinusoidal_2d"}, "embed_dim: sinusoidal_2d positions need 4"),
    ({"num_heads": 3}, "num_heads: should divide embed_dim 64; found 3. The nearest that does is 2"),
    ({"normaliser": "softmx"}, "normaliser: .*found 'softmx'. Did you mean 'softmax'?"),
    ({"mlp_ratio": 0.015}, "mlp_ratio: 0.015 of embed_dim 64 leaves .*The nearest that leaves one is 0.015625"),
    ({"tokens": "conv_stem", "patch_size": 8}, "patch_size: with tokens conv_stem .*one of 2 at 8 pixels; found 8"),
    ({"dropout": 1.0}, "dropout: .*less than 1; found 1"),
    ({"norm_plac": "pre"}, "norm_plac: .*no such option.*Did you mean 'norm_place'"),
])
def test_an_impossible_pair_is_refused_with_what_is_allowed(options: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build("token_transformer", "s", options, ImageSpec(8, 1), 10)


@pytest.mark.parametrize(("image", "embedding", "levels", "message"), [
    (ImageSpec(64, 3), "one_hot", 16, "levels: 16 a channel are 4,096 codes, and one_hot would take .* for one "
     "image; at most .*The most that fit are 10"),
    (ImageSpec(32, 3), "one_hot", 256, "16,777,216 codes, .*The most that fit are 16"),
    (ImageSpec(32, 3), "lookup", 256, "lookup would take .* for its table; .*The most that fit are 80"),
])
def test_codes_beyond_the_bound_are_refused_with_what_they_take(image: ImageSpec, embedding: str, levels: int,
                                                               message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build("token_transformer", "s", {"embedding": embedding, "levels": levels}, image, 10)
    fitting = int(message.rsplit(" ", 1)[1])
    resolve("token_transformer", "s", {"embedding": embedding, "levels": fitting})
    assert checked_cost("token_transformer", "s", {"embedding": embedding, "levels": fitting}, image, 10).macs


def test_the_model_uses_the_layer_that_is_tested() -> None:
    assert sum(isinstance(module, SelfAttention) for module in made().modules()) == 2
    assert set(Options.model_fields) >= {"score", "normaliser", "span"}


@pytest.mark.parametrize("options", [
    {"positions": "relative", "pooling": "cls"}, {"positions": "rotary", "span": "causal"}, {"score": "additive"},
    {"tokens": "pixel", "span": "window", "window": 3}, {"normaliser": "sigmoid"}, {"embedding": "one_hot"},
    {"tokens": "conv_stem", "positions": "relative", "span": "window", "window": 3}], ids=str)
def test_mechanisms_hold_in_bf16(options: dict) -> None:
    model, x_BCHW = made(**options), images(2, 8, 8)
    for parameter in model.parameters():
        parameter.data.clamp_(-0.5, 0.5)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(x_BCHW)
    torch.testing.assert_close(logits.float(), model(x_BCHW), atol=0.1, rtol=0.05)
    logits.float().square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
