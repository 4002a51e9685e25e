"""A regime is a pure function of (augmentation stream, step), for every dataset of the registry."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.training.test_operations import noise, shifted
from vitbench.datasets import DATASETS, DatasetMeta
from vitbench.datasets._variant import shuffled
from vitbench.regimes import LABEL_SMOOTHING, WORDS, ForbiddenRegime
from vitbench.spec import Regime
from vitbench.streams import Streams
from vitbench.training.augment import Augmentation

CPU = torch.device("cpu")
FILL = torch.full((1, 1, 1, 1), 90.0)
DIGITS = DATASETS.get("digits").meta


def made(regime: Regime, meta: DatasetMeta = DIGITS, stream: int = 0, device: torch.device = CPU) -> Augmentation:
    augmentation = Augmentation.of(regime, meta, Streams(1, 2, 3, stream), device)
    assert augmentation is not None
    return augmentation


def batch(meta: DatasetMeta, count: int = 32) -> tuple[Tensor, Tensor]:
    return (noise(count, channels=meta.image.channels, side=meta.image.size),
            torch.arange(count) % meta.num_classes)


def allowed(meta: DatasetMeta, regime: Regime) -> bool:
    try:
        return Augmentation.of(regime, meta, Streams(0, 0, 0, 0), CPU) is not None
    except ForbiddenRegime:
        return False


ALLOWED = [(name, regime) for name in DATASETS.names() for regime in ("light", "strong")
           if allowed(DATASETS.get(name).meta, regime)]


def test_the_shipped_photographs_allow_both() -> None:
    assert {(name, regime) for name in ("digits", "fashion_mnist") for regime in ("light", "strong")} <= set(ALLOWED)


@pytest.mark.parametrize(("name", "regime"), ALLOWED)
def test_images_keep_form_and_range_and_targets_are_shares(name: str, regime: Regime) -> None:
    meta = DATASETS.get(name).meta
    images, labels = batch(meta)
    kept = images.clone()
    for step in range(20):
        found, targets = made(regime, meta)(step, images, labels, FILL)
        assert found.shape == images.shape
        assert found.min() >= 0
        assert found.max() <= 255.001
        if regime == "light":
            assert torch.equal(targets, labels)
        else:
            assert targets.shape == (len(labels), meta.num_classes)
            assert torch.allclose(targets.sum(dim=1), torch.ones(len(labels)))
            assert targets.min() >= LABEL_SMOOTHING / meta.num_classes - 1e-6
    assert torch.equal(images, kept)


@pytest.mark.parametrize(("name", "regime"), ALLOWED)
def test_what_happens_depends_on_stream_and_step_alone(name: str, regime: Regime) -> None:
    meta = DATASETS.get(name).meta
    images, labels = batch(meta)
    first, again, other = made(regime, meta), made(regime, meta), made(regime, meta, stream=1)
    inorder = [first(step, images, labels, FILL) for step in range(6)]
    for step in (4, 0, 5, 4):
        torch.rand(3)
        for a, b in zip(inorder[step], again(step, images, labels, FILL), strict=True):
            assert torch.equal(a, b)
    assert not torch.equal(inorder[0][0], inorder[1][0])
    assert not torch.equal(inorder[0][0], other(0, images, labels, FILL)[0])


def test_no_draw_depends_on_the_images_or_on_torchs_generator() -> None:
    images, labels = batch(DIGITS)
    state = torch.get_rng_state()
    plain, _ = made("light")(3, images, labels, FILL)
    inverted, _ = made("light")(3, (256 - images.int()).byte(), labels, FILL)
    assert torch.equal(plain == 0, inverted == 0)  # the same pixels are what entered
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("regime", ["light", "strong"])
def test_equal_images_of_one_batch_come_out_differently(regime: Regime) -> None:
    images = noise(1).expand(40, -1, -1, -1)
    found, _ = made(regime)(0, images, torch.zeros(40, dtype=torch.int64), FILL)
    assert len({one.numpy().tobytes() for one in found}) >= 9


def test_a_digit_is_never_mirrored() -> None:
    image, labels = noise(1), torch.zeros(200, dtype=torch.int64)
    upright = {shifted(image[0], down, right, mirror=False).numpy().tobytes()
               for down in (-1, 0, 1) for right in (-1, 0, 1)}
    clothes = replace(DIGITS, keeps_labels=("shift", "flip"))
    seen = [{one.numpy().tobytes() for step in range(10)
             for one in made("light", meta)(step, image.expand(200, -1, -1, -1), labels, FILL)[0]}
            for meta in (DIGITS, clothes)]
    assert seen[0] == upright
    assert seen[1] > upright  # the test can fail


def test_strong_shifts_and_mirrors_as_light_does() -> None:
    meta = replace(DIGITS, keeps_labels=("shift", "flip"))
    images, labels = batch(meta)
    for step in range(5):
        light, strong = (made(regime, meta)(step, images, labels, FILL)[0] for regime in ("light", "strong"))
        assert torch.equal(light.float(), strong)


def test_smoothing_alone_leaves_the_label_its_share() -> None:
    meta = replace(DIGITS, keeps_labels=("shift",))
    images, labels = batch(meta)
    _, targets = made("strong", meta)(0, images, labels, FILL)
    assert torch.allclose(targets.gather(1, labels[:, None]), torch.tensor(1 - 0.1 + 0.1 / 10))


@pytest.mark.parametrize("word", WORDS)
def test_a_single_allowed_word_is_the_only_one_done(word: str) -> None:
    rgb = replace(DIGITS, keeps_labels=(word,), image=replace(DIGITS.image, size=28, channels=3))
    images, labels = batch(rgb, 64)
    augmentation = made("strong", rgb)
    assert augmentation.words == (word,)
    changed = [augmentation(step, images, labels, FILL)[0] for step in range(4)]
    assert any(not torch.equal(one, images.float()) for one in changed)


def test_none_is_no_augmentation_and_a_forbidden_regime_is_refused() -> None:
    nothing = replace(DIGITS, keeps_labels=())
    assert Augmentation.of("none", nothing, Streams(0, 0, 0, 0), CPU) is None
    with pytest.raises(ForbiddenRegime):
        made("light", nothing)


@pytest.mark.parametrize("regime", ["light", "strong"])
def test_shuffled_pixels_are_augmented_as_if_they_were_in_place(regime: Regime) -> None:
    images, labels = batch(DIGITS)
    hidden = Augmentation.of(regime, DIGITS, Streams(1, 2, 3, 0), CPU, shuffled=True)
    assert hidden is not None
    found, targets = hidden(2, torch.from_numpy(shuffled(images.numpy())), labels, FILL)
    expected, same = made(regime)(2, images, labels, FILL)
    assert torch.equal(found, torch.from_numpy(shuffled(expected.numpy())))
    assert torch.equal(targets, same)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize(("name", "regime"), ALLOWED)
def test_cuda_gives_nearly_the_images_of_the_cpu(name: str, regime: Regime) -> None:
    meta, there = DATASETS.get(name).meta, torch.device("cuda")
    images, labels = batch(meta)
    here = made(regime, meta)(3, images, labels, FILL)
    found = made(regime, meta, device=there)(3, images.to(there), labels.to(there), FILL.to(there))
    close = (here[0].float() - found[0].cpu().float()).abs() < 1.5  # a grey level is rounded here and there
    assert close.float().mean() > 0.99
    assert torch.allclose(here[1].float(), found[1].cpu().float(), atol=1e-5)
