"""What goes and what stays."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.metrics.test_kept import a_value
from tests.report.factory import failure, record, resolved, study
from vitbench import measurement
from vitbench.grid import Run
from vitbench.metrics import kept
from vitbench.record import RunRecord
from vitbench.registry import plugin_sha256
from vitbench.spec import RunSpec, canonical_json, sha256_json
from vitbench.store import ResultStore, StoreError
from vitbench.study import prune
from vitbench.study.folder import StudyFolder
from vitbench.study.prune import leftovers

SUBSET, ENVIRONMENT = "a" * 64, "e" * 16  # what the factory's records name


def made(of: object, tmp_path: Path, plugins: dict[str, str] | None = None) -> StudyFolder:
    names = resolved(of).model_copy(update={"plugins": plugins or {}})
    return StudyFolder("quick", of, names, ResultStore(tmp_path / "quick"))


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    """A study of two seeds over one that had three: twelve runs, eight of them the study's."""
    whole = made(study(), tmp_path)
    whole.store.prepare()
    whole.write({})
    logits = np.zeros((360, 10), dtype=np.float16)
    for run in whole.runs:
        whole.store.write(record(run, whole.resolved), logits)
    for kind, name in (("subsets", SUBSET), ("environments", ENVIRONMENT)):
        (whole.store.folder / kind).mkdir()
        (whole.store.folder / kind / f"{name}.json").write_text("{}")
    of = study(seeds=2)
    folder = made(of, tmp_path)
    folder.write({})
    return folder


def kinds(folder: StudyFolder, *, logits: bool = False) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in leftovers(folder, logits=logits)[0]:
        found[each.kind] = found.get(each.kind, 0) + 1
    return found


def remove_all(folder: StudyFolder, *, logits: bool = False) -> None:
    for each in leftovers(folder, logits=logits)[0]:
        each.remove()


def rewrite(folder: StudyFolder, run_id: str, /, **changes: object) -> None:
    """A whole record with other content, as another version would have written it."""
    path = folder.store.runs / run_id / "record.json"
    content = json.loads(path.read_text()) | changes
    del content["sha256"]
    path.write_text(canonical_json({**content, "sha256": sha256_json(content)}))


def test_runs_of_an_earlier_form_go_and_those_of_the_study_stay_bit_for_bit(folder: StudyFolder) -> None:
    ids = {run.spec.run_id for run in folder.runs}
    before = {i: (folder.store.runs / i / "record.json").read_bytes() for i in ids}
    assert kinds(folder) == {"runs of an earlier form": 4}
    assert sum(each.bytes for each in leftovers(folder, logits=False)[0]) > 4 * 7200  # the logits count
    remove_all(folder)
    assert folder.store.ids() == ids
    assert {i: (folder.store.runs / i / "record.json").read_bytes() for i in ids} == before
    assert all((folder.store.runs / i / "logits.npy").exists() for i in ids)
    assert {p.name for p in folder.store.runs.iterdir()} == ids
    assert kinds(folder) == {}
    assert (folder.store.folder / "subsets" / f"{SUBSET}.json").exists()


def test_logits_of_the_study_go_only_when_asked(folder: StudyFolder) -> None:
    assert kinds(folder, logits=True) == {"runs of an earlier form": 4, "logits": 8}
    remove_all(folder, logits=True)
    assert len(folder.store.ids()) == 8
    assert not list(folder.store.runs.glob("*/logits.npy"))
    assert all(folder.store.read(i).run_id == i for i in folder.store.ids())


def test_a_record_of_another_version_is_kept_and_named(folder: StudyFolder) -> None:
    schema, numerics, regime, *_ = sorted(folder.orphans())
    rewrite(folder, schema, schema_number=2)
    ids = []
    for run_id, change in ((numerics, {"numerics": 0}), (regime, {"regime": "light", "regime_version": 7})):
        spec = RunSpec.model_validate(folder.store.read(run_id).spec.model_dump() | change)
        (folder.store.runs / run_id).rename(folder.store.runs / spec.run_id)
        rewrite(folder, spec.run_id, spec=spec.model_dump(mode="json"), run_id=spec.run_id)
        ids.append(spec.run_id)
    found, kept = leftovers(folder, logits=True)
    assert {schema, *ids}.isdisjoint(each.path.name for each in found)
    assert sum(each.kind == "runs of an earlier form" for each in found) == 1
    assert len(kept) == 3
    assert any(schema in line and "another version" in line for line in kept)
    assert any(f"run {ids[0]} was computed with numerics 0" in line for line in kept)
    assert any(f"run {ids[1]} was computed with version 7 of the regime light; this version's is 1" in line
               for line in kept)


