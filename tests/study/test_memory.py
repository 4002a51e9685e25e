"""Studies that do not fit into memory are refused before they start."""

from dataclasses import replace

import pytest

from tests.report.factory import resolved, study
from vitbench.cost import Footprint
from vitbench.expansion import expand
from vitbench.grid import model_of
from vitbench.models import checked_footprint
from vitbench.spec import ImageSpec
from vitbench.study import memory
from vitbench.study.forecast import Expected
from vitbench.study.memory import TooLarge, least_bytes, refuse_too_large

OF = study(models=["convnet:xs", "mlp:s"], fractions=[0.1])
FACTS = resolved(OF)
RUNS = expand(OF, FACTS)
COSTS = {"convnet:xs": Footprint(params=100_000_000, macs=1, activations=1, training_bytes=10_000_000,
                                 evaluation_bytes=1_000_000),
         "mlp:s": Footprint(10, 1, 10, 20, 20)}


@pytest.fixture(autouse=True)
def _six_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_bytes", lambda: 6_000_000_000)
    monkeypatch.setattr(memory, "memory_limit_bytes", lambda: None)


def test_the_least_is_images_weights_gradients_averages_and_what_a_batch_holds() -> None:
    found = least_bytes(RUNS[0], COSTS["convnet:xs"], FACTS)  # adamw, batches of 64
    images = 145 + 360  # a tenth of digits, and all test images, of 8 x 8 bytes
    assert found == 350_000_000 + images * 64 + 4 * 4 * 100_000_000 + 64 * 10_000_000


def test_the_least_knows_small_shares_and_narrow_numbers() -> None:
    of = study(models=["convnet:xs"], images_per_class=[2], fractions=None, recipe={"precision": "bf16"})
    (run, *_) = expand(of, resolved(of))
    found = least_bytes(run, COSTS["convnet:xs"], resolved(of))
    assert found == 350_000_000 + 380 * 64 + 4 * 4 * 100_000_000 + 20 * 10_000_000 // 2  # batches of all twenty


def test_an_evaluation_may_hold_more_than_a_step() -> None:
    large = replace(COSTS["convnet:xs"], evaluation_bytes=20_000_000)
    found = least_bytes(RUNS[0], large, FACTS)
    assert found - least_bytes(RUNS[0], COSTS["convnet:xs"], FACTS) == 128 * 20_000_000 - 64 * 10_000_000


def test_what_fits_is_let_through() -> None:
    refuse_too_large(RUNS, FACTS, COSTS, {}, workers=2)


def test_what_does_not_fit_is_refused_with_numbers_and_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLarge, match=r"^3 runs at a time need 7\.1 GB of memory, and 6\.0 GB may be used; the "
                                       r"largest is convnet:xs with batches of 64: at least 2\.6 GB\. "
                                       r"--workers 2 would fit$"):
        refuse_too_large(RUNS, FACTS, COSTS, {}, workers=3)
    monkeypatch.setattr(memory, "memory_limit_bytes", lambda: 2_000_000_000)  # a container's
    with pytest.raises(TooLarge, match="not even one fits"):
        refuse_too_large(RUNS, FACTS, COSTS, {}, workers=1)


def test_what_was_measured_counts_more_than_the_estimate() -> None:
    measured = {run.key: Expected(1.0, 500_000_000) for run in RUNS}
    refuse_too_large(RUNS, FACTS, COSTS, measured, workers=8)
    measured = {run.key: Expected(1.0, 5_000_000_000) for run in RUNS}
    with pytest.raises(TooLarge, match=r"measured 5\.0 GB"):
        refuse_too_large(RUNS, FACTS, COSTS, measured, workers=2)


PIXELS = study(models=[{"name": "token_transformer", "size": "s", "tokens": "pixel", "normaliser": "relu"}],
               fractions=[1], seeds=1, recipe={"batch_size": 512})
(LARGE,) = expand(PIXELS, resolved(PIXELS))


def advice(counted: Footprint, allowed: int, measured: int | None = None) -> str:
    """What is proposed where pixels of digits in batches of 512 may use `allowed` bytes."""
    known = {} if measured is None else {LARGE.key: Expected(1.0, measured)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "memory_limit_bytes", lambda: allowed)
        with pytest.raises(TooLarge, match="not even one fits; ") as caught:
            refuse_too_large([LARGE], resolved(PIXELS), {LARGE.label: counted}, known, workers=1)
    return str(caught.value).rpartition("fits; ")[2]


def test_where_not_even_one_fits_the_nearest_patches_and_batch_are_named() -> None:
    counted = checked_footprint(*model_of(LARGE), ImageSpec(8, 1), 10)
    fixed = (1437 + 360) * 64 + 16 * counted.params

    def batch(room: float) -> int:
        return int((room - fixed) // counted.training_bytes)

    # What is proposed would fit four times; 16 tokens hold a fifth of what 64 do.
    assert advice(counted, 750_000_000) == \
        f"one would with tokens: patch, patch_size: 2 or batch_size: {batch(400e6 / 4)}"
    assert advice(counted, 550_000_000) == f"one would with batch_size: {batch(200e6 / 4)}"
    # However small the batch, 128 images are evaluated at once.
    assert advice(counted, 450_000_000) == "take a smaller model or batch_size"
    # What was measured tells how often.
    times = 700e6 / (fixed + 512 * counted.training_bytes)
    assert advice(counted, 750_000_000, 1_050_000_000) == \
        f"one would with tokens: patch, patch_size: 2 or batch_size: {batch(400e6 / times)}"
