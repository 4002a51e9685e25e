"""The cost file and the forecast made from it, without an engine."""

import getpass
import socket
from pathlib import Path

import pytest

from tests.report.factory import failure, record, resolved, study
from vitbench.config import Study
from vitbench.config.bands import Band
from vitbench.environment import usable_cores
from vitbench.expansion import expand
from vitbench.grid import Run
from vitbench.record import RunRecord
from vitbench.report.cells import cells
from vitbench.report.frame import build
from vitbench.spec import BudgetTooSmall, Recipe
from vitbench.store import ResultStore
from vitbench.study import costs
from vitbench.study.costs import Rates
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import SHARED_BYTES, Expected, expected, peak_bytes, wall_seconds
from vitbench.study.place import Placement
from vitbench.study.plan import plan, planned_placement
from vitbench.study.resolution import deviations, resolution

TWO = Placement("cpu", 0, 2)
RATES = Rates(train_images_per_second=1000.0, eval_images_per_second=5000.0, overhead_seconds=0.25,
              base_memory_bytes=400_000_000, macs=1000)


def runs_of(of: Study) -> list[Run]:
    return expand(of, resolved(of))


def known(of: Study, **changes: float) -> dict[str, list[Rates]]:
    return {costs.kind_of(run.spec, "cpu", shared=True): [RATES.model_copy(update=changes)] for run in runs_of(of)}


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    of = study()
    made = StudyFolder("quick", of, resolved(of), ResultStore(tmp_path / "quick"))
    made.store.prepare()
    return made


def test_anchors_do_not_tell_how_the_grid_parts_a_share(tmp_path: Path) -> None:
    of = study(anchors=["convnet:xs"])
    band = Band(dataset="digits@1", family="convolution", low=0.9, high=0.99, recipe=Recipe(), steps=700, source="?",
                why="?")
    names = resolved(of).model_copy(update={"bands": {"convnet:xs": band}})
    found = plan(StudyFolder("quick", of, names, ResultStore(tmp_path / "quick")), TWO, deviation=None)
    assert [(share["share"], share["val_images"]) for share in found.shares] == [("0.1", 25), ("1", 284)]


def test_a_run_takes_its_training_its_evaluation_and_its_overhead(folder: StudyFolder, tmp_path: Path) -> None:
    costs.keep(tmp_path, known(folder.study))
    run = next(run for run in folder.runs if run.spec.share == "1")
    found = expected(run, folder.resolved, costs.read(tmp_path), "cpu", shared=True)
    assert found is not None
    # 300 steps of 64; 16 inner points look at 500 + 284 + 360 images, the last one at 1153 + 284 + 360.
    assert found.seconds == pytest.approx(300 * 64 / 1000 + (16 * 1144 + 1797) / 5000 + 0.25)
    assert found.peak_memory_bytes == 400_000_000 + 1797 * 64
    assert expected(run, folder.resolved, costs.read(tmp_path), "cuda", shared=True) is None
    assert expected(run, folder.resolved, costs.read(tmp_path), "cpu", shared=False) is None


@pytest.mark.parametrize(("runs", "workers", "seconds"), [
    ([], 2, 0), ([3, 1], 1, 4), ([3, 1, 1], 2, 3), ([1, 1, 3], 2, 4), ([5], 3, 5), ([2, 2, 2, 2], 2, 4),
    ([2, None, 2], 2, None),
])
def test_wall_time_is_that_of_starting_each_run_on_the_first_free_worker(runs: list[float | None], workers: int,
                                                                         seconds: float | None) -> None:
    each = [None if s is None else Expected(s, 0) for s in runs]
    assert wall_seconds(each, workers) == seconds


def test_memory_is_that_of_the_largest_runs_at_once() -> None:
    own = [SHARED_BYTES + n for n in (1, 5, 3)]
    assert peak_bytes(own, 2) == SHARED_BYTES + 8  # what all share is there once
    assert peak_bytes(own[:1], 2) == SHARED_BYTES + 1


def test_new_rates_take_the_place_of_older_ones_and_others_stay(tmp_path: Path) -> None:
    costs.keep(tmp_path, {"a": [RATES], "b": [RATES]}, start_seconds=5.0)
    costs.keep(tmp_path, {"a": [RATES.model_copy(update={"overhead_seconds": s}) for s in (1.0, 2.0, 9.0)]})
    found = costs.read(tmp_path)
    assert found.kinds["a"].overhead_seconds == 2.0
    assert found.kinds["b"] == RATES
    assert found.start_seconds == 5.0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"machine": "another", "kinds": {}}', '{"machine": 3}'])
def test_costs_that_are_damaged_or_another_machines_are_not_used(tmp_path: Path, text: str) -> None:
    costs.keep(tmp_path, {"a": [RATES]})
    (tmp_path / costs.FILE).write_text(text)
    assert costs.read(tmp_path).kinds == {}
    costs.keep(tmp_path, {"b": [RATES]})
    assert set(costs.read(tmp_path).kinds) == {"b"}


def test_the_cost_file_names_no_host(tmp_path: Path) -> None:
    costs.keep(tmp_path, {"a": [RATES]})
    text = (tmp_path / costs.FILE).read_text()
    assert socket.gethostname() not in text
    assert f'"{getpass.getuser()}"' not in text


