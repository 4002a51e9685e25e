"""Searches at rest: what names them."""

from pathlib import Path
from typing import Any

from tests.report.factory import resolved, study
from vitbench.study.searches import Wanted, wanted

SPACE = {"learning_rate": {"low": 0.001, "high": 0.1, "log": True}}


def searches(tmp_path: Path, **tuning: Any) -> list[Wanted]:
    of = study(fractions=[1], models=["linear"], tuning={"space": SPACE, "trials": 4, **tuning})
    return wanted(of, resolved(of), tmp_path)


def test_the_name_of_a_search_stays(tmp_path: Path) -> None:
    """Its trials are drawn from it: a version that changes it begins all searches anew."""
    assert [one.name for one in searches(tmp_path)] == ["57ebe1c8c1e4ac29"]


def test_values_that_are_the_defaults_do_not_rename_a_search_and_others_do(tmp_path: Path) -> None:
    (name,) = {one.name for one in searches(tmp_path)}
    same: tuple[dict[str, Any], ...] = ({"trials": 9}, {"folds": 5}, {"objective": "accuracy"}, {"only": "seed=1"})
    for values in same:
        assert [one.name for one in searches(tmp_path, **values)] == [name]
    others = [one.name for values in ({"objective": "loss"}, {"sampler": "tpe"}, {"space": {"momentum": [0, 0.9]}})
              for one in searches(tmp_path, **values)]
    assert len({name, *others}) == 4


def test_repeated_searches_have_subsets_of_their_own(tmp_path: Path) -> None:
    assert [one.spec.seed for one in searches(tmp_path, searches=3)] == [10_000, 10_001, 10_002]
