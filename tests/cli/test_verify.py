"""`verify` on runs that were trained: clean as written, and forgeries that only training again can tell."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.driver import vitbench, write_study
from tests.made_study import made_study, replace_record, with_predictions, write_table
from vitbench import registry
from vitbench.cli.commands import output
from vitbench.cli.verify import Again, NotAllChecked, verify_study
from vitbench.datasets import DatasetError, load
from vitbench.environment import environment_id
from vitbench.models import MODELS
from vitbench.record import RunRecord
from vitbench.registry import PluginError
from vitbench.spec import RunSpec
from vitbench.study import labelled
from vitbench.study.findings import Stored
from vitbench.study.folder import StudyFolder
from vitbench.study.rerun import draw


@pytest.fixture
def verified(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[str]]]:
    """In this process, whose fork server imports torch once: exit status, and the lines that were printed."""
    def call(results: Path, rerun: int = 0, seed: int = 0, *, allow_plugins: bool = False) -> tuple[int, list[str]]:
        capsys.readouterr()
        folder = StudyFolder.open("tiny", results)
        status = verify_study(output(), folder, Again(rerun, seed, 2), allow_plugins=allow_plugins)
        return status, capsys.readouterr().out.splitlines()

    return call


Verified = Callable[..., tuple[int, list[str]]]
KINDS = ["records", "environments", "datasets", "subsets", "index files", "predictions", "metrics", "table"]


def test_a_finished_study_is_clean_and_its_runs_come_out_the_same_bit_for_bit(copy: Path) -> None:
    def state() -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in (copy / "results" / "tiny").rglob("*") if p.is_file()}

    before = state()
    ended = vitbench("verify", "tiny", "--rerun", 3, "--seed", 5, cwd=copy)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert state() == before
    lines = ended.stdout.splitlines()
    assert lines[0] == "study tiny: 8 of 8 runs ended, 0 others are in its store"
    assert [line[6:19].strip() for line in lines if line[:6].strip() in ("ok", "-", "FAULT")] == [*KINDS, "reruns"]
    assert sum("agrees, compared exactly: curves, final metrics and logits are the same" in line for line in lines) == 3
    (drawn,) = (line for line in lines if line.startswith("3 runs drawn with seed 5: "))
    assert drawn.partition(": ")[2].split(", ") == [
        run.spec.run_id for run in draw(Stored.of(StudyFolder.open("tiny", copy / "results")), 3, 5)[0]]
    assert lines[-1] == "no fault was found in what was checked"


def test_the_draw_follows_from_its_seed(copy: Path) -> None:
    stored = Stored.of(StudyFolder.open("tiny", copy / "results"))

    def ids(count: int, seed: int) -> list[str]:
        return [run.spec.run_id for run in draw(stored, count, seed)[0]]

    assert ids(3, 0) == ids(3, 0)
    assert len({tuple(ids(3, seed)) for seed in range(20)}) > 10
    assert sorted(ids(99, 0)) == sorted(stored.records)
    assert draw(stored, 0, 0)[0] == []


def forged(folder: StudyFolder) -> str:
    """A run whose accuracy, logits, hits and all hashes were forged to fit, and the table with them."""
    run_id, record = next(iter(Stored.of(folder).predicted.items()))
    better = (8 * np.eye(10)[load("digits").test_labels]).astype(np.float16)
    replace_record(folder, run_id, with_predictions(record, better), better)
    write_table(folder)
    return run_id


def test_a_forgery_that_fits_in_every_file_is_caught_by_training_again(copy: Path, verified: Verified) -> None:
    run_id = forged(StudyFolder.open("tiny", copy / "results"))
    assert verified(copy / "results")[0] == 0  # nothing in the folder contradicts it
    status, lines = verified(copy / "results", 8)
    assert status == 1
    (fault,) = (line for line in lines if "trained again it differs" in line)
    for words in (f"run {run_id}:", "final.test_accuracy 1.0, now 0.", "logits", "move its folder out of runs/"):
        assert words in fault
    assert lines[-1] == "1 faults"


def elsewhere(folder: StudyFolder) -> None:
    """All records as if another machine had made them."""
    environments = folder.store.folder / "environments"
    (path,) = environments.iterdir()
    other = json.loads(path.read_text()) | {"processor": "of another kind"}
    name = environment_id(other)
    (environments / f"{name}.json").write_text(json.dumps(other))
    for run_id, record in Stored.of(folder).records.items():
        place = record.execution.model_copy(update={"environment": name})
        replace_record(folder, run_id, record.model_copy(update={"execution": place}))
    write_table(folder)


def test_records_of_another_machine_are_held_to_a_tolerance_and_a_forgery_there_is_caught(copy: Path,
                                                                                          verified: Verified) -> None:
    folder = StudyFolder.open("tiny", copy / "results")
    elsewhere(folder)
    run_id = forged(folder)
    status, lines = verified(copy / "results", 8)
    assert status == 1
    assert sum("within the tolerance of another machine" in line for line in lines) == 9  # eight, and the fault
    agree = [line for line in lines if "agrees" in line]
    assert len(agree) == 7
    assert all("losses up to step 10 differ by 0 of themselves at most, final test accuracy by 0.0000" in line
               for line in agree)
    assert any(f"run {run_id}: DIFFERS" in line for line in lines)


def test_a_swapped_seed_is_caught_where_the_subset_cannot_tell(copy: Path, verified: Verified) -> None:
    """At full data all seeds draw the same images."""
    whole = ("tiny.yaml", "fractions=[1]", "models=[linear]")
    assert vitbench("run", *whole, "-q", cwd=copy).returncode == 0
    folder = StudyFolder.open("tiny", copy / "results")
    one, other = (Stored.of(folder).records[run.spec.run_id] for run in folder.runs)
    logits_IC = folder.store.logits_IC(one)
    replace_record(folder, other.run_id, one.model_copy(update={"spec": other.spec, "run_id": other.run_id}), logits_IC)
    write_table(folder)
    assert verified(copy / "results")[0] == 0
    status, lines = verified(copy / "results", 2)
    assert status == 1
    (fault,) = (line for line in lines if "trained again it differs" in line)
    assert f"run {other.run_id}: " in fault


UNSTABLE = """\
from vitbench.models import MODELS, ModelMeta

