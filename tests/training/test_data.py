import numpy as np
import torch

from vitbench import datasets, subset
from vitbench.spec import Budget, Recipe, RunSpec
from vitbench.streams import Streams
from vitbench.training.data import Resident, Segments, statistics

CPU = torch.device("cpu")


def _resident(fraction: str = "0.1", seed: int = 0, batch_size: int = 32) -> tuple[Resident, subset.Subset]:
    spec = RunSpec(dataset="digits@1", model="linear@1", fraction=fraction, seed=seed,
                   budget=Budget(unit="steps", amount=1))
    arrays, streams = datasets.load("digits"), Streams.of(spec)
    wanted = subset.counts(datasets.DATASETS.get("digits").meta.train_counts, fraction=fraction)
    chosen = subset.draw(arrays.train_labels, wanted, streams.subset_rng())
    return Resident(arrays, chosen, streams, Recipe(batch_size=batch_size), CPU), chosen


def test_every_pass_shows_each_training_image_once_across_batch_borders() -> None:
    data, chosen = _resident()
    images = len(chosen.train)  # 120: not a multiple of 32
    labels = torch.cat([data.batch(step)[1] for step in range(3 * images // 32 + 1)])
    for epoch in range(3):
        seen = labels[epoch * images:(epoch + 1) * images]
        assert torch.equal(seen.bincount(minlength=10), torch.from_numpy(data.train.labels_N).bincount(minlength=10))


def test_a_batch_depends_on_its_step_only() -> None:
    data, _ = _resident()
    again, _ = _resident()
    for step in (17, 3, 250, 0, 3):
        for a, b in zip(data.batch(step), again.batch(step), strict=True):
            assert torch.equal(a, b)


def test_batches_are_full_even_where_there_are_fewer_images() -> None:
    data, chosen = _resident(fraction="0.01", batch_size=32)
    assert data.batch_size == len(chosen.train) == 10
    assert len(data.batch(4)[1]) == 10


def test_normalisation_uses_the_training_part_alone() -> None:
    arrays = datasets.load("digits")
    data, chosen = _resident()
    pixels = arrays.train_images[chosen.train].astype(np.float64)
    normalised = data.normalised(data.train.images).double()
    assert abs(float(normalised.mean())) < 1e-4
    assert abs(float(normalised.std(unbiased=False)) - 1) < 1e-4
    mean, inverse = statistics(arrays.train_images[chosen.train])
    np.testing.assert_allclose(mean.item(), pixels.mean(), rtol=1e-6)
    np.testing.assert_allclose(1 / inverse.item(), pixels.std(), rtol=1e-6)


def test_a_constant_channel_is_not_blown_up() -> None:
    images = np.full((4, 2, 3, 3), 7, dtype=np.uint8)
    images[:, 1] = np.arange(9).reshape(3, 3)
    mean, inverse = statistics(images)
    assert mean.flatten().tolist() == [7, 4]
    assert inverse.flatten().tolist()[0] == 1.0  # one grey level of 255 at least


def test_segments_cover_every_step_once_between_curve_points() -> None:
    segments = Segments([1, 5, 40])
    assert [list(segments) for _ in range(3)] == [[(0, 1)], [(1, 5)], [(5, 21), (21, 37), (37, 40)]]
