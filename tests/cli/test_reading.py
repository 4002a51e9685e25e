"""Commands that read, and what they say to bad input; no worker is started."""

import json
import math
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.driver import vitbench
from tests.report.factory import record, resolved, study
from vitbench.cli.app import tables
from vitbench.live import Progress
from vitbench.report.tables import MixedDevices
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder
from vitbench.units import byte_text


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


@pytest.mark.parametrize("name", ["summary", "budgets"])
def test_no_table_mixes_devices_unless_asked(tmp_path: Path, name: str) -> None:
    of = study(budgets=[{"steps": 300}, {"steps": 600}])
    folder = StudyFolder("mixed", of, resolved(of), ResultStore(tmp_path / "mixed"))
    folder.store.prepare()
    folder.write({})
    for run in folder.runs:
        folder.store.write(record(run, folder.resolved, device=f"device {run.spec.seed}"), None)
    with pytest.raises(MixedDevices, match="device 0, device 1, device 2"):
        tables("mixed", name, "md", mixed_devices=False, results=tmp_path)
    tables("mixed", name, "md", mixed_devices=True, results=tmp_path)


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
    (("run", "nothing"), "no such study; known here: budgets_digits, "),
    (("run", "quick", "--time-limit", "soon"), "--time-limit: should be a time like 2h"),
    (("run", "quick", "--only", "modle=x"), "Did you mean 'model'?"),
    (("run", "quick", "seeds"), "write key=value"),
    (("show", "modle", "x"), "KIND: should be one of model; found 'modle'. Did you mean 'model'?"),
    (("show", "model", "convent"), "Did you mean 'convnet'?"),
    (("show", "model", "convnet:huge"), "size: 'convnet' comes in xs, s, m, l, xl; found 'huge'"),
    (("show", "model", "convnet:s", "widht=3"), "Did you mean 'width'?"),
    (("show", "model", "convnet:s", "width"), "write key=value"),
    (("show", "model", "convnet:s", "--dataset", "digit"), "Did you mean 'digits'?"),
    (("show", "model", "timm/resnet19"), "Did you mean 'timm/resnet18'"),
    (("show", "model", "mine", "--plugin", "nowhere.py"), "nowhere.py: cannot read this plug-in"),
    (("plan",), "Missing argument 'STUDY'"),
    (("prune", "quik"), "quik: no results in results; there are: quick"),
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
    assert one["options"] == {"width": 16, "blocks_per_stage": 3, "normalisation": "batch"}
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


def test_status_as_json_has_stable_keys(results: Path) -> None:
    home = results / "results" / "quick"
    gone, running, *_ = sorted((home / "runs").iterdir())
    shutil.rmtree(gone)
    shutil.rmtree(running)
    (home / "live").mkdir()
    now = Progress(run_id=running.name, step=5, steps=300, train_loss=math.nan, val_loss=None, test_loss=2.25, pid=1,
                   host="h", time=time.time() - 3)
    (home / "live" / f"{running.name}.json").write_text(now.model_dump_json())
    shown = json.loads(vitbench("status", "quick", "--json", cwd=results).stdout)
    (run,) = shown.pop("running")
    seconds, model = run.pop("seconds_since_news"), run.pop("model")
    assert 3 <= seconds < 60
    assert model in shown["models"]
    assert run == {"run_id": running.name, "step": 5, "steps": 300, "train_loss": None, "val_loss": None,
                   "test_loss": 2.25, "lost": False}
    models = shown.pop("models")
    assert shown == {"study": "quick", "earlier_runs": 0, "trials": {"done": 0, "to_do": 0},
                     "totals": {"runs": 12, "done": 10, "running": 1, "failed": 0, "to_do": 1}}
    assert models.keys() == {"token_transformer:xs", "convnet:xs"}
    assert all(model.keys() == shown["totals"].keys() for model in models.values())


@pytest.mark.parametrize("command", ["tables", "report", "export", "status"])
def test_a_file_in_place_of_the_runs_is_no_empty_study(results: Path, command: str) -> None:
    runs = results / "results" / "quick" / "runs"
    shutil.rmtree(runs)
    runs.write_text("")
    ended = vitbench(command, "quick", cwd=results)
    assert ended.returncode == 2
    assert "runs is a file; it should be the folder that holds the study's runs" in ended.stderr