@MODELS.add("unstable", ModelMeta("control"))
def unstable(image, num_classes):
    from torch import nn

    class Unstable(nn.Linear):
        def forward(self, images):
            if self.training and not images.is_meta and len(images) == 30:
                raise RuntimeError("no such layer")
            return super().forward(images.flatten(1)) * 1e30

    return Unstable(64, num_classes)
"""


def test_runs_that_diverged_and_failed_do_so_again_and_plug_ins_only_run_when_allowed(
        tmp_path: Path, verified: Verified, monkeypatch: pytest.MonkeyPatch) -> None:
    """Share .02 has 30 training images, all of them in a batch: see UNSTABLE."""
    monkeypatch.setattr(MODELS, "_entries", dict(MODELS._entries))  # the plug-in stays in this test
    monkeypatch.setattr(registry, "_LOADED", dict(registry._LOADED))
    (tmp_path / "unstable.py").write_text(UNSTABLE)
    write_study(tmp_path)
    made = vitbench("run", "tiny.yaml", "models=[unstable]", "plugins=[unstable.py]", "fractions=[0.02,0.1]",
                    "seeds=1", "recipe.batch_size=200", "-q", cwd=tmp_path)
    assert made.returncode == 1, made.stderr
    results = tmp_path / "results"
    outcomes = [json.loads(p.read_text()).get("outcome", p.stem) for p in results.glob("tiny/runs/*/*.json")]
    assert sorted(outcomes) == ["diverged", "failure"]
    refused = vitbench("verify", "tiny", "--rerun", 2, cwd=tmp_path)
    assert refused.returncode == 2
    assert "then add --allow-plugins" in refused.stderr
    status, lines = verified(results, 2, allow_plugins=True)
    assert status == 0, lines
    assert "ok    plug-ins     1 checked" in lines
    assert sum("agrees, compared exactly" in line for line in lines) == 1
    assert sum("agrees" in line and "failed again" in line for line in lines) == 1
    (results / "tiny" / "plugins" / "unstable.py").write_text(UNSTABLE + "# edited\n")
    status, lines = verified(results)
    assert status == 1
    assert any("plugins/unstable.py: is not the file that runs name" in line for line in lines)
    with pytest.raises(PluginError, match="is not the plug-in that the study's runs name"):
        verified(results, 2, allow_plugins=True)


@pytest.mark.parametrize(("arguments", "message"), [
    (("tin",), "no results in results; there are: tiny. Did you mean 'tiny'?"), ((), "Missing argument 'STUDY'"),
    (("tiny", "--rerun", "-1"), "--rerun"), (("tiny", "--seed", "x"), "--seed"),
])
def test_bad_input_is_one_message_and_status_2(copy: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = vitbench("verify", *arguments, cwd=copy)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_fault_is_printed_with_what_to_do_and_gives_status_1(copy: Path) -> None:
    victim = next((copy / "results" / "tiny" / "runs").iterdir())
    (victim / "record.json").write_text("garbage")
    ended = vitbench("verify", "tiny", cwd=copy)
    assert ended.returncode == 1
    assert f"      run {victim.name}: not a whole record; move its folder out of runs/ and `vitbench run tiny`" in \
        ended.stdout
    assert "FAULT records      8 checked, 1 faults" in ended.stdout


def test_a_study_is_not_called_clean_without_its_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    def nowhere(name: str) -> None:
        raise DatasetError(f"dataset {name!r} is nowhere")

    folder = made_study(tmp_path / "made", seeds=1)
    monkeypatch.setattr(labelled, "load", nowhere)
    with pytest.raises(NotAllChecked, match="not all of datasets, subsets, index files, predictions could be checked"):
        verify_study(output(), folder, Again(0, 0, None), allow_plugins=False)
    assert "-     subsets      0 checked, 6 not checked" in capsys.readouterr().out
    shutil.rmtree(next(folder.store.folder.glob("environments")))
    assert verify_study(output(), folder, Again(0, 0, None), allow_plugins=False) == 1  # a fault comes first


def test_a_run_of_other_numerics_is_not_trained_again(tmp_path: Path) -> None:
    folder = made_study(tmp_path / "made", models=["linear"], fractions=[0.1])
    stored = Stored.of(folder)
    ids = sorted(stored.records)
    record = stored.records[ids[0]]
    assert isinstance(record, RunRecord)
    old = RunSpec.model_validate(record.spec.model_dump() | {"model": "linear@7"})
    run = next(run for run in folder.runs if run.spec.run_id == ids[0])
    folder.__dict__["runs"] = [replace(run, spec=old), *(r for r in folder.runs if r is not run)]
    stored.found[old.run_id] = record
    runs, check = draw(stored, 9, 0)
    assert [r.spec.run_id for r in runs] == ids[1:]
    assert check.unchecked == {"computed with linear@7; this version has linear@1": [f"run {old.run_id}"]}
