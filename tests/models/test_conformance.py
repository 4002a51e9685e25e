"""Every model of the registry, and what the families promise each other."""

from pathlib import Path
from typing import Any

import pytest
import torch

from vitbench import cost, registry
from vitbench.models import MODELS, ModelError, build, checked_cost, resolve
from vitbench.nn.resnet import Block
from vitbench.spec import ImageSpec
from vitbench.training.conformance import IMAGES, PROMISES

SIZED = [(name, size) for name in MODELS.names() if MODELS.open_names(name) is None
         for size in (MODELS.get(name).meta.sizes or [None])]
TRIED = [(name, size, image) for name, size in SIZED  # what a model makes of an image does not depend on its size
         for image in (IMAGES if size in (None, "xs") else (IMAGES[0], IMAGES[-1]))]
ONE_SIZE = ["linear"]  # do not add


@pytest.mark.parametrize(("name", "size", "image"), TRIED,
                         ids=lambda i: f"{i.size}x{i.channels}" if isinstance(i, ImageSpec) else i)
def test_a_model_keeps_every_promise(name: str, size: str | None, image: ImageSpec) -> None:
    for promise in PROMISES if image == IMAGES[0] else PROMISES[:2]:  # the others do not depend on the pixels
        promise(lambda image, classes: build(name, size, {}, image, classes), image)


@pytest.mark.parametrize("size", ["xs", "s", "m", "l", "xl"])
def test_all_families_are_matched_within_15_percent(size: str) -> None:
    image = ImageSpec(28, 1)
    params = {name: cost.count(lambda name=name: build(name, size, {}, image, 10), image).params
              for name, of in SIZED if of == size}
    assert {name for name, _ in SIZED} - params.keys() == set(ONE_SIZE)
    assert max(params.values()) / min(params.values()) < 1.15, params
    target = {"xs": 20e3, "s": 100e3, "m": 400e3, "l": 1.6e6, "xl": 6e6}[size]
    assert all(abs(p / target - 1) < 0.15 for p in params.values()), params


@pytest.mark.parametrize("name", ONE_SIZE)
def test_the_card_of_a_model_of_one_size_says_why(name: str) -> None:
    meta = MODELS.get(name).meta
    assert not meta.sizes
    assert meta.card(resolve(name, None, {})[0], ImageSpec(8, 1))["sizes"].startswith("one: ")


def test_width_16_with_3_blocks_is_the_papers_resnet_20() -> None:
    """Layers and parameters of He et al. 2016, table 6: 20 layers with weights, .27 M parameters."""
    model = build("resnet", "m", {"width": 16, "blocks_per_stage": 3}, ImageSpec(32, 3), 10)
    weights = [p for p in model.parameters() if p.dim() > 1]
    assert len(weights) == 20
    assert sum(p.numel() for p in weights) == 9 * (3 * 16 + 6 * 16**2 + 16 * 32 + 5 * 32**2 + 32 * 64 + 5 * 64**2) + 640
    assert round(sum(p.numel() for p in model.parameters()) / 1e6, 2) == 0.27


@pytest.mark.parametrize("stride", [1, 2])
def test_a_shortcut_takes_every_second_pixel_and_fills_with_zeros(stride: int) -> None:
    block = Block(2, 2 * stride, stride, "batch").eval()
    for parameter in block.parameters():
        torch.nn.init.zeros_(parameter)  # leaves the shortcut alone
    images = torch.rand(3, 2, 7, 7)
    out = block(images)
    assert torch.equal(out[:, :2], images[:, :, ::stride, ::stride])
    assert not out[:, 2:].any()


