"""Heads that look alike or not, and what a model loses without one of them."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.probes.trained_study import trained_study
from vitbench.models import build
from vitbench.nn.looking import attention_layers, looks
from vitbench.probes import Look, ProbeError
from vitbench.probes._measure import Question
from vitbench.probes._target import Target, choose
from vitbench.probes.head_diversity import alike, correlation, similarity, to_others
from vitbench.spec import ImageSpec
from vitbench.study.folder import StudyFolder


def drawn(seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, 2, 5, 5, generator=generator, dtype=torch.float64).softmax(-1)


def by_hand(weights: np.ndarray, *, centred: bool) -> np.ndarray:
    B, H, M, _ = weights.shape
    out = np.zeros((H, H))
    for g in range(H):
        for h in range(H):
            for b in range(B):
                for m in range(M):
                    x, y = weights[b, g, m], weights[b, h, m]
                    x, y = (x - x.mean(), y - y.mean()) if centred else (x, y)
                    out[g, h] += x @ y / np.sqrt((x @ x) * (y @ y)) / (B * M)
    return out


def test_likeness_is_the_mean_cosine_of_rows() -> None:
    weights = drawn()
    assert similarity(weights).numpy() == pytest.approx(by_hand(weights.numpy(), centred=False))
    assert correlation(weights).numpy() == pytest.approx(by_hand(weights.numpy(), centred=True))


def test_heads_that_do_the_same_are_alike_and_heads_that_share_no_token_are_not() -> None:
    eye = torch.eye(4, dtype=torch.float64)
    assert similarity(torch.stack([eye, eye])[None])[0, 1] == pytest.approx(1)
    assert similarity(torch.stack([eye, eye.roll(1, dims=1)])[None])[0, 1] == 0


def test_a_little_attention_to_everything_makes_heads_similar_and_not_correlated() -> None:
    """The one looks at everything alike, the other at itself a little more."""
    both = torch.stack([torch.full((8, 8), 1 / 8), 0.9 / 8 + 0.1 * torch.eye(8)])[None].double()
    assert similarity(both)[0, 1] > 0.95
    assert correlation(both)[0, 1] == 0


def test_a_row_of_zeros_is_like_no_other() -> None:
    weights = drawn()
    weights[:, 1] = 0  # as ReLU can leave it
    assert similarity(weights)[0, 1] == 0


def test_a_head_is_held_against_the_others_and_alone_against_none() -> None:
    like = np.array([[1, 0.2, 0.4], [0.2, 1, 0.6], [0.4, 0.6, 1]])
    assert to_others(like) == pytest.approx([0.3, 0.4, 0.5])
    assert to_others(np.ones((1, 1))) == [None]


def test_images_in_parts_give_what_all_give_at_once() -> None:
    torch.manual_seed(1)
    model = build("token_transformer", "s", {}, ImageSpec(8, 1), 5).eval()
    images = torch.randn(19, 1, 8, 8)  # two parts and a half
    found, weights = alike(model, images), looks(model, images)
    assert len(found) == len(weights) == 2
    for (like_HH, correlated_HH), weights_BHMM in zip(found, weights, strict=True):
        assert like_HH == pytest.approx(similarity(weights_BHMM.double()).numpy(), abs=1e-6)
        assert correlated_HH == pytest.approx(correlation(weights_BHMM.double()).numpy(), abs=1e-6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    size = {"name": "token_transformer", "size": "xs"}
    return trained_study(tmp_path_factory.mktemp("heads") / "results" / "tiny", keep=["weights"], models=[
        {**size, "label": "two"}, {**size, "num_heads": 1, "label": "one"}, "convnet:xs"])


def measured(folder: StudyFolder, only: str | None = None) -> list[dict[str, Any]]:
    runs, _ = choose("head_diversity", Target(folder), only)
    question = Question("head_diversity", {"images": 16}, folder.store.folder.parent, folder, runs)
    return list(question.measured(lambda _line: None).rows)


def test_every_head_of_every_layer_is_removed_once(folder: StudyFolder) -> None:
    rows = measured(folder)
    assert [(row["label"], row["layer"], row["head"]) for row in rows] == [
        *(("two", layer, head) for layer in (0, 1) for head in (0, 1)), ("one", 0, 0), ("one", 1, 0)]
    similar = {row["label"]: row["similarity"] for row in rows}
    assert 0 < similar["two"] <= 1
    assert similar["one"] is None
    accuracy = {run.label: folder.store.read(run.spec.run_id).final.test_accuracy for run in folder.runs}
    for row in rows:
        assert row["accuracy"] == pytest.approx(accuracy[row["label"]], abs=1e-6)
        assert row["lost"] == pytest.approx(row["accuracy"] - row["accuracy_without"], abs=1e-5)


def test_without_a_head_accuracy_is_that_of_a_model_whose_merge_ignores_it(folder: StudyFolder) -> None:
    rows = {(row["layer"], row["head"]): row for row in measured(folder, "model=two")}
    runs, _ = choose("head_diversity", Target(folder), "model=two")
    look = Look(None, 0, folder, runs)
    found = set()
    for layer in (0, 1):
        for head in (0, 1):
            trained = look.trained(runs[0])
            images, labels = trained.images("test", 1000)
            own = list(attention_layers(trained.module.model).values())[layer]
            own.merge.weight.data[:, 14 * head:14 * (head + 1)] = 0  # 28 numbers, two heads
            with torch.no_grad():
                accuracy = float(np.mean(trained.module(images).argmax(1).numpy() == labels))
            assert rows[layer, head]["accuracy_without"] == pytest.approx(accuracy, abs=1e-6)
            found.add(accuracy)
    assert len(found) > 1  # removing makes a difference


def test_a_study_without_our_attention_is_refused(folder: StudyFolder) -> None:
    with pytest.raises(ProbeError, match=r"none of these runs has a layer of vitbench\.nn\.attention\.SelfAttention"):
        measured(folder, "model=convnet:xs")