def test_what_a_kept_record_of_another_version_names_stays(folder: StudyFolder) -> None:
    old = min(folder.orphans())
    data = json.loads((folder.store.runs / old / "record.json").read_text())["data"] | {"subset": "c" * 64}
    rewrite(folder, old, schema_number=2, data=data)
    for name in ("c" * 64, "d" * 64):
        (folder.store.folder / "subsets" / f"{name}.json").write_text("{}")
    paths = [each.path.stem for each in leftovers(folder, logits=False)[0] if each.kind == "subsets of no run"]
    assert paths == ["d" * 64]


def test_a_damaged_orphan_and_a_failed_one_go_but_no_damaged_run_of_the_study(folder: StudyFolder) -> None:
    damaged, failed, *_ = sorted(folder.orphans())
    own = folder.runs[0].spec.run_id
    for run_id in (damaged, own):
        (folder.store.runs / run_id / "record.json").write_text("garbage")
    shutil.rmtree(folder.store.runs / failed)
    runs = {run.spec.run_id: run for run in made(study(), folder.store.folder.parent).runs}
    folder.store.write_failure(failure(runs[failed]))
    remove_all(folder)
    assert not {damaged, failed} & folder.store.ids()
    assert (folder.store.runs / own / "record.json").read_text() == "garbage"


def test_what_was_set_aside_half_written_or_lost_is_found(folder: StudyFolder) -> None:
    home = folder.store.folder
    folder.store.set_aside(folder.runs[0].spec.run_id, "replaced")
    folder.store.set_aside(folder.runs[1].spec.run_id, "damaged")
    (home / "runs" / ".0123456789abcdef.77").mkdir()
    (home / "tuning").mkdir()
    old, search = home / ".table.md.77", home / "tuning" / f".{'d' * 16}.json.77"
    for path in (old, search, home / ".report.html.78", home / "subsets" / f"{'c' * 64}.json",
                 home / "subsets" / "mine.txt"):
        path.write_text("x")
    os.utime(old, (0, 0))
    os.utime(search, (0, 0))
    (home / "live").mkdir()
    (home / "live" / "0123456789abcdef.json").write_text("{}")
    assert kinds(folder) == {"runs of an earlier form": 4, "replaced runs": 1, "damaged records": 1, "half-written": 3,
                             "live files": 1, "subsets of no run": 1}
    remove_all(folder)
    assert kinds(folder) == {}
    assert (home / ".report.html.78").exists()  # `report` may be writing it now
    assert (home / "subsets" / "mine.txt").exists()
    assert StudyFolder.open("quick", home.parent).study == folder.study


def test_metrics_go_only_where_they_are_of_other_predictions(folder: StudyFolder) -> None:
    own, other, damaged = (run.spec.run_id for run in folder.runs[:3])
    for run_id, predictions in ((own, "1" * 64), (other, "2" * 64), (damaged, "1" * 64)):
        rewrite(folder, run_id, predictions_sha256="1" * 64)
        kept.write(folder.store.runs / run_id, a_value(predictions_sha256=predictions))
    (folder.store.runs / damaged / "record.json").write_text("garbage")  # may be put back
    half = folder.store.runs / own / "metrics" / ".balanced_accuracy.json.77"
    for path in (half, half.with_name(".calibration_error.json.78")):
        path.write_text("{")
    os.utime(half, (0, 0))
    assert kinds(folder) == {"runs of an earlier form": 4, "metrics of no predictions": 1, "half-written": 1}
    remove_all(folder)
    assert [path.name for path in sorted((folder.store.runs / own / "metrics").iterdir())] == [
        ".calibration_error.json.78", "balanced_accuracy.json"]  # `metrics add` may be writing it now
    assert list(kept.files(folder.store.runs / other)) == []
    assert len(list(kept.files(folder.store.runs / damaged))) == 1


def test_a_plug_in_stays_while_the_study_or_a_record_names_it(folder: StudyFolder, tmp_path: Path) -> None:
    for name in ("used", "gone", "of_a_record"):
        (tmp_path / f"{name}.py").write_text(f"# {name}")
    with_plugin = made(folder.study.model_copy(update={"plugins": ("plugins/used.py",)}), tmp_path,
                       {"used": plugin_sha256(tmp_path / "used.py")})
    with_plugin.write({"used": tmp_path / "used.py"})
    for name in ("gone", "of_a_record"):
        shutil.copy(tmp_path / f"{name}.py", folder.store.folder / "plugins")
    own = folder.runs[0].spec.run_id
    rewrite(folder, own, reason=plugin_sha256(tmp_path / "of_a_record.py"))
    names = [each.path.name for each in leftovers(with_plugin, logits=False)[0] if each.kind == "plug-ins of no run"]
    assert names == ["gone.py"]