@pytest.mark.parametrize("name", ["token_transformer", "window_fc", "mixer"])
def test_the_cards_state_patch_and_at_least_16_tokens(name: str) -> None:
    meta = MODELS.get(name).meta
    for size, patch in ((8, 2), (28, 4), (32, 4), (64, 8)):
        card = meta.card(resolve(name, "s", {})[0], ImageSpec(size, 1))
        assert card["patch"] == patch
        assert card["tokens"] == (size // patch) ** 2 >= 16
        with pytest.raises(ModelError, match="patch_size: should be one of"):
            build(name, "s", {"patch_size": size // 2}, ImageSpec(size, 1), 10)


@pytest.mark.parametrize("name", ["convnet", "resnet", "convnext"])
@pytest.mark.parametrize("size", [8, 28, 30, 31])
def test_the_cards_state_the_places_at_the_end(name: str, size: int) -> None:
    image, places = ImageSpec(size, 1), []
    model = build(name, "xs", {}, image, 10)
    last = model.features if name != "convnext" else model.stages
    last.register_forward_hook(lambda _module, _inputs, output: places.append(output[0, 0].numel()))
    model(torch.zeros(2, 1, size, size))
    assert [MODELS.get(name).meta.card(resolve(name, "xs", {})[0], image)["places_at_the_end"]] == places


@pytest.mark.parametrize(("size", "options", "message"), [
    (None, {}, "size: 'token_transformer' comes in xs, s, m, l, xl"),
    ("huge", {}, "found 'huge'"),
    ("s", {"head": 3}, "head: 'token_transformer' has no such option; .*num_heads"),
    ("s", {"num_heads": 5}, "num_heads: should divide embed_dim 64; found 5. The nearest that does is 4"),
    ("s", {"patch_size": 3}, "patch_size: should be one of 1, 2 at 8 pixels .*found 3"),
    ("s", {"patch_size": 4}, "patch_size: should be one of 1, 2 at 8 pixels"),  # 4 tokens only
    ("s", {"positions": "sine"}, "positions: .*found 'sine'"),
    ("s", {"depth": 0}, "depth: .*found 0"),
    ("s", {"mlp_ratio": float("nan")}, "mlp_ratio: .*found nan"),
])
def test_a_wrong_size_or_option_is_named_with_what_is_allowed(size: str | None, options: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build("token_transformer", size, options, ImageSpec(8, 1), 10)


def test_options_equal_to_the_sizes_own_do_not_name_a_run() -> None:
    assert resolve("token_transformer", "s", {"embed_dim": 64, "num_heads": 8})[1] == {"num_heads": 8}


WRONG = """
from torch import nn
from vitbench.models import MODELS, ModelMeta

class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.flat, self.head = nn.Flatten(), nn.Linear(64, num_classes)

    def forward(self, images):
        logits = self.head(self.flat(images))
        return {returned}

@MODELS.add("mine", ModelMeta("control"))
def mine(image, num_classes):
    {first}
    return Net(num_classes)
"""


@pytest.mark.parametrize(("returned", "first", "message"), [
    ("logits[:, :3]", "", r"'mine' in training should map 2 images to logits of shape \(2, 10\), .*; found \(2, 3\)"),
    ("logits[0]", "", r"found \(10,\)"), ("logits.mean()", "", r"found \(\)"),
    ("(logits, logits)", "", "found a tuple"), ("{'out': logits}", "", "found a dict"),
    ("None", "", "found a NoneType"),
    ("logits if self.training else logits.T", "", r"'mine' in evaluation .*; found \(10, 2\)"),
    ("self.flat(logits @ logits)", "", "'mine' fails on images of 8 x 8 x 1 and 10 classes: RuntimeError: "),
    ("logits", "raise KeyError('width')", "'mine' fails on images of 8 x 8 x 1 and 10 classes: KeyError: 'width'"),
    ("logits", "from vitbench.models import ModelError; raise ModelError('size: mine')", "^size: mine$"),
    ("logits", "", None),
])
def test_a_plug_in_that_gives_no_logits_is_refused_before_it_trains(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returned: str, first: str, message: str | None) -> None:
    monkeypatch.setattr(MODELS, "_entries", dict(MODELS._entries))
    monkeypatch.setattr(registry, "_LOADED", {})
    (tmp_path / "mine.py").write_text(WRONG.format(returned=returned, first=first or "pass"))
    registry.load_plugin(tmp_path / "mine.py")
    before = torch.get_rng_state()
    if message is None:
        assert checked_cost("mine", None, {}, ImageSpec(8, 1), 10).params == 650
    else:
        with pytest.raises(ModelError, match=message):
            checked_cost("mine", None, {}, ImageSpec(8, 1), 10)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("name", "size"), SIZED)
def test_the_check_before_training_counts_like_the_run(name: str, size: str | None) -> None:
    image = ImageSpec(8, 1)
    assert checked_cost(name, size, {}, image, 10) == cost.count(lambda: build(name, size, {}, image, 10), image)


@pytest.mark.parametrize(("name", "options", "changes"), [
    ("token_transformer", {}, [{"patch_size": 7}]),
    ("token_transformer", {"tokens": "pixel"},
     [{"tokens": "patch", "patch_size": patch} for patch in (2, 4, 7)]),
    ("hybrid", {"patch_size": 2}, [{"patch_size": 4}, {"patch_size": 7}]),
    ("convnet", {}, []),
])
def test_what_costs_less_is_proposed_nearest_first(name: str, options: dict[str, Any],
                                                   changes: list[dict[str, Any]]) -> None:
    full, _ = resolve(name, "s", options)
    assert list(MODELS.get(name).meta.smaller(full, ImageSpec(28, 1))) == changes
