"""Parameters of layers on windows against their formula, and of whole models against those that are built."""

from pathlib import Path

import pytest
from torch import nn

from vitbench.measurement import Measurement
from vitbench.models import build
from vitbench.probes._measure import Question
from vitbench.spec import ImageSpec


def measured(folder: Path, **options: int) -> Measurement:
    return Question("window_parameters", options, folder).measured(print)


@pytest.mark.parametrize(("options", "windows", "width"), [
    ({}, [1, 3, 5, 7, 9, 11, 13], 64), ({"image": 8, "width": 10}, [1, 3, 5, 7], 10)])
def test_a_layer_has_the_parameters_of_its_formula_and_attention_always_the_same(
        options: dict[str, int], windows: list[int], width: int, tmp_path: Path) -> None:
    rows = [row for row in measured(tmp_path, **options).rows if row["part"] == "layer"]
    assert [row["window"] for row in rows] == windows
    assert [row["parameters"] for row in rows] == [width * (w**2 * width + 1) for w in windows]
    attention = sum(p.numel() for p in nn.MultiheadAttention(width, 1).parameters())
    assert {row["attention"] for row in rows} == {attention}
    assert [row["slope"] is None for row in rows] == [True] + [False] * (len(windows) - 1)


def test_models_are_those_of_one_size_at_the_matched_window_and_at_the_whole_image(tmp_path: Path) -> None:
    found = measured(tmp_path, image=8)
    rows = {(row["size"], row["window"]): row for row in found.rows if row["part"] == "model"}
    assert set(rows) == {(size, window) for size in ("xs", "s", "m", "l", "xl") for window in (3, 7)}
    for size, window in (("xs", 3), ("s", 7)):
        counts = [sum(p.numel() for p in build(name, size, options, ImageSpec(8, 1), 10).parameters())
                  for name, options in (("window_fc", {"window": window}), ("token_transformer", {}))]
        assert [rows[size, window][column] for column in ("parameters", "attention")] == counts
        assert rows[size, window]["ratio"] == pytest.approx(counts[0] / counts[1], rel=1e-5)
    assert all(row["ratio"] == pytest.approx(1, abs=0.15) for (_, window), row in rows.items() if window == 3)
    assert "The whole image takes 12.1 times attention's parameters" in found.summary
