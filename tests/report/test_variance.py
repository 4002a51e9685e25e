"""The table of variance parts: planted parts come back, and what is not balanced has none."""

from typing import Any

import numpy as np
import pytest

from tests.report.factory import Found, failure, frame, record, study
from vitbench.grid import Resolved, Run
from vitbench.report import render
from vitbench.report.frame import Frame
from vitbench.report.variance import variance
from vitbench.report.wording import MINUS
from vitbench.stats.variance import variance_parts
from vitbench.streams import Streams

PARTS = ("subset", "initialisation", "interaction", "order")


def accuracy(run: Run) -> float:
    """One that every stream moves, by hand-picked amounts."""
    at = Streams.of(run.spec)
    return 0.7 + 0.02 * at.subset + 0.003 * (at.init % 3) + 0.001 * ((at.subset * at.init + at.order) % 4)


def crossed(make: Any = lambda run, facts: record(run, facts, test_accuracy=accuracy(run)), *, size: str = "5 5 2",
            **values: Any) -> Frame:
    subset, init, order = map(int, size.split())
    return frame(study(**{"seeds": 1, "models": ["convnet:xs"], "fractions": [0.1], **values, "controls": [
        {"name": "crossed", "crossed": {"subset": subset, "init": init, "order": order}}]}), make)


def rows(of: Frame) -> list[dict[str, Any]]:
    table = variance(of)
    assert table is not None
    return table.data()


def test_the_parts_are_those_of_the_runs_accuracies() -> None:
    (row,) = rows(crossed())
    scores = np.empty((5, 5, 2))
    for run in crossed().runs:
        if run.control:
            at = Streams.of(run.spec)
            scores[at.subset, at.init, at.order] = accuracy(run)
    expected = variance_parts(scores)
    assert [row[part] for part in PARTS] == pytest.approx([getattr(expected, part) for part in PARTS])
    assert (row["design"], row["runs"], row["notes"]) == ("5 x 5 x 2", 50, None)
    assert row["total_deviation"] == pytest.approx(sum(getattr(expected, part) for part in PARTS) ** 0.5,
                                                    rel=1e-5)


def test_a_negative_part_is_shown_as_it_is() -> None:
    table = variance(crossed(lambda run, facts: record(run, facts, test_accuracy=0.8 + 0.01 * (
        (Streams.of(run.spec).subset + Streams.of(run.spec).init) % 5))))
    assert table is not None
    (row,) = table.data()
    assert row["initialisation"] < 0
    assert row["initialisation_deviation"] == 0
    assert MINUS in render.markdown(table)


def test_a_missing_run_is_named_and_leaves_no_parts() -> None:
    def without(run: Run, facts: Resolved) -> Found:
        at = Streams.of(run.spec)
        return None if run.control and (at.subset, at.init, at.order) == (3, 1, 0) else record(run, facts)

    (row,) = rows(crossed(without))
    assert [row[part] for part in (*PARTS, "total_deviation")] == [None] * 5
    assert row["notes"] == ("1 missing; no parts: the design is not balanced without subset 3, initialisation 1, "
                            "order 0")
    assert row["runs"] == 49


def test_a_run_that_diverged_counts_as_chance_and_is_told() -> None:
    def lost(run: Run, facts: Resolved) -> Found:
        at = Streams.of(run.spec)
        gone = run.control and (at.subset, at.init, at.order) == (3, 1, 0)
        return record(run, facts, test_accuracy=0.8) if not gone else record(run, facts, diverged="loss is not finite")

    (row,) = rows(crossed(lost))
    assert "1 diverged" in str(row["notes"])
    assert row["order"] > 0
    assert row["test_accuracy"] == pytest.approx((49 * 0.8 + 0.1) / 50)


def test_equal_accuracies_have_no_variance_and_no_share() -> None:
    table = variance(crossed(lambda run, facts: record(run, facts, test_accuracy=0.8)))
    assert table is not None
    (row,) = table.data()
    assert [row[part] for part in PARTS] == pytest.approx([0] * 4, abs=1e-12)
    assert "nan" not in render.markdown(table)


@pytest.mark.parametrize(("size", "words"), [
    ("2 3 2", "below the 5 x 5 x 2 of protocol rule 26"),
    ("5 5 1", "it takes two subsets, initialisations and orders")])
def test_a_small_design_is_marked(size: str, words: str) -> None:
    (row,) = rows(crossed(size=size))
    assert words in str(row["notes"])


def test_the_order_of_models_changes_no_number() -> None:
    both = {"models": ["convnet:xs", "token_transformer:xs"]}
    found = {row["label"]: row for row in rows(crossed(**both))}
    other = {row["label"]: row for row in rows(crossed(models=both["models"][::-1]))}
    assert found == other


def test_all_failed_or_no_crossed_control_is_a_named_outcome() -> None:
    (row,) = rows(crossed(lambda run, _: failure(run)))
    assert "50 failed" in str(row["notes"])
    assert variance(frame()) is None


def test_parts_of_subset_and_initialisation_vary_by_nine_tenths_of_their_size() -> None:
    rng = np.random.default_rng(26)
    found = [variance_parts(rng.normal(size=(5, 1, 1)) + rng.normal(size=(1, 5, 1)) + rng.normal(size=(5, 5, 1))
                            + rng.normal(size=(5, 5, 2))) for _ in range(2000)]
    deviations = [np.std([getattr(parts, of) for parts in found]) for of in ("subset", "initialisation")]
    assert deviations == pytest.approx([0.9, 0.9], abs=0.08)
