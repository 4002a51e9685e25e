"""Maps of attention and of gradients, of models whose weights are known, and of trained runs."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from tests.probes.by_hand import even, images, selfish, transformer
from vitbench.measurement import Measurement
from vitbench.nn.looking import attention_layers, looks
from vitbench.probes import ProbeError
from vitbench.probes._maps import gradient, half_area, maps, pooled, rollout
from vitbench.probes._measure import Question
from vitbench.study.folder import StudyFolder


def drawn(layers: int, tokens: int = 3) -> list[np.ndarray]:
    weights = np.random.default_rng(0).random((layers, 2, 2, tokens, tokens))
    return list(weights / weights.sum(axis=-1, keepdims=True))


def test_rollout_multiplies_layers_the_last_first_each_half_passed_on() -> None:
    first, last = drawn(2)
    found = rollout([first, last])
    for image in range(2):
        a, b = (sum(layer[image]) / 2 for layer in (first, last))  # of two heads
        expected = (0.5 * b + 0.5 * np.eye(3)) @ (0.5 * a + 0.5 * np.eye(3))
        assert found[image] == pytest.approx(expected)
    assert rollout([last, first]) != pytest.approx(found)


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_rollout_of_even_layers_keeps_a_share_that_halves_with_each(layers: int) -> None:
    even_BHMM = np.full((1, 2, 4, 4), 0.25)
    expected = np.eye(4) / 2**layers + (1 - 0.5**layers) / 4
    assert rollout([even_BHMM] * layers)[0] == pytest.approx(expected)


def test_rollout_of_layers_that_see_themselves_or_nothing_changes_nothing() -> None:
    itself, nothing = np.eye(4)[None, None], np.zeros((1, 1, 4, 4))
    assert rollout([itself, nothing, itself])[0] == pytest.approx(np.eye(4))


def test_a_rollout_has_rows_that_sum_to_1_where_a_head_gives_no_weight() -> None:
    some = drawn(1)[0]
    some[:, 0] = 0
    assert rollout([some]).sum(axis=2) == pytest.approx(np.ones((2, 3)))


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_pooling_without_weights_takes_all_tokens_alike(pooling: str) -> None:
    assert pooled(transformer(pooling=pooling), images(2), 16) == pytest.approx(np.full((2, 16), 1 / 16))


def test_a_class_token_takes_itself_alone_and_attention_its_weights() -> None:
    assert pooled(transformer(pooling="cls"), images(2), 17).tolist() == [[0] * 16 + [1]] * 2
    model = transformer(pooling="attention")
    inputs: list[torch.Tensor] = []
    model.pooling.register_forward_pre_hook(lambda _module, given: inputs.append(given[0]))
    found = pooled(model, images(2), 16)
    score = (inputs[0] @ model.pooling.score.weight[0]).detach().double().numpy()
    assert found == pytest.approx(np.exp(score) / np.exp(score).sum(axis=1, keepdims=True))
    assert found.std() > 1e-4


def test_of_mean_pooling_a_head_shows_how_much_each_token_is_looked_at() -> None:
    model = transformer()
    found = [each for each in maps(model, images(2), heads=True) if each.kind == "head"]
    weights = looks(model, images(2))
    assert [(each.layer, each.head) for each in found] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for each in found:
        column_mean = weights[each.layer][:, each.head].mean(dim=1)  # type: ignore[index]
        assert each.of_BRC.reshape(2, 16) == pytest.approx(column_mean.numpy(), abs=1e-6)


def test_of_a_class_token_a_head_shows_its_row() -> None:
    model = transformer(pooling="cls")
    found = maps(model, images(2), heads=True)
    row = looks(model, images(2))[1][:, 0, -1, :16]
    assert found[3].of_BRC.reshape(2, 16) == pytest.approx(row.numpy(), abs=1e-6)
    assert (found[3].layer, found[3].head) == (1, 0)


def test_maps_of_even_and_of_selfish_attention_are_even() -> None:
    for model in (even(), selfish()):
        for each in maps(model, images(2), heads=True):
            assert each.of_BRC == pytest.approx(np.full((2, 4, 4), 1 / 16), abs=1e-7)


def test_maps_are_the_same_where_layers_run_fused() -> None:
    model = transformer()
    fused = maps(model, images(2), heads=True)
    for layer in attention_layers(model).values():
        layer.written_out = True
    for a, b in zip(fused, maps(model, images(2), heads=True), strict=True):
        assert a.of_BRC == pytest.approx(b.of_BRC, abs=1e-6)


def test_heads_can_be_left_out() -> None:
    assert [each.kind for each in maps(transformer(), images(2), heads=False)] == ["rollout"]


class LinearClassifier(nn.Module):
    """Logits are known linear maps of the pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.weight_2CHW = nn.Parameter(torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)))

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        """B x 2."""
        return (x_BCHW[:, None] * self.weight_2CHW).sum(dim=(2, 3, 4))


