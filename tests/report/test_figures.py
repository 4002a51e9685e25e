import json
import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.factory import Found, Resolved, Run, failure, frame, record, study
from vitbench.report import figures
from vitbench.report.cells import cells
from vitbench.report.curves import cell_curves
from vitbench.report.frame import Frame
from vitbench.report.palette import HUES, INK, PARTS, model_styles
from vitbench.report.placing import axis_range, spread

EIGHT = ["token_transformer:xs", "token_transformer:s", "convnet:xs", "convnet:s", "convnet:m", "linear", "mlp",
         {"name": "token_transformer", "size": "s", "label": "one_head"}]


def holed() -> Frame:
    """Diverged, failed and missing runs, and a share without validation."""
    def make(run: Run, facts: Resolved) -> Found:
        if run.label == "convnet:xs" and run.spec.share == "0.1":
            return record(run, facts, diverged="loss is not finite") if run.spec.seed == 1 else record(run, facts)
        if run.label == "convnet:xs" and run.spec.share == "1":
            return None
        return failure(run) if (run.spec.share, run.spec.seed) == ("0.02", 2) else record(run, facts)
    return frame(study(fractions=[0.02, 0.1, 1]), make)


def rendered(spec: dict[str, Any]) -> str:
    vl_convert = pytest.importorskip("vl_convert")
    return str(vl_convert.vegalite_to_svg(spec))


def test_points_carry_the_intervals_of_the_table() -> None:
    made = frame(study(models=["convnet:xs"], fractions=[0.1]),
                 lambda run, facts: record(run, facts, test_accuracy=(0.8, 0.9, 1.0)[run.spec.seed]))
    (point,) = figures.accuracy(made)["datasets"]["points"]
    assert (point["mean"], point["low"], point["high"]) == (0.9, 0.651586, 1.14841)
    assert point["train_images"] == 120


def test_one_seed_has_a_point_and_no_band() -> None:
    for point in figures.accuracy(frame(study(seeds=1)))["datasets"]["points"]:
        assert point["low"] is None
        assert point["band_low"] is None


def test_a_cell_that_diverged_has_a_bar_but_no_band_and_a_missing_cell_no_point() -> None:
    points = {(p["label"], p["share"]): p for p in figures.accuracy(holed())["datasets"]["points"]}
    diverged = points["convnet:xs", "0.1"]
    assert (diverged["whole"], diverged["band_low"]) == (False, None)
    assert diverged["low"] is not None
    assert ("convnet:xs", "1") not in points


def test_specs_are_the_same_again_and_in_any_order() -> None:
    made = holed()
    mixed = replace(made, rows=tuple(random.Random(1).sample(made.rows, len(made.rows))))
    for make in (figures.accuracy, figures.overview, lambda f: figures.overfitting(f, "convnet:xs", "0.1")):
        first = json.dumps(make(made), sort_keys=True, allow_nan=False)
        assert first == json.dumps(make(made), sort_keys=True) == json.dumps(make(mixed), sort_keys=True)


def test_every_figure_names_what_it_rests_on() -> None:
    rests_on = figures.accuracy(frame())["usermeta"]["vitbench"]
    assert len(rests_on["content_sha256"]) == 64
    assert rests_on["runs"] == 12


def test_figures_render_with_holes_and_with_nothing() -> None:
    empty = frame(study(), lambda run, facts: None)
    for made in (holed(), empty):
        for spec in (figures.accuracy(made), figures.overview(made), figures.overfitting(made, "convnet:xs", "0.1"),
                     figures.overfitting(made, "convnet:xs", "0.1", quantity="loss", step_axis="linear")):
            assert rendered(spec).startswith("<svg")


def test_every_panel_is_named_so_that_none_shifts() -> None:
    made = holed()
    panels = figures.overview(made)["datasets"]["panels"]
    assert {(row["label"], row["share"]) for row in panels} == {(cell.label, cell.share) for cell in cells(made)}
    assert [row["note"] for row in panels if "note" in row] == ["missing"]


