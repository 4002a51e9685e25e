"""Commands that read, and what they say to bad input; no worker is started."""

import json
from pathlib import Path

import pytest

from tests.cli.driver import vitbench
from tests.report.factory import record, resolved, study
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder with a study of twelve synthetic runs."""
    of = study()
    folder = StudyFolder("quick", of, resolved(of), ResultStore(tmp_path / "results" / "quick"))
    folder.store.prepare()
    folder.write({})
    for run in folder.runs:
        folder.store.write(record(run, folder.resolved), None)
    return tmp_path


@pytest.mark.parametrize("form", ["md", "csv", "json", "html"])
def test_the_table_comes_in_every_form_and_twice_the_same(results: Path, form: str) -> None:
    first, second = (vitbench("tables", "quick", "--format", form, cwd=results) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert "convnet:xs" in first.stdout


def test_the_frame_and_the_page_are_written_where_asked(results: Path) -> None:
    for form in ("csv", "json", "parquet"):
        ended = vitbench("export", "quick", "--format", form, "-o", f"frame.{form}", cwd=results)
        assert ended.returncode == 0, ended.stderr
        assert (results / f"frame.{form}").stat().st_size > 0
    ended = vitbench("report", "quick", cwd=results)
    assert ended.returncode == 0, ended.stderr
    assert (results / ended.stdout.strip()).exists()


@pytest.mark.parametrize(("arguments", "message"), [
    (("tables", "quick", "--format", "markdown"), "--format: should be one of md, csv, json, html; found 'markdown'"),
    (("tables", "quik"), "quik: no results in results; there are: quick"),
    (("export", "quick", "--format", "json", "-o", "no/such/folder"), "--output: cannot write no/such/folder"),
    (("logs", "zzzz"), "0 runs in results begin with this id"),
    (("list", "model"), "Did you mean 'models'?"),
    (("run", "nothing"), "no such study; known here: quick"),
    (("run", "quick", "--time-limit", "soon"), "--time-limit: should be a time like 2h"),
    (("run", "quick", "--only", "modle=x"), "Did you mean 'model'?"),
    (("run", "quick", "seeds"), "write key=value"),
    (("show", "modle", "x"), "KIND: should be one of model; found 'modle'. Did you mean 'model'?"),
    (("show", "model", "convent"), "Did you mean 'convnet'?"),
    (("show", "model", "convnet:huge"), "size: 'convnet' comes in xs, s, m, l, xl; found 'huge'"),
    (("show", "model", "convnet:s", "widht=3"), "Did you mean 'width'?"),
    (("show", "model", "convnet:s", "width"), "write key=value"),
    (("show", "model", "convnet:s", "--dataset", "digit"), "Did you mean 'digits'?"),
    (("show", "model", "timm/resnet19"), "Did you mean 'resnet18'"),
    (("show", "model", "mine", "--plugin", "nowhere.py"), "nowhere.py: cannot read this plug-in"),
    (("plan",), "Missing argument 'STUDY'"),
    (("rn",), "No such command 'rn'"),
])
def test_bad_input_is_one_message_and_status_2(results: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = vitbench(*arguments, cwd=results)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_models_card_comes_for_each_size_or_for_one(tmp_path: Path) -> None:
    every = vitbench("show", "model", "resnet", cwd=tmp_path)
    assert every.returncode == 0, every.stderr
    assert "resnet@1, convolution, for digits@1: 8 x 8 x 1, 10 classes" in every.stdout
    assert "size xs s m l xl" in " ".join(every.stdout.split())
    (one,) = json.loads(vitbench("show", "model", "resnet:s", "width=16", "--json", cwd=tmp_path).stdout)
    assert one["options"] == {"width": 16, "blocks_per_stage": 3}
    assert one["parameters"] == 269_434  # ResNet-20 with one channel: 2 x 9 x 16 fewer than with three
    assert one["card"]["normalisation"] == "BatchNorm"


def test_a_timm_models_card_tells_its_stem(tmp_path: Path) -> None:
    shown = vitbench("show", "model", "timm/resnet18", "--dataset", "digits", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for line in ("stem: 7x7 convolution", "stride: 1", "places at the end: 1", "option stem: auto"):
        assert line in shown.stdout.splitlines()
    assert "timm/<name>" in vitbench("list", "models", cwd=tmp_path).stdout


def test_a_plug_in_of_the_wrong_shape_is_told_its_shape(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from vitbench.models import MODELS, ModelMeta\n"
                                      "@MODELS.add('mine', ModelMeta('control'))\n"
                                      "def mine(image, num_classes):\n"
                                      "    from torch import nn\n"
                                      "    return nn.Flatten()\n")
    shown = vitbench("show", "model", "mine", "--plugin", "mine.py", cwd=tmp_path)
    assert shown.returncode == 2
    assert "'mine' in training should map 2 images to logits of shape (2, 10), images x classes; found (2, 64)" in \
        shown.stderr


def test_a_damaged_record_is_named_and_counts_as_missing(results: Path) -> None:
    victim = next((results / "results" / "quick" / "runs").iterdir())
    (victim / "record.json").write_text("garbage")
    table = vitbench("tables", "quick", cwd=results).stdout
    assert f"Run {victim.name} counts as missing: its record is damaged" in table
    assert "damaged" in vitbench("logs", victim.name, cwd=results).stderr


def test_what_is_no_run_is_not_counted(results: Path) -> None:
    (results / "results" / "quick" / "runs" / "notes.txt").write_text("mine")
    shown = vitbench("status", "quick", cwd=results)
    assert "earlier form" not in shown.stdout
    assert shown.stdout.splitlines()[-1].split() == ["all", "12", "12", "0", "0", "0"]


def test_a_run_under_two_labels_is_planned_once(tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text("question: Once?\ndataset: digits\nfractions: [0.1]\nseeds: 6\n"
                                         "models: [linear, {name: linear, label: again}]\n")
    ended = vitbench("plan", "twice.yaml", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    counts = {line.split()[0]: line.split()[1:] for line in ended.stdout.splitlines()}
    assert counts["again"] == counts["all"] == ["6", "0", "0", "0", "6"]
    assert "6 runs stand under a second label; they are done once" in ended.stdout
