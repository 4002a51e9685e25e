"""Studies that do not fit into memory are refused before they start."""

import pytest

from tests.report.factory import resolved, study
from vitbench.cost import ModelCost
from vitbench.expansion import expand
from vitbench.study import memory
from vitbench.study.forecast import Expected
from vitbench.study.memory import TooLarge, least_bytes, refuse_too_large

OF = study(models=["convnet:xs", "mlp:s"], fractions=[0.1])
FACTS = resolved(OF)
RUNS = expand(OF, FACTS)
COSTS = {"convnet:xs": ModelCost(params=100_000_000, macs=1, activations=5_000_000), "mlp:s": ModelCost(10, 1, 10)}


@pytest.fixture(autouse=True)
def _six_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_bytes", lambda: 6_000_000_000)
    monkeypatch.setattr(memory, "memory_limit_bytes", lambda: None)


def test_the_least_is_images_weights_gradients_averages_and_half_the_activations() -> None:
    found = least_bytes(RUNS[0], COSTS["convnet:xs"], FACTS)  # adamw, batches of 64
    images = 145 + 360  # a tenth of digits, and all test images, of 8 x 8 bytes
    assert found == 350_000_000 + images * 64 + 4 * 4 * 100_000_000 + 4 * 5_000_000 * 64 // 2


def test_the_least_knows_small_shares_and_narrow_numbers() -> None:
    of = study(models=["convnet:xs"], images_per_class=[2], fractions=None, recipe={"precision": "bf16"})
    (run, *_) = expand(of, resolved(of))
    found = least_bytes(run, COSTS["convnet:xs"], resolved(of))
    assert found == 350_000_000 + 380 * 64 + 4 * 4 * 100_000_000 + 2 * 5_000_000 * 20 // 2  # batches of all twenty


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
