"""Each operation against what it should do to one image, and each image of a batch with a draw of its own."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as kernels

from vitbench import regimes
from vitbench.training import operations
from vitbench.training.operations import SIGNED, TONES, TURNS, erased, mixed, moved, rand_augmented

ALL = tuple(regimes.WORDS)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def noise(count: int, *, channels: int = 1, side: int = 8) -> Tensor:
    """Images in which no two pixels are likely alike, and none is black."""
    generator = torch.Generator().manual_seed(3)
    return torch.randint(1, 256, (count, channels, side, side), dtype=torch.uint8, generator=generator)


def shifted(image_CSS: Tensor, down: int, right: int, *, mirror: bool) -> Tensor:
    """By slices, the long way."""
    side = image_CSS.shape[-1]
    wide = F.pad(image_CSS, (side,) * 4)
    out = wide[:, side - down:2 * side - down, side - right:2 * side - right]
    return out.flip(-1) if mirror else out


@pytest.mark.parametrize(("side", "most"), [(5, 1), (8, 1), (28, 3), (32, 4)])
@pytest.mark.parametrize(("shift", "flip"), [(True, True), (True, False), (False, True), (False, False)])
def test_moving_gives_every_allowed_place_and_no_other(side: int, most: int, shift: bool, flip: bool) -> None:
    image = noise(1, channels=2, side=side)
    found = moved(image.expand(3000, -1, -1, -1), rng(), shift=shift, flip=flip)
    assert (found.dtype, found.shape[1:]) == (image.dtype, image.shape[1:])
    by = range(-most, most + 1) if shift else [0]
    expected = {shifted(image[0], down, right, mirror=mirror).numpy().tobytes()
                for down in by for right in by for mirror in ([False, True] if flip else [False])}
    assert {one.numpy().tobytes() for one in found} == expected


def test_half_of_the_images_are_mirrored() -> None:
    image = noise(1)
    found = moved(image.expand(4000, -1, -1, -1), rng(), shift=False, flip=True)
    share = (found == image.flip(-1)).all(dim=(1, 2, 3)).float().mean()
    assert abs(float(share) - 0.5) < 0.04


def test_shifts_are_drawn_alike_whether_or_not_images_are_mirrored() -> None:
    striped = noise(50)[..., :1].expand(-1, -1, -1, 8)  # each row of one grey, so that its largest tells the shift
    both, only = (moved(striped, rng(), shift=True, flip=flip).amax(dim=3) for flip in (True, False))
    assert torch.equal(both, only)
    assert not torch.equal(both, striped.amax(dim=3))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("name", TONES)
def test_an_operation_on_grey_levels_keeps_form_and_depends_on_the_image_alone(name: str, sign: int,
                                                                              channels: int) -> None:
    images = noise(6, channels=channels, side=28)
    kept = images.clone()
    found = TONES[name](images, sign)
    assert (found.dtype, found.shape) == (torch.uint8, images.shape)
    assert torch.equal(images, kept)
    for i in range(len(images)):
        assert torch.equal(TONES[name](images[i:i + 1], sign)[0], found[i])
    changes = name not in ("colour", "equalize", "autocontrast") or (name == "colour" and channels == 3)
    assert not changes or not torch.equal(found, images)
    if name not in SIGNED:
        assert torch.equal(found, TONES[name](images, -sign))


def test_every_operation_has_a_word_and_every_word_of_rand_augment_its_operations() -> None:
    named = [name for names in regimes.RAND_AUGMENT.values() for name in names]
    assert sorted(named) == sorted([*TONES, *TURNS])
    assert regimes.RAND_AUGMENT.keys() <= regimes.WORDS.keys()


@pytest.mark.parametrize(("name", "sign", "angle", "shear"), [
    ("rotate", 1, regimes.DEGREES, [0.0, 0.0]), ("rotate", -1, -regimes.DEGREES, [0.0, 0.0]),
    ("shear_x", 1, 0.0, [math.degrees(math.atan(regimes.SHEAR)), 0.0]),
    ("shear_y", -1, 0.0, [0.0, -math.degrees(math.atan(regimes.SHEAR))]),
])
def test_turns_are_torchvisions_own(name: str, sign: int, angle: float, shear: list[float]) -> None:
    images = noise(3, side=28).float()
    matrix_N22 = np.tile(operations._matrices((name,))[0, (sign + 1) // 2], (3, 1, 1))
    expected = [kernels.affine_image(images, angle=by * angle, translate=[0, 0], scale=1.0,
                                     shear=[by * of for of in shear], interpolation=InterpolationMode.BILINEAR)
                for by in (-1, 1)]  # torchvision's sense of turning is its own
    found = operations._turned(images.clone(), matrix_N22[None])
    assert min(float((found - one).abs().max()) for one in expected) < 0.02


def test_two_turns_are_one_resampling_of_both() -> None:
    there, back = operations._matrices(("rotate",))[0]
    images = noise(2).float()
    both = operations._turned(images.clone(), np.stack([[there, there], [back, back]]))
    assert torch.allclose(both, images, atol=0.1)


@given(st.integers(0, 10_000))
def test_grouping_by_operation_changes_no_image(seed: int) -> None:
    """Each image alone, its operations one after the other as they were drawn, gives what the batch gave."""
    images, count = noise(12), 12
    found = rand_augmented(images, rng(seed), ALL)
    names = ["identity", *(name for word in ALL for name in regimes.RAND_AUGMENT.get(word, ()))]
    draw = rng(seed)
    drawn_LN = draw.integers(len(names), size=(2, count))
    sign_LN = draw.integers(2, size=(2, count)) * 2 - 1
    for i in range(count):
        image, places = images[i:i + 1], np.eye(2)
        for drawn, sign in zip(drawn_LN[:, i], sign_LN[:, i], strict=True):
            name = names[drawn]
            image = TONES[name](image, sign) if name in TONES else image
            places = places @ operations._matrices((name,))[0, (sign + 1) // 2]
        expected = operations._turned(image.float(), places[None, None])
        assert torch.allclose(found[i:i + 1], expected, atol=1e-3)


def test_an_operation_of_a_forbidden_word_is_never_done() -> None:
    images = noise(400)
    assert torch.equal(rand_augmented(images, rng(), ("shift", "mixup")), images.float())
    only = rand_augmented(images, rng(), ("invert",))
    solarized = TONES["solarize"](images, 1)
    twice = TONES["solarize"](solarized, 1)
    for i in range(len(images)):
        assert any(torch.equal(only[i], one[i].float()) for one in (images, solarized, twice))


def test_equal_images_of_one_batch_come_out_differently() -> None:
    same = noise(1, side=28).expand(64, -1, -1, -1)
    for found in (moved(same, rng(), shift=True, flip=True), rand_augmented(same, rng(), ALL),
                  erased(same.float(), rng(), torch.zeros(1, 1, 1, 1))):
        assert len({one.numpy().tobytes() for one in found}) > 12


def test_erasing_hides_a_rectangle_of_the_stated_area_in_a_quarter_of_the_images() -> None:
    images, fill = torch.ones(4000, 3, 20, 20), torch.tensor([5.0, 6.0, 7.0]).view(1, 3, 1, 1)
    found = erased(images, rng(), fill)
    hidden = (found == fill).all(dim=1)
    assert torch.equal(found, torch.where(hidden[:, None], fill, images))
    area = hidden.sum(dim=(1, 2)) / 400
    hit = area > 0
    assert abs(float(hit.float().mean()) - regimes.ERASED) < 0.03
    assert regimes.ERASED_AREA[0] * 0.5 < float(area[hit].min())
    assert float(area[hit].max()) < regimes.ERASED_AREA[1] * 1.2
    for one in hidden[hit][:50]:
        rows, columns = one.any(dim=1), one.any(dim=0)
        assert torch.equal(one, rows[:, None] & columns)
        assert all(int(line.int().diff().abs().sum()) <= 2 for line in (rows, columns))  # in one piece


@pytest.mark.parametrize("kinds", [["mixup"], ["cutmix"], ["mixup", "cutmix"]])
@given(seed=st.integers(0, 10_000))
def test_targets_are_mixed_as_the_images_are(kinds: list[str], seed: int) -> None:
    """Image i is white in channel i alone, so the mean of channel j in image i is the share of image j."""
    count = 9
    images = torch.eye(count)[:, :, None, None].expand(-1, -1, 12, 12)
    found, targets = mixed(images, torch.eye(count), rng(seed), kinds)
    assert torch.allclose(found.mean(dim=(2, 3)), targets, atol=1e-6)
    assert torch.allclose(targets.sum(dim=1), torch.ones(count))
    assert targets.min() >= 0
    if kinds == ["cutmix"]:
        assert set(found.unique().tolist()) <= {0.0, 1.0}
    if kinds == ["mixup"]:
        assert torch.allclose(found.amax(dim=(2, 3)), found.amin(dim=(2, 3)))


def test_half_of_the_images_are_mixed_each_in_its_own_proportion() -> None:
    images = torch.eye(2).repeat(1000, 1)[:, :, None, None].expand(-1, -1, 28, 28)
    _, targets = mixed(images, torch.eye(2).repeat(1000, 1), rng(), ["mixup"])
    own = targets.amax(dim=1)
    assert abs(float((own < 1).float().mean()) - regimes.MIXED) < 0.05
    assert len(set(own.tolist())) > 500


def test_without_a_kind_nothing_is_mixed() -> None:
    images, targets = noise(4).float(), torch.eye(4)
    assert mixed(images, targets, rng(), []) == (images, targets)
