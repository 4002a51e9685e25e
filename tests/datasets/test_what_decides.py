"""What decides the class of a made-up image, and that nothing else tells anything of it."""

from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from vitbench.datasets import Arrays, load
from vitbench.datasets._made_up import TEST, THING, THINGS, TRAIN, MadeUp
from vitbench.datasets.far_pairs import FAR_PAIRS
from vitbench.datasets.near_pairs import NEAR_PAIRS
from vitbench.datasets.shapes_where import SHAPES_WHERE, SIDE, places
from vitbench.datasets.textures import DIRECTIONS, TEXTURES

PAIRS = [FAR_PAIRS, NEAR_PAIRS]


def by_name(made: MadeUp) -> str:
    return made.name


@cache
def whole(name: str) -> Arrays:
    return load(name)


# Pairs: both things decide together, and nothing else tells anything

def found_things(images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kind, row and column of the two things that stand out most in each image, N x 2, by templates."""
    centred = THINGS - THINGS.mean(axis=(1, 2), keepdims=True)
    windows = np.lib.stride_tricks.sliding_window_view(images[:, 0].astype(np.float32), (THING, THING), axis=(1, 2))
    scores = np.stack([np.einsum("nyxij,ij->nyx", windows, one, optimize=True) for one in centred], axis=1)
    numbers, found = np.arange(len(images)), []
    for _ in range(2):
        kind, row, column = np.unravel_index(scores.reshape(len(images), -1).argmax(axis=1), scores.shape[1:])
        found.append((kind, row, column))
        for n, y, x in zip(numbers, row, column, strict=True):
            scores[n, :, max(0, y - THING + 1):y + THING, max(0, x - THING + 1):x + THING] = -np.inf
    kinds, rows, columns = (np.stack(both, axis=1) for both in zip(*found, strict=True))
    return kinds, rows, columns


@pytest.fixture(scope="module", params=PAIRS, ids=by_name)
def seen(request: pytest.FixtureRequest) -> tuple[MadeUp, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """A dataset, the labels of 3,000 of its images, and the things that stand in them."""
    made = request.param
    images = made.images(made.options(), TEST, 0, 3000)
    return made, made.labels(0, 3000), found_things(images)


def test_both_things_together_decide(seen: tuple[MadeUp, np.ndarray, tuple[np.ndarray, ...]]) -> None:
    _, labels, (kinds, _, _) = seen
    right = ((kinds[:, 0] == kinds[:, 1]) == labels).mean()
    assert 0.95 < right < 0.999  # some things are too faint to be told, so that no model is always right


def test_each_thing_alone_tells_nothing(seen: tuple[MadeUp, np.ndarray, tuple[np.ndarray, ...]]) -> None:
    """Whichever thing is looked at: the brighter, the fainter, the upper or the left one."""
    _, labels, (kinds, rows, columns) = seen
    numbers = np.arange(len(labels))
    for chosen in (0 * numbers, 0 * numbers + 1, rows.argmin(axis=1), columns.argmin(axis=1)):
        for kind in range(len(THINGS)):
            of_kind = labels[kinds[numbers, chosen] == kind]
            assert len(of_kind) > 800
            assert abs(of_kind.mean() - 0.5) < 4 * 0.5 / len(of_kind)**0.5


def test_things_stand_at_the_declared_distance_anywhere_on_the_canvas(
        seen: tuple[MadeUp, np.ndarray, tuple[np.ndarray, ...]]) -> None:
    made, _, (_, rows, columns) = seen
    distance = 20 if made is FAR_PAIRS else THING
    apart = np.maximum(abs(np.diff(rows)), abs(np.diff(columns)))
    assert (apart == distance).mean() > 0.9  # the others were not found where they are: too faint
    assert len({(*r, *c) for r, c in zip(rows.tolist(), columns.tolist(), strict=True)}) > 1500
    assert min(rows.min(), columns.min()) == 0
    assert max(rows.max(), columns.max()) == 28 - THING


def test_the_classes_do_not_differ_in_mean_or_deviation_at_any_pixel() -> None:
    for made in (*PAIRS, TEXTURES):
        arrays = whole(made.name)
        images, labels = arrays.train_images[:, 0].astype(np.float64), arrays.train_labels
        for moment in (images, (images - images.mean(axis=0))**2):
            means = np.stack([moment[labels == c].mean(axis=0) for c in np.unique(labels)])
            error = moment.std(axis=0) * (len(np.unique(labels)) / len(labels))**0.5
            assert (abs(means - means.mean(axis=0)) / error).max() < 6


def probe(arrays: Arrays) -> float:
    """Test accuracy of a linear read-out of all pixels, by least squares."""
    def columns(images: np.ndarray) -> np.ndarray:
        flat = images.reshape(len(images), -1).astype(np.float32) / 255
        return np.hstack([flat, np.ones((len(flat), 1), np.float32)])

    targets = np.eye(arrays.train_labels.max() + 1, dtype=np.float32)[arrays.train_labels]
    x = columns(arrays.train_images)
    weights = np.linalg.solve(x.T @ x + np.eye(x.shape[1], dtype=np.float32), x.T @ targets)
    return float(((columns(arrays.test_images) @ weights).argmax(axis=1) == arrays.test_labels).mean())


@pytest.mark.parametrize(("name", "low", "high"), [
    ("far_pairs", 0.48, 0.52), ("near_pairs", 0.48, 0.52), ("textures", 0.23, 0.27), ("shapes_where", 0.85, 1.0)])
def test_a_linear_read_out_of_pixels_is_at_chance_where_no_place_decides(name: str, low: float, high: float) -> None:
    assert low < probe(whole(name)) < high


def test_a_linear_read_out_of_counts_answers_two_thirds_of_pairs_at_best() -> None:
    """What sums over a small window, a shallow CNN with the mean over places, can learn of far pairs."""
    counts = [(a, b) for a in range(3) for b in range(a, 3)]
    features = np.array([np.bincount(both, minlength=3) for both in counts])
    shares = {1: [1 / 6 if a == b else 0 for a, b in counts], 0: [0 if a == b else 1 / 6 for a, b in counts]}
    best = 0.0
    for answers in product((0, 1), repeat=len(counts)):
        signs = np.where(answers, 1, -1)[:, None]
        # The three counts sum to 2, so a threshold is one of these read-outs.
        if linprog(np.zeros(3), A_ub=-signs * features, b_ub=-np.ones(len(counts)), bounds=(None, None)).success:
            best = max(best, sum(shares[answer][i] for i, answer in enumerate(answers)))
    assert best == pytest.approx(2 / 3)


# Textures

def likeness(images: np.ndarray, turn: Callable[[np.ndarray], np.ndarray] = lambda images: images) -> list[float]:
    """Correlation of neighbours along each direction."""
    pixels = turn(images[:, 0].astype(np.float64)) - images.mean()
    height = pixels.shape[1] - 1
    return [float((pixels[:, a:a + height, b:b + height] * pixels[:, c:c + height, d:d + height]).mean() / images.var())
            for (a, b), (c, d) in DIRECTIONS.values()]


def test_neighbours_are_alike_along_the_class_direction_and_no_other() -> None:
    images, labels = TEXTURES.images(TEXTURES.options(), TRAIN, 0, 4000), TEXTURES.labels(0, 4000)
    found = np.array([likeness(images[labels == c]) for c in range(4)])
    assert np.allclose(found, 0.14 * np.eye(4), atol=0.01)


def test_a_flip_turns_falling_into_rising_and_is_not_declared() -> None:
    images, labels = TEXTURES.images(TEXTURES.options(), TRAIN, 0, 4000), TEXTURES.labels(0, 4000)
    falling = likeness(images[labels == 2], turn=lambda images: images[:, :, ::-1])
    assert np.argmax(falling) == 3
    assert "flip" not in TEXTURES.keeps_labels


# Shapes

def test_the_class_is_the_quarter_in_which_the_shape_stands() -> None:
    images, labels = SHAPES_WHERE.images(SHAPES_WHERE.options(), TRAIN, 0, 2000), SHAPES_WHERE.labels(0, 2000)
    quarters = images[:, 0].reshape(-1, 2, 14, 2, 14).sum(axis=(2, 4), dtype=int).reshape(-1, 4)
    assert (quarters.argmax(axis=1) == labels).mean() > 0.95


@pytest.mark.parametrize("canvas", range(16, 129, 4))
def test_the_place_of_a_shape_within_its_patch_tells_nothing_of_its_quarter(canvas: int) -> None:
    free, half = places(canvas), canvas // 2
    assert 0 < free <= half - SIDE + 1
    for patch in (p for p in range(1, canvas // 4 + 1) if canvas % p == 0):
        first, second = (np.bincount((np.arange(free) + start) % patch, minlength=patch) for start in (0, half))
        assert np.array_equal(first, second), patch


def test_places_that_ignore_patches_would_tell() -> None:
    """The test above can fail: at 28 pixels seven free places begin at 0 or 14, and 14 is no multiple of 4."""
    first, second = (np.bincount((np.arange(7) + start) % 4, minlength=4) for start in (0, 14))
    assert not np.array_equal(first, second)
