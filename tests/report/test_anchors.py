"""Anchors against their bands."""

from dataclasses import replace

import pytest

from tests.report.factory import record, resolved, study
from vitbench.config.bands import Band, bands
from vitbench.expansion import expand
from vitbench.report.anchors import anchors, table
from vitbench.report.cells import cells
from vitbench.report.frame import Frame, build
from vitbench.spec import Recipe

BAND = Band(dataset="digits@1", family="convolution", low=0.9, high=0.98, recipe=Recipe(), steps=500, source="a table",
            why="as printed")


def anchored(accuracy: float | None) -> Frame:
    """A study with one anchor whose runs reach `accuracy`; None: they have not run."""
    of = study(anchors=["convnet:xs"])
    facts = resolved(of).model_copy(update={"bands": {"convnet:xs": BAND}})
    runs = expand(of, facts)
    found = {run.spec.run_id: record(run, facts, test_accuracy=accuracy if run.control else 0.5) for run in runs
             if accuracy is not None or not run.control}
    return build("s", runs, found.__getitem__, facts, of.fit)


@pytest.mark.parametrize(("accuracy", "state"), [(0.95, "within"), (0.9, "within"), (0.8999, "below"), (0.99, "above"),
                                                 (None, "missing")])
def test_an_anchor_is_within_below_or_above_its_band_or_missing(accuracy: float | None, state: str) -> None:
    (found,) = anchors(anchored(accuracy))
    assert found.state == state
    shown = table(anchored(accuracy))
    assert shown is not None
    assert shown.data()[0]["state"] == state
    assert shown.data()[0]["source"] == "a table"


def test_an_anchor_of_which_a_run_is_missing_is_not_judged() -> None:
    whole = anchored(0.95)
    short = replace(whole, rows=tuple(row for row in whole.rows if not (row.control and row.seed)))
    assert [one.state for one in anchors(short)] == ["missing"]


def test_an_anchor_enters_no_cell_of_the_grid() -> None:
    assert {cell.accuracy.mean for cell in cells(anchored(0.95)) if cell.accuracy} == {0.5}


def test_a_study_without_anchors_has_no_table_of_them() -> None:
    of = study()
    facts = resolved(of)
    runs = expand(of, facts)
    found = {run.spec.run_id: record(run, facts) for run in runs}
    assert table(build("s", runs, found.__getitem__, facts, of.fit)) is None


def test_the_bands_that_ship_are_whole_and_one_a_dataset_and_family() -> None:
    found = bands()
    assert len({(band.dataset, band.family) for band in found}) == len(found) >= 4
    assert all(band.low < band.high and len(band.source) > 20 and len(band.why) > 20 for band in found)
    assert {band.dataset for band in found} >= {"digits@1", "fashion_mnist@1"}


def test_a_band_that_does_not_rise_is_refused() -> None:
    with pytest.raises(ValueError, match="rise from low to high"):
        Band.model_validate(BAND.model_dump() | {"low": 0.99})
