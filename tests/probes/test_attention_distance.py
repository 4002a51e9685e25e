"""Distances of attention and of gradients, of models whose answer is known, and of trained runs."""

from math import dist
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.probes.by_hand import even, images, selfish, transformer
from tests.probes.trained_study import trained_study
from vitbench.measurement import Measurement
from vitbench.nn.receptive_field import receptive_field
from vitbench.probes import ProbeError
from vitbench.probes._measure import Question
from vitbench.probes._sight import Gradient
from vitbench.probes._spread import spreads
from vitbench.probes.attention_distance import of_gradient, of_heads
from vitbench.study.folder import StudyFolder


def measured(study: StudyFolder, **options: object) -> Measurement:
    return Question("attention_distance", options, study.store.folder.parent, study, study.runs).measured(print)


def test_a_head_has_its_distance_in_pixels_and_in_image_sides() -> None:
    first = next(of_heads(spreads(even(), images())))
    places = [(2 * row, 2 * column) for row in range(4) for column in range(4)]
    expected = np.mean([dist(a, b) for a in places for b in places])
    assert first["distance"] == pytest.approx(expected, abs=1e-6)
    assert first["distance_sides"] == pytest.approx(expected / 8, abs=1e-7)
    assert first["even"] == pytest.approx(expected)


def test_the_row_of_all_heads_has_their_mean_and_deviation_over_all_layers() -> None:
    *heads, last = of_heads(spreads(transformer(), images()))
    distances = [row["distance"] for row in heads]
    assert [row["kind"] for row in heads] == ["head"] * 4
    assert last["distance"] == pytest.approx(sum(distances) / 4)
    assert last["deviation"] == pytest.approx(np.sqrt(sum((d - sum(distances) / 4)**2 for d in distances) / 4) / 8)
    assert last["deviation"] > 0


def test_heads_that_all_look_alike_do_not_deviate_and_one_alone_has_no_deviation() -> None:
    for model in (even(), selfish()):
        assert list(of_heads(spreads(model, images())))[-1]["deviation"] == pytest.approx(0, abs=1e-7)
    assert list(of_heads(spreads(transformer(depth=1, num_heads=1), images())))[-1]["deviation"] is None


def test_heads_without_weights_are_counted_out() -> None:
    *heads, last = of_heads(spreads(even(normaliser="relu"), images()))
    assert [(row["distance"], row["empty"]) for row in heads] == [(None, 1)] * 4
    assert (last["distance"], last["deviation"]) == (None, None)


class Convolution(nn.Module):
    """One 3 x 3 convolution of known weights."""

    def __init__(self, kernel: list[list[float]]) -> None:
        super().__init__()
        self.features = nn.Conv2d(1, 1, 3, padding=1, bias=False)
        self.features.weight.data[0, 0] = torch.tensor(kernel)


def gradient_of(model: nn.Module) -> Gradient:
    found = receptive_field(model, images())
    total = float(found.gradient_HW.sum())
    return Gradient(found.gradient_HW.numpy() / (total or 1), found.rows, found.columns)


@pytest.mark.parametrize(("kernel", "expected"), [
    ([[0, 0, 0], [0, 2, 0], [0, 0, 0]], 0), ([[0, 0, 0], [0, 0, 5], [0, 0, 0]], 1),
    ([[-1, 0, 1], [0, 0, 0], [1, 0, -1]], 2**0.5), ([[1, 1, 1]] * 3, (4 + 4 * 2**0.5) / 9),
    ([[0, 0, 0], [3, 0, 0], [0, 0, -1]], (3 + 2**0.5) / 4)])
def test_of_one_convolution_the_distance_follows_from_its_kernel(kernel: list[list[float]], expected: float) -> None:
    (row,) = of_gradient(gradient_of(Convolution(kernel)))
    assert row["distance"] == pytest.approx(expected, abs=1e-6)
    assert row["field"] == 3
    assert row["even"] == pytest.approx(np.mean([dist((y, x), (4, 4)) for y in range(8) for x in range(8)]))


def test_a_network_that_lets_nothing_pass_has_no_distance() -> None:
    (row,) = of_gradient(gradient_of(Convolution([[0.0] * 3] * 3)))
    assert (row["distance"], row["distance_sides"]) == (None, None)


def test_runs_have_rows_before_and_after_training(kept: StudyFolder) -> None:
    found = measured(kept, images=20)
    assert [(row["label"], row["kind"], row["when"], row["step"]) for row in found.rows] == [
        ("token_transformer:xs", kind, when, step) for when, step in (("untrained", 0), ("trained", 12))
        for kind in [*["head"] * 4, "all heads"]] + [
        ("convnet:xs", "receptive field", when, step) for when, step in (("untrained", 0), ("trained", 12))]
    before, after = (row for row in found.rows if row["kind"] == "all heads")
    assert before["deviation_change"] == 0
    assert after["deviation_change"] == pytest.approx(after["deviation"] - before["deviation"], rel=1e-4)  # type: ignore
    assert found.rows[-1]["field"] == 11  # 3, 5, 7 of stride 2, 11
    assert set(found.weights.values()) == {"kept weights; stored logits of 32 test images agree"}


def test_through_training_the_ends_are_those_of_kept_weights(kept: StudyFolder) -> None:
    ends, through = measured(kept, images=20), measured(kept, images=20, through=True)
    steps = list(dict.fromkeys(row["step"] for row in through.rows))
    assert steps[0] == 0
    assert steps[-1] == 12
    assert len(steps) > 5
    assert [row for row in through.rows if row["when"] != "in training"] == list(ends.rows)
    middle = {row["step"]: row["distance"] for row in through.rows if row["kind"] == "head" and row["head"] == 0}
    assert len(set(middle.values())) == len(steps)  # it moves at every point
    assert all("trained again" in how for how in through.weights.values())


def test_models_that_cannot_be_looked_into_are_left_out_by_name_or_refused(tmp_path: Path) -> None:
    study = trained_study(tmp_path / "results" / "mixed", models=["token_transformer:xs", "linear"], keep=["weights"])
    found = measured(study, images=4)
    assert {row["label"] for row in found.rows} == {"token_transformer:xs"}
    assert "Left out: linear; a model should have layers of vitbench.nn.attention.SelfAttention" in found.summary
    with pytest.raises(ProbeError, match="linear: cannot be looked into; a model should have layers of"):
        Question("attention_distance", {}, tmp_path, study, study.runs[1:]).measured(print)
