"""`timm/<name>`: which names there are, what is made of them, and what is refused."""

import importlib.util
import itertools
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import timm
import torch

from vitbench.models import MODELS, ModelError, build, checked_cost, resolve
from vitbench.models import timm as entry
from vitbench.nn import timm_model, timm_published
from vitbench.registry import UnknownName
from vitbench.spec import ImageSpec

SMALL, GREY, COLOUR, LARGE = ImageSpec(8, 1), ImageSpec(28, 1), ImageSpec(32, 3), ImageSpec(64, 3)
HANDFUL = {"vit_tiny_patch16_224": "attention", "deit_tiny_patch16_224": "attention",
           "swin_tiny_patch4_window7_224": "attention", "resnet18": "convolution", "convnext_atto": "convolution",
           "efficientnet_b0": "convolution", "mobilenetv3_small_100": "convolution", "mixer_s16_224": "control",
           "xcit_nano_12_p16_224": "hybrid"}


def fresh(name: str, image: ImageSpec = GREY, **options: object) -> torch.nn.Module:
    torch.manual_seed(0)
    return build(f"timm/{name}", None, options, image, 7)


def card(name: str, image: ImageSpec, **options: object) -> dict[str, object]:
    return dict(MODELS.get(f"timm/{name}").meta.card(resolve(f"timm/{name}", None, options)[0], image))


# Names

def test_the_names_read_from_the_source_are_those_that_timm_has() -> None:
    assert set(entry.source_files()) == set(timm.list_models())
    assert MODELS.open_names("timm") == tuple(sorted(timm.list_models()))


def test_every_model_file_of_the_installed_timm_has_a_family() -> None:
    folder = Path(importlib.util.find_spec("timm").origin).parent / "models"  # type: ignore[union-attr, arg-type]
    files = {path.stem for path in folder.glob("[!_]*.py") if "@register_model" in path.read_text(encoding="utf-8")}
    listed = [file for files_of in entry.FILES.values() for file in files_of.split()]
    assert set(listed) == files
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("start", entry.EXCEPTIONS)
def test_every_exception_to_a_files_family_is_of_some_use(start: str) -> None:
    (name, *_) = [name for name in entry.source_files() if name.startswith(start)]
    file = entry.source_files()[name]
    assert file not in entry.FILES[entry.EXCEPTIONS[start]].split()
    assert entry.meta(name).family == entry.EXCEPTIONS[start]


@pytest.mark.parametrize(("name", "family"), [
    *HANDFUL.items(), ("coatnet_0_224", "hybrid"), ("levit_128", "hybrid"), ("mobilenetv4_hybrid_medium", "hybrid"),
    ("mobilenetv4_conv_small", "convolution"), ("poolformer_s12", "control"), ("caformer_s18", "hybrid"),
])
def test_a_family_follows_from_file_and_name(name: str, family: str) -> None:
    assert MODELS.get(f"timm/{name}").meta.family == family


def test_a_file_that_is_not_in_the_table_is_no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "source_files", lambda: {"new_net": "new_file"})
    with pytest.raises(ModelError, match=r"family of 'timm/new_net' is not known: its file new_file.py is newer"):
        entry.meta("new_net")


@pytest.mark.parametrize(("name", "message"), [
    ("timm/resnet19", "unknown model 'timm/resnet19'; the installed timm has .* Did you mean 'timm/resnet18' or "),
    ("timm/vit_tiny_patch16_224.augreg", "the tag 'augreg' names pretrained weights, and nothing here is pretrained; "
                                         "write timm/vit_tiny_patch16_224"),
    ("timm/nothing.augreg", "unknown model 'timm/nothing.augreg'"), ("timm/", "unknown model 'timm/'"),
    ("timm", "'timm' stands for many: write timm/NAME"), ("timm/hf-hub:a/b", "unknown model"),
    ("timm/tv_resnet50", "unknown model"),  # an old name that stood for pretrained weights
])
def test_a_name_that_timm_does_not_have_is_refused(name: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        MODELS.get(name)


# What is built

@pytest.mark.parametrize(("name", "image"), list(itertools.product(HANDFUL, (GREY, COLOUR))), ids=str)
def test_each_of_a_handful_takes_the_image_size_and_is_counted(name: str, image: ImageSpec) -> None:
    cost = checked_cost(f"timm/{name}", None, {}, image, 10)
    assert cost.params > 10_000
    assert cost.macs > cost.params / 100


@pytest.mark.parametrize("name", HANDFUL)
def test_a_model_learns_in_all_its_parts_and_draws_nothing_while_it_trains(name: str) -> None:
    model = fresh(name)
    images = torch.randn(3, 1, 28, 28)
    first, second = model(images), model(images)
    assert first.shape == (3, 7)
    assert torch.isfinite(first).all()
    assert torch.equal(first, second)  # in training mode: no dropout, no stochastic depth
    first.square().sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not torch.isfinite(p.grad).all()] == []


