"""A study's results folder at rest."""

from pathlib import Path

import pytest

from tests.report.factory import resolved, study
from vitbench.config import BadStudy
from vitbench.record import Execution
from vitbench.registry import plugin_sha256
from vitbench.store import ResultStore, StoreError
from vitbench.study.folder import StudyFolder
from vitbench.study.place import Machine, choose_place


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    made = StudyFolder("quick", study(), resolved(study()), ResultStore(tmp_path / "quick"))
    made.store.prepare()
    assert made.write({}) == []
    return made


def test_a_study_comes_back_as_it_was_written(folder: StudyFolder, tmp_path: Path) -> None:
    opened = StudyFolder.open("quick", tmp_path)
    assert opened.study == folder.study
    assert opened.resolved == folder.resolved
    assert [r.spec.run_id for r in opened.runs] == [r.spec.run_id for r in folder.runs]


def test_what_changed_is_named_and_the_earlier_study_is_kept(folder: StudyFolder, tmp_path: Path) -> None:
    other = study(seeds=4)
    changes = StudyFolder("quick", other, resolved(other), folder.store).write({})
    assert changes == ["seeds: [0, 1, 2] -> [0, 1, 2, 3]"]
    assert len(list((tmp_path / "quick" / "earlier").iterdir())) == 1


def test_a_change_is_named_by_its_dotted_key_and_a_model_by_its_label(folder: StudyFolder) -> None:
    models = ["token_transformer:xs", {"name": "convnet", "size": "xs", "recipe": {"learning_rate": 0.1}}, "linear"]
    other = study(models=models, recipe={"batch_size": 8})
    changes = StudyFolder("quick", other, resolved(other), folder.store).write({})
    assert "recipe.batch_size: 64 -> 8" in changes
    assert "models.convnet:xs.recipe.learning_rate: null -> 0.1" in changes
    assert all(change.startswith(("recipe.", "models.")) for change in changes)


@pytest.mark.parametrize("text", [b"x: [", b"\xff\xfe", b"- 1", b""])
def test_a_damaged_study_file_is_written_anew_and_kept(folder: StudyFolder, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "quick" / "study.yaml").write_bytes(text)
    with pytest.raises(BadStudy):
        StudyFolder.open("quick", tmp_path)
    assert folder.write({}) != []
    assert StudyFolder.open("quick", tmp_path).study == folder.study
    assert [p.read_bytes() for p in (tmp_path / "quick" / "earlier").iterdir()] == [text]


def test_results_stay_readable_where_a_model_is_gone(folder: StudyFolder, tmp_path: Path) -> None:
    path = tmp_path / "quick" / "study.yaml"
    path.write_text(path.read_text().replace("name: convnet", "name: convnet_of_old"))
    assert len(StudyFolder.open("quick", tmp_path).runs) == len(folder.runs)


def test_a_study_keeps_the_device_it_was_started_on(folder: StudyFolder) -> None:
    cpu, gpu = Machine(cuda=None), Machine(cuda="Some GPU")
    assert choose_place(folder.store, "auto", cpu, "1").device == "cpu"
    assert choose_place(folder.store, "auto", gpu, "1").device == "cpu"
    with pytest.raises(StoreError, match="was started on cpu"):
        choose_place(folder.store, "cuda", gpu, "1")


def test_a_new_study_takes_the_gpu_where_there_is_one(folder: StudyFolder, tmp_path: Path) -> None:
    place = choose_place(folder.store, "auto", Machine(cuda="Some GPU"), "1")
    assert place.device == "cuda"
    assert Execution.model_validate_json((tmp_path / "quick" / "execution.json").read_text()) == place
    assert "Some GPU" in (tmp_path / "quick" / "environments" / f"{place.environment}.json").read_text()


def test_a_device_that_is_not_here_is_refused(folder: StudyFolder) -> None:
    with pytest.raises(StoreError, match="cuda is not usable here"):
        choose_place(folder.store, "cuda", Machine(cuda=None), "1")


def test_a_plug_in_is_kept_byte_by_byte_for_its_hash_is_part_of_run_ids(folder: StudyFolder, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_bytes(b"# -*- coding: latin-1 -*-\r\n# \xe9\r\n")
    names = folder.resolved.model_copy(update={"plugins": {"mine": plugin_sha256(plugin)}})
    made = StudyFolder("quick", folder.study, names, folder.store)
    made.write({"mine": plugin})
    assert (tmp_path / "quick" / "plugins" / "mine.py").read_bytes() == plugin.read_bytes()
    plugin.write_text("# edited since")
    with pytest.raises(StoreError, match=r"mine\.py changed"):
        made.write({"mine": plugin})


def _with_seeds(folder: StudyFolder, seeds: int, **values: object) -> StudyFolder:
    of = study(seeds=seeds, **values)
    made = StudyFolder("quick", of, resolved(of), folder.store)
    made.write({})
    return made


def test_seeds_changed_without_a_declared_look_make_verdicts_exploratory_for_good(folder: StudyFolder) -> None:
    assert folder.exploratory() is None
    more = study(seeds=6)
    planned = StudyFolder("quick", more, resolved(more), folder.store)
    assert "(3, 6 of them)" in str(planned.exploratory())  # told before it is done
    for seeds in (6, 3, 6):  # seeds that are taken away again were looked at all the same
        assert _with_seeds(folder, seeds).exploratory() is not None


def test_seeds_added_at_a_declared_look_do_not(tmp_path: Path) -> None:
    of = study(seeds=6, looks=[6, 8])
    first = StudyFolder("quick", of, resolved(of), ResultStore(tmp_path / "looked"))
    first.store.prepare()
    first.write({})
    assert _with_seeds(first, 8, looks=[6, 8]).exploratory() is None
    other = study(seeds=[10, 11, 12, 13, 14, 15], looks=[6, 8])  # as many, but others: drawn until they please
    assert StudyFolder("quick", other, resolved(other), first.store).exploratory() is not None
    assert _with_seeds(first, 8, looks=[6, 7, 8]).exploratory() is not None  # a look declared after looking


def test_a_key_of_another_version_is_not_passed_over(folder: StudyFolder, tmp_path: Path) -> None:
    path = tmp_path / "quick" / "study.yaml"
    path.write_text(path.read_text() + "glances: [3]\n")
    with pytest.raises(BadStudy, match="glances: unknown key"):
        StudyFolder.open("quick", tmp_path)