def test_a_kind_is_named_by_what_decides_its_rates() -> None:
    def kind(**values: object) -> str:
        run = runs_of(study(**{"models": ["convnet:xs"], "fractions": [0.1], **values}))[-1]
        return costs.kind_of(run.spec, "cpu", shared=True)

    assert kind() == kind(seeds=5) == kind(fractions=[1]) == kind(budgets=[{"epochs": 3}])
    assert len({kind(), kind(recipe={"batch_size": 8}), kind(recipe={"precision": "bf16"}), kind(models=["mlp:s"]),
                kind(regimes=["light"]), kind(regimes=["strong"]),
                kind(models=[{"name": "convnet", "size": "xs", "width": 9}])}) == 7


def test_a_plan_of_measured_kinds_has_seconds_and_one_of_others_names_them(folder: StudyFolder, tmp_path: Path) -> None:
    assert plan(folder, TWO, deviation=None).unmeasured == ("token_transformer:xs", "convnet:xs")
    costs.keep(tmp_path, known(folder.study), start_seconds=4.0, closing_seconds=2.0)
    found = plan(folder, TWO, deviation=None)
    assert found.unmeasured == ()
    assert found.seconds is not None
    each = [expected(run, folder.resolved, costs.read(tmp_path), "cpu", shared=True) for run in folder.runs]
    assert found.seconds == pytest.approx(6.0 + wall_seconds(each, 2) or 0)
    assert found.totals.to_do == 12


def test_done_and_failed_runs_are_not_planned_again(folder: StudyFolder, tmp_path: Path) -> None:
    costs.keep(tmp_path, known(folder.study))
    for run in folder.runs[:5]:
        folder.store.write(record(run, folder.resolved), None)
    folder.store.write_failure(failure(folder.runs[5]))
    found = plan(folder, TWO, deviation=None).totals
    assert (found.runs, found.done, found.failed, found.to_do) == (12, 5, 1, 6)


def test_a_run_whose_worker_died_is_to_do_again_and_named(folder: StudyFolder) -> None:
    for run in folder.runs[:-1]:
        folder.store.write(record(run, folder.resolved), None)
    last = folder.runs[-1]
    died = failure(last).model_copy(update={"crash": True, "reason": "worker died: signal SIGKILL"})
    folder.store.write_failure(died)
    assert folder.left() == [last]
    found = plan(folder, TWO, deviation=None).totals
    assert (found.done, found.failed, found.to_do) == (11, 0, 1)
    assert any(f"1 runs lost their worker and will be done again: {last.spec.run_id}" in line
               for line in folder.remarks())


def test_one_run_left_is_planned_on_one_worker(folder: StudyFolder) -> None:
    for run in folder.runs[:-1]:
        folder.store.write(record(run, folder.resolved), None)
    assert planned_placement(folder, workers=8, runs_per_device=1).workers == 1


def test_deviations_are_of_paired_differences_between_models_under_one_condition() -> None:
    of = study(fractions=[0.1])
    by_id = {run.spec.run_id: run for run in runs_of(of)}
    lead = {"token_transformer:xs": (0.6, 0.7, 0.8), "convnet:xs": (0.7, 0.81, 0.93)}

    def read(run_id: str) -> RunRecord:
        run = by_id[run_id]
        return record(run, resolved(of), test_accuracy=lead[run.label][run.spec.seed])

    # Pairing takes out what a seed does to both: differences are -.10, -.11 and -.13.
    (found,) = deviations(cells(build("quick", by_id.values(), read, resolved(of), of.fit)))
    assert found == pytest.approx(0.0152752523)


def test_resolution_needs_two_seeds_and_a_deviation() -> None:
    assert resolution(1, 0, stated=0.01, earlier=None) is None
    assert resolution(6, 0, stated=None, earlier=None) is None
    found = resolution(6, 0, stated=0.015, earlier=None)
    assert found is not None
    assert found.difference == pytest.approx(0.0215181717306, rel=1e-5)  # smallest_detectable/n6
    assert "6 seeds show a difference of 2.2 points" in found.sentence
    looked = resolution(6, 2, stated=0.015, earlier=None)
    assert looked is not None
    assert looked.alpha == 0.025  # protocol rule 22
    assert looked.difference > found.difference
    few = resolution(3, 0, stated=0.015, earlier=None)
    assert few is not None
    assert "no test is made below 6 seeds" in few.sentence


@pytest.mark.parametrize(("device", "devices", "workers", "per_device", "runs", "at_once", "shared"), [
    ("cpu", 0, 3, 1, 99, 3, True), ("cpu", 4, 1, 1, 99, 1, False), ("cpu", 0, 8, 1, 2, 2, True),
    ("cuda", 1, None, 1, 99, 1, False), ("cuda", 4, None, 1, 99, 4, False), ("cuda", 4, None, 2, 99, 8, True),
    ("cuda", 2, 3, 1, 99, 3, True),
])
def test_runs_at_a_time_and_whether_they_share_a_device(device: str, devices: int, workers: int | None, per_device: int,  # noqa: PLR0917
                                                        runs: int, at_once: int, shared: bool) -> None:
    found = Placement.of(device, devices, workers=workers, runs_per_device=per_device, runs=runs)
    assert (found.workers, found.shared) == (at_once, shared)


def test_a_cpu_takes_a_run_a_core() -> None:
    assert Placement.of("cpu", 0, workers=None, runs_per_device=1, runs=10**6).workers == usable_cores()


def test_a_budget_that_buys_no_step_is_told_before_anything_runs(tmp_path: Path) -> None:
    of = study(budgets=[{"flops": 1000}])
    made = StudyFolder("quick", of, resolved(of), ResultStore(tmp_path / "quick"))
    costs.keep(tmp_path, known(of))
    with pytest.raises(BudgetTooSmall, match=r"a budget of 1,000 flops is less than one step of 64 images \(384,000"):
        plan(made, TWO, deviation=None)
