"""Blindness to order: nothing changes without positions, something does with each kind of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vitbench import measurement
from vitbench.models import build
from vitbench.probes._measure import Question
from vitbench.probes._target import Target, choose
from vitbench.probes.order_blindness import POSITIONS, changes, permuted
from vitbench.spec import ImageSpec
from vitbench.study.folder import StudyFolder

FEW = {"images": 8, "permutations": 2, "draws": 1}
LABELS = np.arange(6) % 5


def images() -> torch.Tensor:
    return torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def orders(places: int) -> list[np.ndarray]:
    return [np.random.default_rng(seed).permutation(places) for seed in range(3)]


def changes_of(**options: Any) -> dict[str, float | None]:
    torch.manual_seed(1)
    model = build("token_transformer", "s", options, ImageSpec(8, 1), 5).double().eval()
    side = 1 if options.get("tokens") == "pixel" else 2
    return changes(model, images().double(), side, orders(64 // side**2), LABELS)


def test_patches_move_as_wholes_and_none_is_lost() -> None:
    image = np.arange(2 * 4 * 4).reshape(1, 2, 4, 4)
    moved = permuted(torch.from_numpy(image).float(), 2, np.array([3, 0, 1, 2])).numpy()
    for place, source in enumerate([3, 0, 1, 2]):
        (y, x), (v, u) = divmod(place, 2), divmod(source, 2)
        assert (moved[0, :, 2*y:2*y+2, 2*x:2*x+2] == image[0, :, 2*v:2*v+2, 2*u:2*u+2]).all()


@pytest.mark.parametrize("tokens", ["patch", "pixel"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "attention"])
def test_without_positions_the_order_of_tokens_changes_nothing(tokens: str, pooling: str) -> None:
    found = changes_of(tokens=tokens, pooling=pooling, positions="none")
    assert found["largest_change"] < 1e-10
    assert found["changed_predictions"] == 0
    assert found["accuracy"] == found["permuted_accuracy"]


@pytest.mark.parametrize("options", [*({"positions": kind} for kind in POSITIONS if kind != "none"),
                                     {"positions": "none", "span": "causal"},
                                     {"positions": "none", "span": "window", "window": 3},
                                     {"positions": "none", "tokens": "conv_stem"}], ids=str)
def test_with_positions_or_a_span_that_depends_on_the_place_it_changes_something(options: dict[str, Any]) -> None:
    assert changes_of(**options)["mean_change"] > 1e-3


def test_changes_are_those_of_their_definition() -> None:
    """A model that reads two pixels, one in each of two patches that are exchanged."""
    def reads(x_BCHW: torch.Tensor) -> torch.Tensor:
        return torch.stack([x_BCHW[:, 0, 0, 0], x_BCHW[:, 0, 0, 2]], dim=1)

    x = images()[:, :, :4, :4]
    a, b = x[:, 0, 0, 0].numpy(), x[:, 0, 0, 2].numpy()
    labels = np.array([0, 1, 0, 1, 0, 1])
    found = changes(reads, x, 2, [np.array([1, 0, 2, 3])], labels)
    spread = np.sqrt((a.var() + b.var()) / 2)
    assert found["mean_change"] == pytest.approx(np.abs(a - b).mean() / spread, rel=1e-5)
    assert found["largest_change"] == pytest.approx(np.abs(a - b).max() / spread, rel=1e-5)
    assert found["changed_predictions"] == 1
    assert found["accuracy"] == pytest.approx(np.mean((b > a) == labels))
    assert found["permuted_accuracy"] == pytest.approx(1 - np.mean((b > a) == labels))


def test_a_model_that_answers_alike_to_every_image_has_no_spread() -> None:
    found = changes(lambda x_BCHW: torch.zeros(len(x_BCHW), 5), images(), 2, orders(16), LABELS)
    assert found["mean_change"] is None
    assert found["changed_predictions"] == 0


def test_untrained_models_of_every_kind_are_measured(tmp_path: Path) -> None:
    found = Question("order_blindness", FEW, tmp_path).measured(lambda _line: None)
    change = {(row["tokens"], row["positions"], row["span"]): row["largest_change"] for row in found.rows}
    assert len(change) == 2 * len(POSITIONS) + 3
    blind = {kind for kind, value in change.items() if value < 1e-5}
    assert blind == {("patch", "none", "global"), ("pixel", "none", "global")}


def test_trained_runs_of_any_family_are_measured_on_the_images_of_their_records(
        kept: StudyFolder) -> None:
    runs, _ = choose("order_blindness", Target(kept), None)
    question = Question("order_blindness", {**FEW, "images": 360}, kept.store.folder.parent, kept, runs)
    found: measurement.Measurement = question.measured(lambda _line: None)
    trained = {row["label"]: row for row in found.rows if row["state"] == "trained"}
    assert trained.keys() == {"token_transformer:xs", "convnet:xs"}
    for run in runs:
        row = trained[run.label]
        accuracy = kept.store.read(run.spec.run_id).final.test_accuracy
        assert row["accuracy"] == pytest.approx(accuracy, abs=1e-6)
        assert row["side"] == 2
        assert row["mean_change"] > 1e-3
