"""Runs that would take too long are refused before they start, with the numbers and what would fit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.report.factory import resolved, study
from vitbench.cli.plan import show_plan
from vitbench.config import Study
from vitbench.cost import ModelCost
from vitbench.expansion import expand
from vitbench.grid import Run
from vitbench.models import checked_cost
from vitbench.spec import ImageSpec
from vitbench.store import ResultStore
from vitbench.study import costs, slow
from vitbench.study.costs import Costs, Rates
from vitbench.study.folder import StudyFolder
from vitbench.study.measure import few_images
from vitbench.study.place import Placement
from vitbench.study.plan import plan
from vitbench.study.slow import TooSlow, doubtful, refuse_too_slow, too_slow

ONE = Placement("cpu", 0, 1)
HOURS_4 = 14_400


def of_one(**values: Any) -> Study:
    return study(**{"models": ["token_transformer:xs"], "fractions": [1], "seeds": 2, "budgets": [{"steps": 300}],
                    "recipe": {"batch_size": 64}, **values})


def rates(train: float, macs: int = 1000) -> Rates:
    """So many training images a second; evaluation takes no time."""
    return Rates(train_images_per_second=train, eval_images_per_second=1e12, overhead_seconds=0, base_memory_bytes=0,
                 macs=macs)


def told(of: Study, known: Rates | None = None, counted: Mapping[str, int] | None = None,
         placement: Placement = ONE) -> str | None:
    """What is said of a study whose kinds all have the rates `known`, or none, and models of `counted` macs."""
    runs = expand(of, resolved(of))
    return too_slow(runs, resolved(of), macs_of(counted or {}), measured(runs, known, placement), placement)


def macs_of(counted: Mapping[str, int]) -> dict[str, ModelCost]:
    return {label: ModelCost(1, macs, 1) for label, macs in counted.items()}


def measured(runs: list[Run], known: Rates | None, placement: Placement = ONE) -> Costs:
    kinds = {costs.kind_of(run.spec, placement.device, shared=placement.shared): known for run in runs} if known else {}
    return Costs(machine="here", kinds=kinds)


def test_a_run_of_forty_minutes_passes_and_one_of_more_than_the_limit_does_not() -> None:
    assert slow.LONGEST_SECONDS == HOURS_4
    assert told(of_one(), rates(300 * 64 / 2400)) is None
    found = told(of_one(), rates(300 * 64 / 19_200))
    # Digits in patches of 2 have no larger ones; 14,400 s are 225 steps of 64 s, told to two digits.
    assert found == ("a run of token_transformer:xs (share 1, steps:300) would take 5 h 20 min, as measured here; a "
                     "run may take 4 h 00 min. steps: 220 would fit")


def test_the_nearest_patches_that_fit_are_named() -> None:
    label = "token_transformer:xs"
    pixels = of_one(models=[{"name": "token_transformer", "size": "xs", "tokens": "pixel"}])
    macs = checked_cost("token_transformer", "xs", {"tokens": "pixel"}, ImageSpec(8, 1), 10).macs
    larger = checked_cost("token_transformer", "xs", {}, ImageSpec(8, 1), 10).macs
    fits = 300 * 64 / (HOURS_4 * macs / larger)  # images a second with which a fourth of the tokens just fits
    assert f"{label} " in str(told(pixels, rates(1.01 * fits, macs)))
    assert "tokens: patch, patch_size: 2 or steps:" in str(told(pixels, rates(1.01 * fits, macs)))
    assert "patch_size" not in str(told(pixels, rates(0.99 * fits, macs)))


def test_a_budget_is_advised_in_its_own_unit() -> None:
    # Ten times the limit: two epochs are a little more than it, for their last batch is full, too.
    assert "epochs: 1 would fit" in str(told(of_one(budgets=[{"epochs": 20}]), rates(20 * 1153 / (10 * HOURS_4))))
    assert "Take a smaller model" in str(told(of_one(budgets=[{"epochs": 1}]), rates(0.01)))
    flops = 6 * 1000 * 64 * 300  # 300 steps of a model of 1,000 macs
    assert "flops: 86000000 would fit" in str(told(of_one(budgets=[{"flops": flops}]), rates(1.0)))


def test_one_sentence_names_the_slowest_and_all_others() -> None:
    both = of_one(models=["token_transformer:xs", "convnet:xs"], budgets=[{"steps": 300}, {"steps": 600}])
    found = str(told(both, rates(300 * 64 / 19_200)))
    assert found.startswith("a run of token_transformer:xs (share 1, steps:600) would take 10 h 40 min")
    assert "The same is true of convnet:xs." in found


def test_without_a_measurement_only_what_no_core_could_do_is_refused() -> None:
    # 300 steps of 64 images are 57,600 forward passes; 16 inner points look at 1,144 images and the last at 1,797.
    passes = 57_600 + 16 * 1144 + 1797
    label = "token_transformer:xs"
    at_limit = int(2e11 * HOURS_4 / passes)
    assert told(of_one(), None, {label: int(0.99 * at_limit)}) is None
    found = str(told(of_one(), None, {label: int(1.01 * at_limit)}))
    assert "would take at least 4 h 02 min: no core does 200 billion multiply-adds a second" in found
    assert "By a rough estimate steps: " in found
    assert told(of_one(recipe={"batch_size": 64, "precision": "bf16"}), None, {label: int(9 * at_limit)}) is None
    assert told(of_one(), None, {label: 100 * at_limit}, Placement("cuda", 1, 1)) is None  # nothing is known of GPUs
    assert told(of_one(), rates(1000), {label: 100 * at_limit}) is None  # what was measured counts more


def test_what_might_be_slow_is_to_be_measured_and_nothing_else() -> None:
    of = of_one(models=["token_transformer:xs", "convnet:xs"])
    runs, counted = expand(of, resolved(of)), macs_of({"token_transformer:xs": 10**6, "convnet:xs": 10**9})
    found = doubtful(runs, resolved(of), counted, measured(runs, None), ONE)
    assert [run.label for run in found.values()] == ["convnet:xs"]
    assert list(found) == [costs.kind_of(found[kind].spec, "cpu", shared=False) for kind in found]
    assert doubtful(runs, resolved(of), counted, measured(runs, rates(1.0)), ONE) == {}
    assert doubtful(runs, resolved(of), counted, measured(runs, None), Placement("cuda", 1, 1)) == {}


def test_steps_cost_time_however_small_the_model() -> None:
    of = of_one(budgets=[{"steps": 145_000}])  # of a tenth of a second
    runs = expand(of, resolved(of))
    assert doubtful(runs, resolved(of), macs_of({"token_transformer:xs": 1}), measured(runs, None), ONE)


def test_a_refusal_says_how_to_run_it_all_the_same() -> None:
    runs = expand(of_one(), resolved(of_one()))
    with pytest.raises(TooSlow, match=r"steps: 220 would fit; --allow-slow runs it all the same$"):
        refuse_too_slow(runs, resolved(of_one()), {}, measured(runs, rates(1.0)), ONE)


def test_a_plan_shows_what_is_too_slow_and_then_refuses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = of_one()
    folder = StudyFolder("slow", of, resolved(of), ResultStore(tmp_path / "slow"))
    costs.keep(tmp_path, {kind: [known] for kind, known in measured(folder.runs, rates(1.0)).kinds.items()})
    found = plan(folder, ONE, deviation=None)
    with pytest.raises(TooSlow, match="would take 5 h 20 min"):
        show_plan(folder, found, as_json=False, quiet=False, allow_slow=False)
    assert "forecast: 10 h 40 min" in capsys.readouterr().out
    show_plan(folder, found, as_json=False, quiet=True, allow_slow=True)
    assert "would take 5 h 20 min" in capsys.readouterr().out


def test_a_study_that_is_done_is_not_slow(tmp_path: Path) -> None:
    of = of_one(seeds=1)
    folder = StudyFolder("slow", of, resolved(of), ResultStore(tmp_path / "slow"))
    costs.keep(tmp_path, {kind: [known] for kind, known in measured(folder.runs, rates(1.0)).kinds.items()})
    assert plan(folder, ONE, deviation=None).too_slow
    (folder.store.runs / folder.runs[0].spec.run_id).mkdir(parents=True)
    (folder.store.runs / folder.runs[0].spec.run_id / "record.json").touch()
    assert plan(folder, ONE, deviation=None).too_slow is None


def test_a_probe_draws_no_more_images_than_fill_a_batch() -> None:
    def drawn(**values: Any) -> str:
        of = of_one(**values)
        return few_images(expand(of, resolved(of))[0], resolved(of)).share

    assert drawn() == "8 a class"  # 7 would be 60 images, without those for validation
    assert drawn(refit=True) == "7 a class"
    assert drawn(recipe={"batch_size": 32}) == "4 a class"  # too few for validation: 40 train
    assert drawn(fractions=None, images_per_class=[3]) == "3 a class"  # the whole share is a batch