def test_the_mean_curve_is_that_worked_out_by_hand_and_ends_where_a_run_diverged() -> None:
    made = holed()
    cell = next(cell for cell in cells(made) if (cell.label, cell.share) == ("convnet:xs", "0.1"))
    rows = cell_curves(made, cell).curves
    means = [row for row in rows if row[0] is None and row[2] == "test"]
    at_5 = [row[3] for row in rows if row[0] is not None and row[1:3] == (5, "test")]
    assert len(at_5) == 3
    assert next(row[3] for row in means if row[1] == 5) == pytest.approx(sum(v or 0 for v in at_5) / 3, abs=1e-5)
    assert max(row[1] for row in means) == 120  # lost from step 150 on


def test_onsets_are_at_the_lowest_validation_loss_and_absent_without_validation() -> None:
    made = holed()
    by_key = {(cell.label, cell.share): cell for cell in cells(made)}
    curves = cell_curves(made, by_key["token_transformer:xs", "0.1"])
    for seed, step, loss, _ in curves.onsets[:-1]:
        assert loss == min(row[3] or math.inf for row in curves.curves if row[0] == seed and row[2] == "val")
        assert any(row[:3] == (seed, step, "val") and row[3] == loss for row in curves.curves)
    assert curves.onsets[-1][0] is None
    assert cell_curves(made, by_key["token_transformer:xs", "0.02"]).onsets == []


def test_log_and_linear_loss_and_accuracy_are_chosen() -> None:
    text = json.dumps(figures.overfitting(frame(), "convnet:xs", "1", quantity="loss", step_axis="linear"))
    assert "step (linear scale)" in text
    assert "loss, nats" in text
    assert '"type": "log"' not in text


def test_unknown_selections_name_what_is_near() -> None:
    with pytest.raises(figures.NoSuchCell, match="Did you mean 'convnet:xs'"):
        figures.overfitting(frame(), "convnet:x", "1")
    with pytest.raises(figures.NoSuchCell, match="it has none, steps:300, default"):
        figures.accuracy(frame(), condition="strong")


def test_each_budget_is_a_condition_of_its_own() -> None:
    made = frame(study(budgets=[{"steps": 300}, {"epochs": 9}]))
    assert figures.conditions(made) == ("none, steps:300, default", "none, epochs:9, default")
    assert len(figures.accuracy(made, condition="none, epochs:9, default")["datasets"]["points"]) == 4


def test_names_of_eight_models_do_not_overlap() -> None:
    spec = figures.accuracy(frame(study(models=EIGHT), lambda run, facts: record(run, facts, test_accuracy=0.8)))
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    places = sorted((high - row["place"]) / (high - low) * spec["height"] for row in spec["datasets"]["labels"])
    assert len(places) == 8
    assert all(b - a >= 14.9 for a, b in pairwise(places))
    assert places[0] >= -0.1
    assert places[-1] <= spec["height"] + 0.1


def test_no_two_models_look_alike() -> None:
    styles = model_styles(cells(frame(study(models=EIGHT))))
    assert len({(s.colour, s.shape, tuple(s.dash), s.width) for s in styles}) == 8
    assert {s.colour for s in styles if s.label.startswith("convnet")} == {HUES["convolution"][0]}


def luminance(colour: str) -> float:
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# Ink is not among them: the page's style sheet turns it light on a dark ground.
@pytest.mark.parametrize("colour", [c for hues in HUES.values() for c in hues]
                         + [part.colour for part in PARTS if part.colour != INK])
@pytest.mark.parametrize("ground", ["#ffffff", "#15181c"])
def test_every_colour_stands_out_on_both_grounds(colour: str, ground: str) -> None:
    light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 2.9


@given(st.lists(st.floats(0, 300), max_size=20))
def test_spread_keeps_order_gap_and_bounds(places: list[float]) -> None:
    placed = spread(places, 15, 300)
    order = sorted(range(len(places)), key=lambda i: (places[i], i))
    assert all(placed[b] - placed[a] >= 15 - 1e-6 for a, b in pairwise(order))
    assert all(-1e-6 <= p <= 300 + 1e-6 for p in placed)


def test_an_axis_holds_every_mean_and_stays_within_0_and_1() -> None:
    assert axis_range([0.5, 0.9], [-3.0, 0.85], [4.0, 0.95]) == (0.1, 1.0)
    assert axis_range([1.0, 1.0], [1.0, 1.0], [1.0, 1.0]) == (0.95, 1.0)
    assert axis_range([], [], []) == (0.0, 1.0)
