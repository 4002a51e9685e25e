"""Shares of attention within a radius, of models whose answer is known, and of trained runs."""

from itertools import product

import numpy as np
import pytest

from tests.probes.by_hand import even, images, selfish, transformer
from vitbench.options import BadOption
from vitbench.probes._measure import Question
from vitbench.probes._sight import Gradient
from vitbench.probes._spread import spreads
from vitbench.probes.locality import Options, of_gradient, of_layers, summary
from vitbench.study.folder import StudyFolder


def test_even_attention_has_the_even_share_at_every_radius() -> None:
    found = list(of_layers(spreads(even(), images()), [0, 1, 2, 3]))
    assert [(row["layer"], row["radius"]) for row in found] == list(product([0, 1], [0, 1, 2, 3]))
    for row in found:
        expected = np.mean([max(abs(a - c), abs(b - d)) <= row["radius"] for a, b, c, d in product(range(4), repeat=4)])
        for column in ("share_within", "least_head", "most_head", "even"):
            assert row[column] == pytest.approx(expected, abs=1e-6)
    assert [row["radius_pixels"] for row in found[:4]] == [1, 3, 5, 7]


def test_attention_to_oneself_is_wholly_local() -> None:
    assert [row["share_within"] for row in of_layers(spreads(selfish(), images()), [0])] == pytest.approx([1, 1])


def test_a_window_is_wholly_local_and_so_is_even_attention_in_it() -> None:
    for row in of_layers(spreads(transformer(span="window", window=3), images()), [1]):
        assert (row["share_within"], row["even"]) == (pytest.approx(1), pytest.approx(1))


def test_the_layer_lies_between_its_heads() -> None:
    for row in of_layers(spreads(transformer(), images()), [0, 1]):
        assert row["least_head"] < row["share_within"] < row["most_head"]
        assert row["share_within"] == pytest.approx((row["least_head"] + row["most_head"]) / 2)  # two heads


def test_a_layer_without_any_weight_has_no_share() -> None:
    row = next(of_layers(spreads(even(normaliser="relu"), images()), [1]))
    assert (row["share_within"], row["least_head"], row["most_head"]) == (None, None, None)


def test_of_a_gradient_pixels_count_whose_centre_lies_within() -> None:
    share_HW = np.zeros((8, 8))
    share_HW[4, 4], share_HW[4, 5], share_HW[1, 6], share_HW[7, 0] = 0.4, 0.3, 0.2, 0.1  # 0, 1, 3 and 4 from (4, 4)
    found = list(of_gradient(Gradient(share_HW, (-1, 9), (-1, 9)), [0, 1, 2]))
    assert [row["radius_pixels"] for row in found] == [1, 3, 5]  # tokens of 2 pixels
    assert [row["share_within"] for row in found] == pytest.approx([0.7, 0.9, 1])
    assert [row["even"] for row in found] == pytest.approx([9 / 64, 49 / 64, 1])


def measured(study: StudyFolder, **options: object) -> Question:
    return Question("locality", options, study.store.folder.parent, study, study.runs)


def test_runs_have_rows_before_and_after_training_and_what_was_gained(kept: StudyFolder) -> None:
    found = measured(kept, images=20, radii=[2, 0, 2]).measured(print)
    assert [(row["label"], row["when"], row["layer"], row["radius"]) for row in found.rows] == [
        *[("token_transformer:xs", *rest) for rest in product(("untrained", "trained"), (0, 1), (0, 2))],
        *[("convnet:xs", *rest) for rest in product(("untrained", "trained"), (None,), (0, 2))]]
    share = {(row["label"], row["when"], row["layer"], row["radius"]): row for row in found.rows}
    for label, layer, radius in (("token_transformer:xs", 1, 2), ("convnet:xs", None, 0)):
        before, after = (share[label, when, layer, radius] for when in ("untrained", "trained"))
        assert before["gained"] == 0
        assert after["gained"] == pytest.approx(after["share_within"] - before["share_within"], abs=1e-5)  # type: ignore
        assert after["gained"] != 0


@pytest.mark.parametrize(("gained", "within", "margin", "learned"), [
    (0.06, 0.5, 0.05, 1), (0.04, 0.5, 0.05, 0),  # gains too little
    (0.06, 0.44, 0.05, 0), (0.06, 0.46, 0.05, 1),  # is hardly more local than even attention, .4
    (0.06, 0.5, 0.2, 0), (-0.1, 0.5, 0.05, 0)])
def test_a_receptive_field_is_learned_where_a_layer_gained_and_beats_even_attention(
        gained: float, within: float, margin: float, learned: int) -> None:
    row = {"label": "one", "train_images": 9, "kind": "layer", "layer": 0, "radius": 1, "even": 0.4}
    rows = [{**row, "when": "untrained", "share_within": within - gained, "gained": 0.0},
            {**row, "when": "trained", "share_within": within, "gained": gained}]
    assert f"Of 1 trained layers of attention {learned} have learned" in summary(rows, Options(margin=margin))


def test_no_radius_is_refused(kept: StudyFolder) -> None:
    with pytest.raises(BadOption, match="option radii: "):
        measured(kept, radii=[]).measured(print)
