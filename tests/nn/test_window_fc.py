"""The shared layer over windows against neighbours gathered by hand and one linear map."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from vitbench.models import MODELS, ModelError, build, resolve
from vitbench.nn.window_fc import Block, WindowFC
from vitbench.spec import ImageSpec

GREY, CLOTHES = ImageSpec(8, 1), ImageSpec(28, 1)


def by_hand(block: Block, x_BGGD: Tensor, window: int) -> Tensor:
    """Each place's neighbours side by side, zeros beyond the border, through one nn.Linear."""
    G, D, reach = x_BGGD.shape[1], x_BGGD.shape[3], window // 2
    linear = nn.Linear(D * window**2, D).double()
    linear.weight.data, linear.bias.data = block.layer.weight.flatten(1), block.layer.bias.data
    padded = F.pad(F.layer_norm(x_BGGD, (D,)), (0, 0, reach, reach, reach, reach))
    rows = [[linear(padded[:, i:i + window, j:j + window].permute(0, 3, 1, 2).flatten(1)) for j in range(G)]
            for i in range(G)]
    return x_BGGD + F.gelu(torch.stack([torch.stack(row, 1) for row in rows], 1))


@pytest.mark.parametrize("window", [1, 3, 5, 7])
def test_a_block_is_one_linear_map_of_the_neighbours(window: int) -> None:
    block, x_BGGD = Block(6, window).double(), torch.randn(2, 4, 4, 6, dtype=torch.float64)
    torch.testing.assert_close(block(x_BGGD), by_hand(block, x_BGGD, window), atol=1e-12, rtol=0)


def test_stochastic_depth_that_drops_a_branch_leaves_its_input() -> None:
    block, x_BGGD = Block(6, 3), torch.randn(2, 4, 4, 6)
    block.drop_path = nn.Threshold(torch.inf, 0.0)
    assert torch.equal(block(x_BGGD), x_BGGD)


@pytest.mark.parametrize(("window", "sees"), [(1, 1), (3, 4), (5, 9), (7, 16)])
def test_the_corner_sees_what_its_window_covers_and_the_largest_is_the_whole_image(window: int, sees: int) -> None:
    x_BGGD = torch.randn(1, 4, 4, 6, requires_grad=True)
    Block(6, window)(x_BGGD)[0, 0, 0].sum().backward()
    assert int((x_BGGD.grad.abs().sum(3) > 0).sum()) == sees


@pytest.mark.parametrize(("window", "blind"), [(1, True), (3, False)])
def test_a_vector_alone_is_blind_to_the_order_of_the_patches(window: int, blind: bool) -> None:
    model = WindowFC(channels=1, num_classes=5, patch_size=2, embed_dim=12, depth=2, window=window)
    images = torch.randn(3, 1, 8, 8)
    moved = images.roll((2, 4), dims=(2, 3))  # whole patches
    assert torch.allclose(model(images), model(moved), atol=1e-5) is blind


@pytest.mark.parametrize(("image", "windows"), [(GREY, (1, 3, 7)), (CLOTHES, (1, 3, 7, 13)),
                                                (ImageSpec(64, 3), (1, 3, 7, 15))])
def test_the_card_shows_how_the_layer_grows_beside_attention(image: ImageSpec, windows: tuple[int, ...]) -> None:
    card = MODELS.get("window_fc").meta.card(resolve("window_fc", "xs", {})[0], image)
    start = "parameters_of_a_layer_with_window_"
    grown = {int(key.removeprefix(start)): count for key, count in card.items() if key.startswith(start)}
    assert tuple(grown) == windows
    assert card["window_of_the_whole_image"] == windows[-1] == 2 * image.size // card["patch"] - 1
    for window, count in grown.items():
        assert count == parameters(Block(32, window).layer)
        model = build("window_fc", "xs", {"window": window}, image, 10)
        assert all(parameters(block.layer) == count for block in model.blocks)
    assert card["parameters_of_an_attention_layer"] == parameters(nn.MultiheadAttention(32, 2))


def parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_the_card_shows_the_chosen_window_too() -> None:
    card = MODELS.get("window_fc").meta.card(resolve("window_fc", "xs", {"window": 5})[0], CLOTHES)
    assert card["parameters_of_a_layer_with_window_5"] == 32 * (25 * 32 + 1)


@pytest.mark.parametrize(("image", "options", "most", "nearest"), [
    (GREY, {"window": 4}, 7, 3), (GREY, {"window": 9}, 7, 7), (GREY, {"window": 8}, 7, 7),
    (GREY, {"window": 17, "patch_size": 1}, 15, 15), (CLOTHES, {"window": 2}, 13, 1)])
def test_a_window_that_does_not_fit_is_told_the_range_and_the_nearest(image: ImageSpec, options: dict[str, int],
                                                                     most: int, nearest: int) -> None:
    with pytest.raises(ModelError, match=f"window: should be odd, from 1 to {most}, .* found {options['window']}. "
                                         f"The nearest is {nearest}$"):
        build("window_fc", "xs", options, image, 10)
    assert build("window_fc", "xs", {**options, "window": nearest}, image, 10)