def test_the_gradient_is_that_of_the_largest_logit_summed_over_channels() -> None:
    model = LinearClassifier()
    weight = model.weight_2CHW.detach().numpy()
    found = gradient(model, model.weight_2CHW.detach())  # the image of a class is its own map
    for winner in (0, 1):
        assert found[winner] == pytest.approx(np.abs(weight[winner]).sum(axis=0))
    (shown,) = maps(model, model.weight_2CHW.detach(), heads=True)
    assert shown.kind == "gradient"
    assert model.weight_2CHW.grad is None


@pytest.mark.parametrize(("places", "area"), [([1, 1, 1, 1], 0.5), ([0, 0, 4, 0], 0.25), ([3, 1, 1, 1], 0.25),
                                              ([3, 2, 1, 1], 0.5), ([1, 1, 1, 0], 0.5)])
def test_half_area_is_the_least_share_that_holds_half(places: list[float], area: float) -> None:
    assert half_area(np.array(places, dtype=np.float64).reshape(2, 2)) == area


def measured(study: StudyFolder, **options: object) -> Measurement:
    return Question("attention_maps", options, study.store.folder.parent, study, study.runs).measured(print)


def test_runs_have_a_row_a_map_and_image_and_the_figure_every_cell(kept: StudyFolder) -> None:
    found = measured(kept, classes=2)
    kinds = [(row["label"], row["map"], row["layer"], row["head"]) for row in found.rows[::2]]
    assert kinds == [("token_transformer:xs", "rollout", None, None),
                     *[("token_transformer:xs", "head", layer, head) for layer in (0, 1) for head in (0, 1)],
                     ("convnet:xs", "gradient", None, None)]
    cells = found.figure["datasets"]["cells"]
    assert len(cells) == 2 * (64 + 5 * 16 + 64)  # the image, five maps of tokens, one of pixels
    assert {(row["truth"], row["image"]) for row in found.rows} == {(0, 12), (1, 14)}
    assert all(0 < row["half_area"] <= 0.5 for row in found.rows)  # type: ignore[operator]
    for title in {cell["map"] for cell in cells}:
        assert max(cell["value"] for cell in cells if cell["map"] == title) == 1


def test_named_images_are_shown_once_in_their_order(kept: StudyFolder) -> None:
    found = measured(kept, images=[5, 3, 5], heads=False)
    assert list(dict.fromkeys(row["image"] for row in found.rows)) == [5, 3]
    assert len(json.dumps(found.figure)) < 100_000


def test_an_image_that_is_not_there_is_named(kept: StudyFolder) -> None:
    with pytest.raises(ProbeError, match="images: the test part has images 0 to 359; found 360"):
        measured(kept, images=[1, 360])


def test_too_many_cells_are_refused_before_they_are_drawn(kept: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitbench.probes.attention_maps.MOST_CELLS", 100)
    with pytest.raises(ProbeError, match="maps of 4 images by 2 models have more than 100 cells; take fewer images"):
        measured(kept)
