"""Images that grow by an empty border: what is refused, what is interpolated, what accuracy is left."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.probes.trained_study import trained_study
from vitbench.datasets import load
from vitbench.probes import Look
from vitbench.probes._measure import Question
from vitbench.probes._target import Target, choose
from vitbench.probes.longer_sequences import bordered, refusal
from vitbench.study.folder import StudyFolder


def of(positions: str) -> dict[str, Any]:
    return {"name": "token_transformer", "size": "xs", "positions": positions, "label": positions}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    return trained_study(tmp_path_factory.mktemp("longer") / "results" / "tiny", keep=["weights"], models=[
        of("learned"), of("sinusoidal"), of("relative"), "convnet:xs", "linear"], budgets=[{"steps": 120}],
        recipe={"batch_size": 32, "learning_rate": 0.006})


@pytest.fixture(scope="module")
def rows(folder: StudyFolder) -> list[dict[str, Any]]:
    runs, _ = choose("longer_sequences", Target(folder), None)
    question = Question("longer_sequences", {"most": 2}, folder.store.folder.parent, folder, runs)
    return list(question.measured(lambda _line: None).rows)


def test_the_object_stays_as_it_is_in_the_centre_of_a_black_border() -> None:
    x = torch.randn(2, 3, 4, 4)
    black = torch.tensor([-1.0, -2.0, -3.0]).view(1, 3, 1, 1)
    larger = bordered(x, 2, black)
    assert larger.shape == (2, 3, 8, 8)
    assert torch.equal(larger[:, :, 2:6, 2:6], x)
    larger[:, :, 2:6, 2:6] = black
    assert torch.equal(larger, black.expand(2, 3, 8, 8))
    assert torch.equal(bordered(x, 0, black), x)


def test_the_trained_size_is_that_of_the_record_and_loses_nothing(folder: StudyFolder, rows: list) -> None:
    for run in folder.runs:
        own = [row for row in rows if row["label"] == run.label and row["added"] == 0]
        assert [row["drop"] for row in own] == ([] if run.label == "linear" else [0])
        for row in own:
            assert row["accuracy"] == pytest.approx(folder.store.read(run.spec.run_id).final.test_accuracy, abs=1e-6)


def test_positions_that_end_are_refused_in_words_and_then_interpolated(rows: list) -> None:
    for label in ("learned", "relative"):
        refused = next(row for row in rows if row["label"] == label and row["beyond"] == "refused")
        assert refused["remark"].startswith(f"positions: {label} end at the 4 x 4 tokens that they were trained on")
        assert refused["accuracy"] is refused["drop"] is None
    beyond = {row["label"]: row["beyond"] for row in rows if row["accuracy"] is not None}
    assert beyond == {"learned": "interpolated", "relative": "interpolated", "sinusoidal": "as it is",
                      "convnet:xs": "as it is"}


def test_a_model_of_one_size_only_is_left_out_with_its_reason(rows: list) -> None:
    (only,) = (row for row in rows if row["label"] == "linear")
    assert (only["beyond"], only["accuracy"]) == ("refused", None)
    assert "shapes cannot be multiplied" in only["remark"]


def test_a_border_of_k_tokens_is_on_every_side(rows: list) -> None:
    tokens = {(row["added"], row["tokens"]) for row in rows if row["label"] == "sinusoidal"}
    assert tokens == {(0, 16), (1, 36), (2, 64)}


def test_accuracy_is_that_of_grey_level_0_around_the_image(folder: StudyFolder, rows: list) -> None:
    """The border is put around the pixels of the dataset, before anything is normalised."""
    arrays, only = load("digits"), "model=sinusoidal,model=convnet:xs"
    runs, _ = choose("longer_sequences", Target(folder), only)
    for run in runs:
        trained, found = Look(None, 0, folder, runs).trained(run), []
        for added in range(3):
            border = (2 * added, 2 * added)  # tokens of two pixels
            wide = np.pad(arrays.test_images, ((0, 0), (0, 0), border, border))
            with torch.no_grad():
                logits = trained.module(trained.module.data.normalised(torch.from_numpy(wide)))
            found.append(float(np.mean(logits.argmax(1).numpy() == arrays.test_labels)))
        own = [row for row in rows if row["label"] == run.label]
        assert [row["accuracy"] for row in own] == pytest.approx(found, abs=1e-5)
        assert [row["drop"] for row in own] == pytest.approx([found[0] - each for each in found], abs=1e-5)
        assert len(set(found)) == 3


def test_a_refusal_is_the_first_line_of_what_the_model_says() -> None:
    def refuses(_: torch.Tensor) -> torch.Tensor:
        raise AssertionError("Input height (10) doesn't match model (8).\nmore")

    assert refusal(refuses, torch.zeros(1, 1, 2, 2)) == "Input height (10) doesn't match model (8)."
    assert refusal(lambda x: x.flatten(1), torch.zeros(1, 1, 2, 2)) is None