def test_without_the_switch_timm_would_draw() -> None:
    """That the test above can fail: Swin's own default is a stochastic depth of up to .1."""
    model = timm_published.create("swin_tiny_patch4_window7_224", 1, 7, {"img_size": 28})
    assert any(module.drop_prob for module in model.modules() if hasattr(module, "drop_prob"))
    assert len(timm_model.switch_off_regularisers(model)) > 10
    assert timm_model.switch_off_regularisers(model) == []


@pytest.mark.parametrize("drop", ["drop_rate", "drop_path_rate", "proj_drop_rate", "attn_drop_rate"])
def test_every_kind_of_dropout_is_switched_off(drop: str) -> None:
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, **{drop: 0.5})
    images = torch.randn(2, 3, 32, 32)
    torch.nn.init.normal_(model.head.weight)
    assert not torch.equal(model(images), model(images))
    timm_model.switch_off_regularisers(model)
    assert torch.equal(model(images), model(images))


def test_weights_depend_on_the_generator_alone_whatever_was_tried_before() -> None:
    def weights() -> list[torch.Tensor]:
        return list(fresh("resnet18").parameters())

    for cached in (timm_model.choose, timm_model.places, timm_published.published, timm_published.stem_of):
        cached.cache_clear()
    assert all(torch.equal(a, b) for a, b in zip(weights(), weights(), strict=True))


def test_macs_of_a_vit_agree_with_a_count_by_hand() -> None:
    """ViT-Tiny at 28 x 28 x 1 in patches of 4: 49 tokens and a class token, D = 192, 12 blocks, 4 x MLP."""
    N, D, P, C = 50, 192, 4, 10
    block = N * (3 * D * D + D * D + 2 * 4 * D * D) + 2 * N * N * D  # the last term: scores and mixing
    assert checked_cost("timm/vit_tiny_patch16_224", None, {}, GREY, C).macs == 49 * P * P * D + 12 * block + D * C


@pytest.mark.parametrize(("image", "patch", "tokens"), [(SMALL, 2, 16), (GREY, 4, 49), (COLOUR, 4, 64), (LARGE, 8, 64)])
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "mixer_s16_224"])
def test_patches_are_those_of_our_own_transformer(name: str, image: ImageSpec, patch: int, tokens: int) -> None:
    made = card(name, image)
    assert (made["stem"], made["patch"], made["tokens"]) == ("none", patch, tokens)
    ours = MODELS.get("token_transformer").meta.card(resolve("token_transformer", "s", {})[0], image)
    assert (ours["patch"], ours["tokens"]) == (patch, tokens)


def test_published_patches_that_are_small_enough_stay() -> None:
    assert card("swin_tiny_patch4_window7_224", LARGE)["patch"] == 4


def test_a_chosen_patch_size_is_used_and_names_the_run() -> None:
    assert card("vit_tiny_patch16_224", GREY, patch_size=7)["tokens"] == 16
    assert resolve("timm/vit_tiny_patch16_224", None, {"patch_size": 7})[1] == {"patch_size": 7}
    assert resolve("timm/vit_tiny_patch16_224", None, {"stem": "auto"})[1] == {}


def test_patches_behind_a_convolutional_stem_are_as_fine_with_a_small_stem() -> None:
    made = card("xcit_nano_12_p16_224", GREY)  # knows patches of 8 and 16 only
    assert (made["stem"], made["stride"], made["patch"], made["tokens"]) == ("3x3 convolution", 1, 4, 49)


