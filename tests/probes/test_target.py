"""What a probe is done on: a study's runs, some of them, or one."""

from pathlib import Path

import pytest

from tests.report import factory
from vitbench.config import BadStudy
from vitbench.grid import BadSelection
from vitbench.probes import ProbeError
from vitbench.probes._target import Target, choose
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder

PROBE = "position_shift"  # looks at attention models


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    """Two models, two seeds and a control; of attention seed 0 is done, seed 1 diverged, of convolution both failed."""
    of = factory.study(fractions=[0.1], seeds=2, controls=[{"name": "slow", "recipe": {"learning_rate": 0.0001}}])
    made = StudyFolder("made_up", of, factory.resolved(of), ResultStore(tmp_path / "results" / "made_up"))
    made.store.prepare()
    made.write({})
    for run in made.runs:
        if run.label == "convnet:xs":
            made.store.write_failure(factory.failure(run))
        else:
            reason = "loss is not finite" if run.spec.seed and not run.control else None
            made.store.write(factory.record(run, made.resolved, diverged=reason), None)
    return made


def test_runs_that_are_done_and_of_the_family_are_chosen(folder: StudyFolder) -> None:
    target = Target.named("made_up", folder.store.folder.parent)
    runs, remarks = choose(PROBE, target, None)
    assert [(run.label, run.spec.seed, run.control) for run in runs] == [("token_transformer:xs", 0, "")]
    assert remarks == ["1 of 2 runs are not done, and are left out"]


def test_a_damaged_record_is_told_apart_from_a_run_that_is_not_done(folder: StudyFolder) -> None:
    control = "control=slow"
    chosen, none = choose(PROBE, Target(folder), control)
    path = folder.store.runs / chosen[0].spec.run_id / "record.json"
    path.write_text(path.read_text()[:-40])
    left, remarks = choose(PROBE, Target(folder), control)
    assert (len(chosen), none, len(left)) == (2, [], 1)
    assert remarks == ["1 of 2 runs have damaged records (vitbench verify names them), and are left out"]


def test_a_control_is_looked_at_where_it_is_named(folder: StudyFolder) -> None:
    runs, _ = choose(PROBE, Target(folder), "control=slow")
    assert {run.control for run in runs} == {"slow"}
    assert len(runs) == 2


def test_a_selection_of_another_family_says_what_there_is(folder: StudyFolder) -> None:
    with pytest.raises(ProbeError, match=r"looks at attention models; study 'made_up' has convnet:xs \(convolution\)"):
        choose(PROBE, Target(folder), "model=convnet:xs")
    with pytest.raises(BadSelection, match="seed=7: this study has 0, 1"):
        choose(PROBE, Target(folder), "seed=7")


def test_a_study_without_a_run_that_is_done_is_refused(folder: StudyFolder) -> None:
    with pytest.raises(ProbeError, match=r"none of the 1 runs .* is done; `vitbench run made_up`"):
        choose(PROBE, Target(folder), "model=token_transformer:xs,seed=1,control=none")


def test_a_run_is_named_by_the_first_characters_of_its_id(folder: StudyFolder) -> None:
    results = folder.store.folder.parent
    run_id = next(run.spec.run_id for run in folder.runs if run.label == "token_transformer:xs" and not run.control)
    target = Target.named(run_id[:8], results)
    assert target.run_id == run_id
    assert [run.spec.run_id for run in choose(PROBE, target, None)[0]] == [run_id]
    other = next(run.spec.run_id for run in folder.runs if run.label == "convnet:xs")
    with pytest.raises(ProbeError, match=r"looks at attention models; this run is of convnet:xs \(convolution\)"):
        choose(PROBE, Target.named(other, results), None)


def test_an_id_that_fits_none_or_several_runs_is_refused_with_them(folder: StudyFolder) -> None:
    results = folder.store.folder.parent
    with pytest.raises(ProbeError, match=r"'abcdef0123' is no study in .*, and 0 runs there begin with it"):
        Target.named("abcdef0123", results)
    twins = [folder.store.runs / f"beef{number}00000000000" for number in (0, 1)]
    for twin in twins:
        twin.mkdir()
    both = ", ".join(f"made_up/{twin.name}" for twin in twins)
    with pytest.raises(ProbeError, match=f"2 runs there begin with it: {both}"):
        Target.named("beef", results)


def test_a_name_of_nothing_is_told_the_nearest_study(folder: StudyFolder) -> None:
    with pytest.raises(BadStudy, match="Did you mean 'made_up'"):
        Target.named("made_op", folder.store.folder.parent)
