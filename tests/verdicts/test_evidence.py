from dataclasses import replace

import numpy as np
import pytest

from vitbench.verdicts import Blocked, Evidence, Expected, Planted
from vitbench.verdicts.conformance import losing
from vitbench.verdicts.evidence import models_of
from vitbench.verdicts.simulated import simulate


def evidence(**study: object) -> Evidence:
    return simulate(Planted("none", lambda cell: Expected(0.8), 0.5, {
        "models": ["attention:s", "convolution:s"], "seeds": 2, **study}), np.random.default_rng(0))


def test_sizes_are_ordered_by_their_images_whatever_the_study_writes_first() -> None:
    found = evidence(images_per_class=[100, 5, 20])
    assert found.shares == ("5 a class", "20 a class", "100 a class")
    assert (found.smallest, found.full) == ("5 a class", "100 a class")


def test_little_is_5_to_50_drawn_images_of_every_class() -> None:
    assert evidence(images_per_class=[4, 5, 50, 51]).little == ("5 a class", "50 a class")
    uneven = replace(evidence(images_per_class=[5, 20]), drawn={"a": (5, 51), "b": (4, 50), "c": (5, 50)})
    assert uneven.little == ("c",)


def test_without_runs_there_is_no_size() -> None:
    nothing = replace(evidence(images_per_class=[5]), rows=(), planned=(), models={}, drawn={})
    assert nothing.shares == nothing.little == ()
    for size in ("smallest", "full"):
        with pytest.raises(Blocked, match="no runs"):
            getattr(nothing, size)


def test_looks_share_the_error() -> None:
    assert evidence(images_per_class=[5]).alpha == 0.05
    assert replace(evidence(images_per_class=[5]), looks=3).alpha == pytest.approx(0.05 / 3)


def test_a_models_facts_come_from_any_of_its_runs() -> None:
    whole = evidence(images_per_class=[5])
    rows = [replace(row, params=None, macs=None) if row.seed == 0 else row for row in whole.rows]
    found = models_of(whole.planned, [row for row in rows if row.label == "attention:s"],
                      {"attention:s": "attention", "convolution:s": "convolution"}, {"attention:s": {"num_heads": 4}})
    assert found["attention:s"].params == found["attention:s"].macs == 100_000
    assert (found["attention:s"].size, found["attention:s"].full_options) == ("s", {"num_heads": 4})
    assert (found["convolution:s"].params, found["convolution:s"].model) == (None, "convolution@1")


def test_lost_runs_are_named_and_gone_from_the_second_view() -> None:
    whole = losing(evidence(images_per_class=[5]), lambda row: row.seed == 1 and row.family == "attention")
    assert [row.seed for row in whole.lost] == [1]
    second = whole.without_lost()
    assert len(second.rows) == 3
    assert second.planned == whole.planned
    assert {(cell.label, seed) for cell, seed in second.left_out} == {("attention:s", 1)}
