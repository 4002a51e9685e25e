"""Searches at rest: what names them."""

from pathlib import Path
from typing import Any

from tests.report.factory import resolved, study
from vitbench.study.costs import Costs, Rates, kind_of
from vitbench.study.forecast import search_forecasts, wall_seconds
from vitbench.study.place import Placement
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


def test_the_trials_of_a_search_wait_for_each_other(tmp_path: Path) -> None:
    """On two workers one search takes as long as on one; two of it, of two labels, are one."""
    of = study(fractions=[1], models=["linear", {"name": "linear", "label": "again"}],
               tuning={"space": SPACE, "trials": 4, "validation": "cv", "folds": 5})
    found, two = wanted(of, resolved(of), tmp_path), Placement("cpu", 0, 2)
    assert len(found) == 2
    rates = Rates(train_images_per_second=64.0, eval_images_per_second=1e9, overhead_seconds=0, base_memory_bytes=1,
                  macs=1)
    known = Costs(machine="this", kinds={kind_of(found[0].spec, "cpu", shared=two.shared): rates})
    seconds = wall_seconds(search_forecasts(found, resolved(of), known, two), two.workers)
    assert seconds is not None
    assert round(seconds) == 4 * 5 * 300  # trials, folds, steps of 64 images a second