def test_a_kill_in_the_middle_leaves_a_readable_folder(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between any two removals of files, every run that is still seen is whole."""
    for _ in range(4):
        found = leftovers(folder, logits=False)[0]
        assert found[0].kind == "runs of an earlier form"

        def killed(path: Path) -> None:
            next(path.iterdir()).unlink()
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(prune.shutil, "rmtree", killed)
            with pytest.raises(KeyboardInterrupt):
                found[0].remove()
        assert all(folder.store.read(i).run_id == i for i in folder.store.ids())
    assert kinds(folder).keys() == {"half-written"}
    remove_all(folder)
    assert kinds(folder) == {}


def test_tuned_runs_stay_while_their_search_has_not_ended(folder: StudyFolder, tmp_path: Path) -> None:
    """More trials were asked for: the best one may be the one of before."""
    of = study(seeds=2, tuning={"space": {"learning_rate": [0.01, 0.02]}, "trials": 2, "only": "fraction=1"})
    tuning = made(of, tmp_path)
    first, *_ = (run for run in tuning.runs if run.pending)
    of_before = RunSpec.model_validate(first.spec.model_dump() | {"recipe": {"learning_rate": 0.01}})
    tuning.store.write(record(replace(first, spec=of_before), tuning.resolved), None)
    assert kinds(tuning) == {"runs of an earlier form": 4}
    assert leftovers(tuning, logits=False)[1] == [f"run {of_before.run_id} may be of a cell whose search has not ended"]
    assert kinds(folder) == {"runs of an earlier form": 5}  # of the study without tuning


def test_a_link_goes_and_what_it_points_to_stays(folder: StudyFolder, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (folder.store.folder / "replaced").mkdir()
    (folder.store.folder / "replaced" / "link").symlink_to(tmp_path / "precious")
    (folder.store.folder / "damaged").symlink_to(tmp_path / "precious")
    remove_all(folder)
    assert (tmp_path / "precious" / "file").exists()
    assert list((folder.store.folder / "replaced").iterdir()) == []


@pytest.mark.parametrize("linked", ["runs", "one run"])
def test_nothing_is_pruned_behind_a_link(folder: StudyFolder, tmp_path: Path, linked: str) -> None:
    runs = folder.store.runs
    path = runs if linked == "runs" else next(runs.iterdir())
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link"):
        leftovers(folder, logits=True)


def test_a_pipe_among_live_files_is_removed_not_waited_for(folder: StudyFolder) -> None:
    (folder.store.folder / "live").mkdir()
    os.mkfifo(folder.store.folder / "live" / "p")
    remove_all(folder)
    assert list((folder.store.folder / "live").iterdir()) == []


def measured(folder: StudyFolder, runs: list[Run]) -> Path:
    """A measurement on records of the folder, with its figure."""
    records = [ended for run in runs if isinstance(ended := folder.store.read(run.spec.run_id), RunRecord)]
    content = measurement.Measurement(
        probe="made", version=1, statement="s", source="s", options={}, study=folder.name, columns=(), rows=(),
        run_ids=tuple(sorted(record.run_id for record in records)), summary="s", figure={}, code_version="0",
        records_sha256=measurement.records_hash(records))
    path = folder.store.folder / "probes" / "made" / f"{content.key}.json"
    measurement.write(path, content)
    path.with_suffix(".svg").write_text("<svg/>")
    return path


def test_what_a_probe_found_goes_when_its_runs_are_others(folder: StudyFolder) -> None:
    remove_all(folder)
    stays, goes = measured(folder, folder.runs[:2]), measured(folder, folder.runs[2:3])
    assert kinds(folder) == {}
    run_id = folder.runs[2].spec.run_id
    again = record(folder.runs[2], folder.resolved, test_accuracy=0.123)
    (folder.store.runs / run_id / "record.json").write_text(again.to_json())
    assert kinds(folder) == {"measurements of other records": 2}
    remove_all(folder)
    assert sorted(path.name for path in stays.parent.iterdir()) == sorted([stays.name, f"{stays.stem}.svg"])
    assert not goes.exists()
    stays.write_text("{")
    assert kinds(folder) == {"measurements of other records": 2}


def test_weights_go_only_where_that_is_asked(folder: StudyFolder) -> None:
    remove_all(folder)
    path = folder.store.runs / folder.runs[0].spec.run_id / "weights.safetensors"
    path.write_bytes(b"weights")
    assert kinds(folder) == {}
    assert [each.path for each in leftovers(folder, logits=False, weights=True)[0]] == [path]