@pytest.mark.parametrize("command", ["tables", "status"])
def test_reading_needs_no_execution_file(results: Path, command: str) -> None:
    (results / "results" / "quick" / "execution.json").write_bytes(b"\xff")
    assert vitbench(command, "quick", cwd=results).returncode == 0


def test_a_run_under_two_labels_is_planned_once(tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text("question: Once?\ndataset: digits\nfractions: [0.1]\nseeds: 6\n"
                                         "models: [linear, {name: linear, label: again}]\n")
    ended = vitbench("plan", "twice.yaml", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    counts = {line.split()[0]: line.split()[1:] for line in ended.stdout.splitlines()}
    assert counts["again"][:4] == counts["all"][:4] == ["6", "0", "0", "6"]
    assert "6 runs stand twice in the study; they are done once" in ended.stdout


def test_prune_shows_first_and_removes_only_with_yes(results: Path) -> None:
    home = results / "results" / "quick"
    study = home / "study.yaml"
    study.write_text(study.read_text().replace("- 0\n- 1\n- 2\n", "- 0\n- 1\n"))
    shown = vitbench("prune", cwd=results)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[1].split()[:7] == ["quick", "runs", "of", "an", "earlier", "form", "4"]
    assert shown.stdout.splitlines()[-1].startswith("could go: 4 items, ")
    assert len(list((home / "runs").iterdir())) == 12
    (gone,) = vitbench("prune", "quick", "--yes", "-q", cwd=results).stdout.splitlines()
    assert gone == shown.stdout.splitlines()[-1].replace("could go", "gone").partition(";")[0]
    assert len(list((home / "runs").iterdir())) == 8
    assert vitbench("prune", "quick", cwd=results).stdout == "nothing to prune\n"


def test_prune_touches_nothing_while_a_driver_is_at_work(results: Path) -> None:
    home = results / "results" / "quick"
    (home / "live").mkdir()
    (home / "live" / "x.json").touch()
    with ResultStore(home).locked():
        ended = vitbench("prune", "--yes", cwd=results)
    assert ended.returncode == 2
    assert "is in use by another driver" in ended.stderr
    assert (home / "live" / "x.json").exists()


@pytest.mark.parametrize(("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"),
                                             (999_960, "1.0 MB"), (2_340_000_000, "2.3 GB"), (5e12, "5000.0 GB")])
def test_sizes_are_told_in_powers_of_a_thousand(count: int, text: str) -> None:
    assert byte_text(count) == text


def test_a_plan_says_what_it_does_not_know_and_json_has_the_same(results: Path) -> None:
    shown = vitbench("plan", "quick", "seeds=8", "--deviation", "0.015", cwd=results).stdout
    assert "never measured here: token_transformer:xs, token_transformer:s, convnet:xs" in shown
    assert "8 seeds show a difference of 1.7 points" in shown
    quiet = vitbench("plan", "quick", "seeds=8", "--deviation", "0.015", "-q", cwd=results).stdout
    assert shown.endswith(quiet)
    assert "model" not in quiet.splitlines()[0]
    found = json.loads(vitbench("plan", "quick", "seeds=8", "--deviation", "0.015", "--json", cwd=results).stdout)
    assert found["seconds"] is None
    assert found["totals"]["runs"] == 8 * 6 * 4
    assert found["resolution"]["seeds"] == 8
    assert found["models"]["linear"].keys() == found["totals"].keys()
    assert found.keys() == {"study", "device", "workers", "shares", "models", "totals", "trials", "seconds",
                            "peak_memory_bytes", "unmeasured", "resolution", "too_slow"}


def test_status_in_one_line(results: Path) -> None:
    assert vitbench("status", "quick", "-q", cwd=results).stdout == "12 runs: 12 done, 0 running, 0 failed, 0 to do\n"


@pytest.mark.parametrize("deviation", ["-1", "2", "much"])
def test_a_deviation_is_a_share(results: Path, deviation: str) -> None:
    ended = vitbench("plan", "quick", "--deviation", deviation, cwd=results)
    assert ended.returncode == 2
    assert "--deviation" in ended.stderr
