"""Scores and what softmax makes of them, against variances and weights whose answer is known."""

from math import log
from pathlib import Path

import numpy as np
import pytest
import torch

from vitbench.measurement import Measurement
from vitbench.probes._measure import Question
from vitbench.probes.score_variance import of_weights
from vitbench.study.folder import StudyFolder


@pytest.fixture(scope="module")
def mechanism(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    results: Path = tmp_path_factory.mktemp("results")
    return Question("score_variance", {"sequences": 32}, results).measured(print)


def test_unit_queries_and_keys_have_variance_d_k_and_scaled_ones_1(mechanism: Measurement) -> None:
    found = [row for row in mechanism.rows if row["kind"] == "unit queries and keys"]
    assert [row["d_k"] for row in found if row["score"] == "dot"] == [4, 8, 16, 32, 64, 128, 256]
    for row in found:
        assert row["theory"] == (row["d_k"] if row["score"] == "dot" else 1)
        assert row["variance"] == pytest.approx(row["theory"], rel=0.05)


def test_projections_of_a_linear_layer_have_the_variance_of_their_start(mechanism: Measurement) -> None:
    """Entries uniform in +-1/sqrt(D): a query has variance 1/3 and 1/(3 D) of its bias. Xavier's: 1/2, no bias."""
    of = {(row["kind"], row["score"], row["d_k"]): row["variance"] for row in mechanism.rows}
    for width in (64, 256):
        torchs = width * (1 / 3 + 1 / (3 * width))**2
        assert of["Linear as torch starts it", "dot", width] == pytest.approx(torchs, rel=0.1)
        assert of["Linear by Xavier", "dot", width] == pytest.approx(width / 4, rel=0.1)
    assert 6 < of["Linear as torch starts it", "dot", 64] < 8


def test_scaling_keeps_softmax_soft_whatever_d_k_is(mechanism: Measurement) -> None:
    found = {score: [row["entropy"] for row in mechanism.rows
                     if row["kind"] == "unit queries and keys" and row["score"] == score]
             for score in ("dot", "scaled_dot")}
    assert max(found["scaled_dot"]) - min(found["scaled_dot"]) < 0.02
    assert found["dot"] == sorted(found["dot"], reverse=True)
    assert found["dot"][-1] < 0.1


@pytest.mark.parametrize("weights", [[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0.5, 0.5, 0, 0], [1, 0, 0, 0]])
def test_entropy_largest_weight_and_gradient_are_those_of_their_definitions(weights: list[float]) -> None:
    p = np.array(weights)
    entropy = -sum(q * log(q) for q in p if q) / log(4)
    jacobian = np.diag(p) - np.outer(p, p)
    found = of_weights(torch.tensor([weights], dtype=torch.float64))
    assert found["entropy"] == pytest.approx(entropy, abs=1e-12)
    assert found["largest_weight"] == max(weights)
    assert found["gradient"] == pytest.approx(np.sqrt((jacobian**2).sum()), abs=1e-12)


def test_the_gradient_is_what_softmax_lets_through() -> None:
    """The root mean square of a gradient's size, for gradients of independent unit entries at the weights."""
    generator = torch.Generator().manual_seed(0)
    score_N = torch.randn(8, dtype=torch.float64, generator=generator, requires_grad=True)
    weight_N = score_N.softmax(0)
    squares = []
    for _ in range(4000):
        (passed,) = torch.autograd.grad(weight_N, score_N, torch.randn(8, dtype=torch.float64, generator=generator),
                                        retain_graph=True)
        squares.append(float(passed.square().sum()))
    assert of_weights(weight_N.detach()[None])["gradient"] == pytest.approx(np.sqrt(np.mean(squares)), rel=0.03)


def test_layers_of_runs_stand_beside_before_and_after_training(kept: StudyFolder) -> None:
    attention = tuple(run for run in kept.runs if run.label == "token_transformer:xs")
    found = Question("score_variance", {"sequences": 2}, kept.store.folder.parent, kept, attention).measured(print)
    rows = [row for row in found.rows if row["run"] is not None]
    assert [(row["kind"], row["layer"]) for row in rows] == [
        (kind, layer) for kind in ("model, untrained", "model, trained") for layer in (0, 1)]
    assert {(row["d_k"], row["score"], row["tokens"]) for row in rows} == {(14, "scaled_dot", 16)}
    assert rows[0]["variance"] != rows[2]["variance"]
    # Xavier's projections of normalised tokens: 1/4 when scaled, within a factor that depends on the images.
    assert all(0.02 < row["variance"] < 1.5 for row in rows)
