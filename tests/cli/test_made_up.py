"""A study of a made-up dataset with options, from its file to its table."""

import json
from pathlib import Path

import pytest

from tests.cli.driver import vitbench, write_study
from vitbench.record import RunRecord

STUDY = """\
question: Do they match?
dataset: {name: far_pairs, canvas: 16, distance: 9, images: 200, test_images: 100}
models: [linear, token_transformer:xs]
fractions: [0.5]
seeds: 1
budgets: [{steps: 3}]
recipe: {batch_size: 16}
"""
NAMED = "far_pairs@1 (canvas 16, distance 9, images 200, test_images 100)"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made_up")
    ended = vitbench("run", write_study(folder, STUDY), cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert f"test accuracy on {NAMED}" in (folder / "results" / "tiny" / "table.md").read_text()
    assert "Split: made up: 200 training and 100 test images from separate random streams of seed 0" in ended.stdout
    return folder


def test_records_and_names_hold_the_options_and_what_was_seen(done: Path) -> None:
    options = {"canvas": 16, "distance": 9, "images": 200, "test_images": 100}
    found = [RunRecord.from_json(path.read_bytes()) for path in done.glob("results/tiny/runs/*/record.json")]
    assert [record.spec.dataset_options for record in found] == [options] * 2
    assert len({record.data.dataset_sha256 for record in found}) == 1
    assert (found[0].data.drawn_images, found[0].data.test_images) == (100, 100)
    names = json.loads((done / "results" / "tiny" / "resolved.json").read_text())
    assert (names["dataset"], names["dataset_options"]) == ("far_pairs@1", options)
    subset = json.loads(next(done.glob("results/tiny/subsets/*.json")).read_text())
    assert (subset["dataset"], subset["dataset_options"]) == ("far_pairs@1", options)


def test_the_table_the_rows_and_the_page_name_the_options(done: Path) -> None:
    assert NAMED in vitbench("tables", "tiny", cwd=done).stdout
    rows = json.loads(vitbench("export", "tiny", "--format", "json", cwd=done).stdout)
    assert {row["dataset"] for row in rows} == {NAMED}
    assert NAMED in (done / "results" / "tiny" / "report.html").read_text()


def test_the_same_study_has_nothing_to_do_and_its_kept_form_is_the_same(done: Path) -> None:
    again = vitbench("run", "tiny.yaml", cwd=done)
    assert "nothing to do" in again.stdout
    assert "changed" not in again.stdout
    kept = vitbench("run", "results/tiny/study.yaml", cwd=done)
    assert "nothing to do" in kept.stdout, kept.stderr


def test_a_probe_forecasts_it_and_the_cost_file_tells_canvases_apart(done: Path) -> None:
    ended = vitbench("plan", "tiny.yaml", "seeds=2", "--probe", "-q", cwd=done)
    assert ended.returncode == 0, ended.stderr
    assert "forecast: " in ended.stdout
    assert NAMED in (done / "results" / ".costs.json").read_text()
    larger = vitbench("plan", "tiny.yaml", "seeds=2", "dataset.canvas=32", "-q", cwd=done)
    assert "never measured here: linear, token_transformer:xs" in larger.stdout


def test_verify_derives_its_images_and_subsets_anew_and_a_metric_is_added(done: Path) -> None:
    added = vitbench("metrics", "add", "balanced_accuracy", "tiny", cwd=done)
    assert added.returncode == 0, added.stderr
    verified = vitbench("verify", "tiny", "--rerun", 1, cwd=done)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_runs_that_would_see_other_images_than_earlier_ones_are_refused(done: Path, tmp_path: Path) -> None:
    """As after a change of what makes them."""
    for path in done.glob("results/tiny/runs/*/record.json"):
        target = tmp_path / path.relative_to(done)
        target.parent.mkdir(parents=True)
        record = RunRecord.from_json(path.read_bytes())
        data = record.data.model_copy(update={"dataset_sha256": "0" * 64})
        target.write_text(record.model_copy(update={"data": data}).to_json())
    before = sorted(tmp_path.rglob("record.json"))
    ended = vitbench("run", write_study(tmp_path, STUDY), "seeds=2", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: {NAMED} has other images than run ")
    assert "0" * 64 in ended.stderr
    assert sorted(tmp_path.rglob("record.json")) == before


def test_all_mistakes_of_a_dataset_come_in_the_studys_one_report(tmp_path: Path) -> None:
    text = STUDY.replace("distance: 9", "distance: 12").replace("[0.5]", "[0.5, 2]")
    ended = vitbench("run", write_study(tmp_path, text), cwd=tmp_path)
    assert ended.returncode == 2
    assert "dataset.distance: should be at most 10 on a canvas of 16 pixels" in ended.stderr
    assert "fractions[1]: " in ended.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("override", "words"), [
    ("dataset.canvas=17", "dataset.canvas: should be a multiple of 4; found 17"),
    ("dataset.images=0", "dataset.images: should be greater than or equal to 100; found 0"),
    ("dataset.distnce=3", "dataset.distnce: 'far_pairs' has no such option; allowed: canvas, images, "),
    ("dataset={name: digits, canvas: 16}", "dataset.canvas: 'digits' has no such option; allowed: none."),
    ("dataset={name: far_pairs, canvas: 128, images: 100000000}",
     "dataset.images: 'far_pairs' with 100,010,000 images of 128 x 128 x 1 takes 1638.6 GB, and "),
    ("fractions=[0.001]", "fractions[0]: class 0 with 100 training images gets none"),
])
def test_a_dataset_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path, override: str,
                                                                       words: str) -> None:
    ended = vitbench("plan", write_study(tmp_path, STUDY), override, cwd=tmp_path)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "results").exists()


def test_list_show_and_doctor_know_it(done: Path) -> None:
    listed = vitbench("list", "datasets", cwd=done).stdout
    assert "far_pairs\t20000 train, 10000 test\t2 classes\t28x28x1\toptions canvas images test_images seed distance\n" \
        in listed
    card = vitbench("show", "model", "linear", "--dataset", "far_pairs:canvas=32", cwd=done)
    assert "for far_pairs@1 (canvas 32): 32 x 32 x 1, 2 classes" in card.stdout
    wrong = vitbench("show", "model", "linear", "--dataset", "far_pairs:canvas", cwd=done)
    assert wrong.returncode == 2
    assert "write NAME or NAME:KEY=VALUE,KEY=VALUE" in wrong.stderr
    looked = vitbench("doctor", "--json", cwd=done, VITBENCH_CACHE=str(done / "empty"))
    findings = {one["subject"]: one for one in json.loads(looked.stdout)}
    assert (findings["dataset textures"]["state"], findings["dataset textures"]["found"]) == (
        "ok", "made up when it is needed")