@pytest.mark.parametrize(("stem", "stride", "places"), [("auto", 1, 16), ("small", 1, 16), ("published", 4, 1)])
def test_a_stem_made_small_has_stride_1_and_no_pool(stem: str, stride: int, places: int) -> None:
    made = card("resnet18", GREY, stem=stem)
    assert (made["stride"], made["places_at_the_end"], made["normalisation"]) == (stride, places, "BatchNorm")
    model = fresh("resnet18", stem=stem).eval()
    assert isinstance(model.maxpool, torch.nn.Identity) is (stride == 1)
    assert model.conv1.stride == ((1, 1) if stride == 1 else (2, 2))
    assert model.forward_features(torch.zeros(1, 1, 28, 28)).shape[2:].numel() == places


def test_the_published_stem_stays_where_it_leaves_enough() -> None:
    assert card("resnet18", ImageSpec(128, 3))["stride"] == 4


def test_a_stem_of_patches_keeps_the_image_when_it_is_made_small() -> None:
    """ConvNeXt: 4 x 4 convolutions of stride 4 and no padding would leave 25 of 28 pixels at stride 1."""
    stem = fresh("convnext_atto").stem
    assert stem(torch.zeros(1, 1, 28, 28)).shape[2:] == (28, 28)


def test_what_leaves_least_is_still_made_as_fine_as_it_can_be() -> None:
    made = card("resnet18", SMALL)
    assert (made["stride"], made["places_at_the_end"]) == (1, 1)


# What is refused

@pytest.mark.parametrize(("name", "options", "image", "message"), [
    ("crossvit_9_240", {}, GREY, "name: timm/crossvit_9_240 cannot take images of 28 x 28 x 1: its branches cut"),
    ("vgg11", {}, SMALL, "name: timm/vgg11 cannot take images of 8 x 8 x 1: .*too small"),
    ("resnet18", {"patch_size": 4}, GREY, "patch_size: timm/resnet18 .* has no patches that can be set"),
    ("vit_tiny_patch16_224", {"stem": "small"}, GREY, "stem: .*nothing to make smaller"),
    ("vit_tiny_patch16_224", {"patch_size": 3}, GREY, "patch_size: should be one of 1, 2, 4, 7 at 28 pixels"),
    ("vit_tiny_patch16_224", {"stem": "tiny"}, GREY, "stem: .*found 'tiny'"),
    ("vit_tiny_patch16_224", {"patch": 4}, GREY, "patch: .*has no such option; allowed: patch_size, stem"),
])
def test_what_a_model_cannot_take_is_told_with_model_size_and_reason(name: str, options: dict[str, object],
                                                                    image: ImageSpec, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        checked_cost(f"timm/{name}", None, options, image, 10)
    assert "\n" not in str(caught.value)


def test_a_size_is_refused() -> None:
    with pytest.raises(ModelError, match="size: 'timm/resnet18' comes in one size; found 's'"):
        resolve("timm/resnet18", "s", {})


@pytest.mark.parametrize("said", ["", "two\nlines"])
def test_a_reason_is_one_line_even_where_timm_has_none(said: str) -> None:
    def refuse() -> None:
        raise AssertionError(said)

    assert timm_published.reason_of(_raised(refuse)) == (" ".join(said.split()) or "AssertionError at `?`")


def _raised(refuse: Callable[[], None]) -> Exception:
    with pytest.raises(AssertionError) as caught:
        refuse()
    return caught.value


def test_tokens_count_overlapping_patches_and_refuse_unseen_pixels() -> None:
    assert timm_model.Fit(img_size=28, patch_size=4).tokens == math.prod((7, 7))
    assert timm_model.Fit(img_size=28, patch_size=4, stride=2).tokens == math.prod((13, 13))
    with pytest.raises(timm_published.CannotFit, match="patches of 5 pixels do not cover 28"):
        _ = timm_model.Fit(img_size=28, patch_size=5).tokens


ONE_OF_EACH_FILE = {file: name for name, file in sorted(entry.source_files().items(), reverse=True)}


@pytest.mark.survey
@pytest.mark.parametrize("file", sorted(ONE_OF_EACH_FILE))
def test_a_model_of_each_file_gives_logits_or_a_reason(file: str) -> None:
    name = f"timm/{ONE_OF_EACH_FILE[file]}"
    refusal = ""
    try:
        assert checked_cost(name, None, {}, COLOUR, 10).macs > 0
        assert card(ONE_OF_EACH_FILE[file], COLOUR)["normalisation"]
    except ModelError as error:
        refusal = str(error)
    assert not refusal or f"{name} cannot take images of 32 x 32 x 3: " in refusal
    assert "\n" not in refusal
