"""`vitbench run` from the outside: what is kept, what is skipped, what is said."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.driver import SLOW, STUDY, interrupt, start, until, vitbench, write_study
from tests.requirements import require_dataset
from vitbench.record import RunRecord


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study of eight runs, done."""
    folder = tmp_path_factory.mktemp("finished")
    ended = vitbench("run", write_study(folder), cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "8 of 8" in ended.stdout
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy"


def _records(folder: Path) -> dict[str, bytes]:
    return {p.parent.name: p.read_bytes() for p in folder.glob("results/tiny/runs/*/record.json")}


def test_a_study_leaves_whole_records_logits_subsets_table_and_page(finished: Path) -> None:
    home = finished / "results" / "tiny"
    assert len(_records(finished)) == len(list(home.glob("runs/*/logits.npy"))) == 8
    for text in _records(finished).values():
        record = RunRecord.from_json(text)
        index_file = json.loads((home / "subsets" / f"{record.data.subset}.json").read_text())
        assert len(index_file["train"]) == record.data.train_images
        assert (home / "environments" / f"{record.execution.environment}.json").exists()
    assert {"study.yaml", "resolved.json", "execution.json", "table.md", "report.html"} <= {
        p.name for p in home.iterdir()}
    assert list(home.glob("live/*")) == []
    assert list(home.glob("runs/.*")) == []


def test_no_user_host_or_folder_is_written_into_results(finished: Path) -> None:
    secrets = [str(finished), str(Path.home()), os.uname().nodename]
    for path in (p for p in finished.glob("results/**/*") if p.is_file() and p.suffix != ".npy"):
        found = [s for s in secrets if len(s) > 3 and s in path.read_text(errors="replace")]
        assert found == [], path


def test_a_finished_study_has_nothing_to_do_and_changes_no_record(copy: Path) -> None:
    before = _records(copy)
    ended = vitbench("run", "tiny.yaml", cwd=copy)
    assert ended.returncode == 0
    assert "nothing to do: all 8 runs are there" in ended.stdout
    assert _records(copy) == before


def test_added_seeds_are_done_alone_and_the_change_is_named(copy: Path) -> None:
    before = _records(copy)
    ended = vitbench("run", "tiny.yaml", "seeds=3", cwd=copy)
    assert ended.returncode == 0, ended.stderr
    assert "the study changed since its last run: seeds: [0, 1] -> [0, 1, 2]" in ended.stdout
    assert "verdicts are exploratory" in (copy / "results" / "tiny" / "table.md").read_text()
    assert "8 runs were there already, 4 are new" in ended.stdout
    assert before.items() <= _records(copy).items()


def test_table_and_page_follow_the_study_even_where_nothing_was_left_to_do(copy: Path) -> None:
    def shown() -> tuple[str, str]:
        home = copy / "results" / "tiny"
        return (home / "table.md").read_text(), (home / "report.html").read_text()

    whole = shown()
    assert "nothing to do" in vitbench("run", "tiny.yaml", "fractions=[0.1]", cwd=copy).stdout
    part = shown()
    assert "4 of 4 runs ended" in part[0]
    assert part[1] != whole[1]
    assert "nothing to do" in vitbench("run", "tiny.yaml", cwd=copy).stdout
    assert shown() == whole
    (copy / "results" / "tiny" / "table.md").write_text(part[0])  # as a driver leaves it that is killed before its end
    vitbench("run", "tiny.yaml", cwd=copy)
    assert shown() == whole


def test_runs_of_an_earlier_form_stay_and_are_named(copy: Path) -> None:
    before = _records(copy)
    ended = vitbench("run", "tiny.yaml", "fractions=[0.1]", cwd=copy)
    assert ended.returncode == 0
    assert "4 runs of an earlier form of this study stay in" in ended.stdout
    assert _records(copy) == before
    assert len(vitbench("export", "tiny", cwd=copy).stdout.splitlines()) == 1 + 4


def test_a_damaged_record_is_named_set_aside_and_done_again(copy: Path) -> None:
    before = _records(copy)
    victim, text = next(iter(before.items()))
    path = copy / f"results/tiny/runs/{victim}/record.json"
    path.write_bytes(text.replace(b'"test_accuracy":0', b'"test_accuracy":1', 1)[:-1] + b"\n")
    shown = vitbench("tables", "tiny", cwd=copy)
    assert shown.returncode == 0
    assert victim in shown.stdout  # named, and not read as data
    ended = vitbench("run", "tiny.yaml", cwd=copy)
    assert ended.returncode == 0, ended.stderr
    assert f"damaged record, done again: {victim}" in ended.stdout
    assert len(list(copy.glob("results/tiny/damaged/*"))) == 1
    assert _records(copy).keys() == before.keys()
    redone = RunRecord.from_json(_records(copy)[victim])
    assert redone.final == RunRecord.from_json(text).final  # the same numbers again
    assert redone.curves == RunRecord.from_json(text).curves


def test_a_worker_that_dies_takes_one_run_with_it(tmp_path: Path) -> None:
    plugin = """\
import os, signal
from vitbench.models import MODELS, ModelMeta

@MODELS.add("mortal", ModelMeta("control"))
def mortal(image, num_classes):
    import torch
    if torch.initial_seed() % 2 and not next(torch.nn.Linear(1, 1).parameters()).is_meta:
        os.kill(os.getpid(), signal.SIGKILL)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, num_classes))
"""
    (tmp_path / "mortal.py").write_text(plugin)
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "models=[linear,mortal]", "plugins=[mortal.py]", "seeds=4", cwd=tmp_path)
    assert ended.returncode == 1, ended.stderr
    failures = list(tmp_path.glob("results/tiny/runs/*/failure.json"))
    assert 0 < len(failures) < 8
    assert len(_records(tmp_path)) + len(failures) == 16
    assert "worker died: signal SIGKILL" in vitbench("logs", failures[0].parent.name, cwd=tmp_path).stdout
    shown = vitbench("tables", "tiny", cwd=tmp_path).stdout  # the plug-in is not needed to read
    assert "counts as missing: its worker died: signal SIGKILL" in shown  # a crash is not a result
    assert "chance" not in shown
    again = vitbench("run", "tiny.yaml", "models=[linear,mortal]", "plugins=[mortal.py]", "seeds=4", cwd=tmp_path)
    assert f"{len(failures)} runs to do" in again.stdout  # so it is done again


BROKEN_IN_TRAINING = """\
from vitbench.models import MODELS, ModelMeta

@MODELS.add("broken", ModelMeta("control"))
def broken(image, num_classes):
    from torch import nn

    class Broken(nn.Linear):
        def forward(self, images):
            if not images.is_meta:
                raise RuntimeError("no such layer")
            return super().forward(images.flatten(1))

    return Broken(64, num_classes)
"""
BROKEN_AT_ONCE = """\
from vitbench.models import MODELS, ModelMeta

@MODELS.add("broken", ModelMeta("control"))
def broken(image, num_classes):
    raise RuntimeError("no such layer")
"""
WRONG_SHAPE = """\
from vitbench.models import MODELS, ModelMeta

@MODELS.add("broken", ModelMeta("control"))
def broken(image, num_classes):
    from torch import nn
    return nn.Sequential(nn.Flatten(), nn.Linear(image.size**2, num_classes + 1))
"""


@pytest.mark.parametrize(("plugin", "words"), [
    (BROKEN_AT_ONCE, "fails on images of 8 x 8 x 1 and 10 classes: RuntimeError: no such layer"),
    (WRONG_SHAPE, "should map 2 images to logits of shape (2, 10), images x classes; found (2, 11)"),
])
def test_a_model_that_cannot_run_is_refused_before_training(tmp_path: Path, plugin: str, words: str) -> None:
    (tmp_path / "broken.py").write_text(plugin)
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "models=[linear,broken]", "plugins=[broken.py]", cwd=tmp_path)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list(tmp_path.glob("results/tiny/runs/*"))


def test_runs_that_do_not_fit_into_memory_are_refused_before_training(tmp_path: Path) -> None:
    write_study(tmp_path)
    huge = "models=[{name: token_transformer, size: xl, embed_dim: 4096, depth: 64}]"
    ended = vitbench("run", "tiny.yaml", huge, "--workers", 1, cwd=tmp_path)
    assert ended.returncode == 2
    assert "1 runs at a time need 2" in ended.stderr  # 206 GB for weights, gradients and averages
    assert "not even one fits: take a smaller model or batch_size" in ended.stderr


def test_a_budget_that_buys_no_step_is_refused_before_training(tmp_path: Path) -> None:
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "budgets=[{flops: 10}]", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: a budget of 10 flops is less than one step of")


def test_priority_is_kept_and_a_probe_makes_a_forecast(tmp_path: Path) -> None:
    write_study(tmp_path)
    arguments = ("tiny.yaml", "models=[linear,mlp:xs]", "fractions=[0.1]", "seeds=2", "priority=['model=mlp:xs']")
    unknown = vitbench("plan", *arguments, cwd=tmp_path).stdout
    assert "never measured here: linear, mlp:xs" in unknown
    probed = vitbench("plan", *arguments, "--probe", cwd=tmp_path)
    assert "forecast: " in probed.stdout
    assert "measuring linear" in probed.stderr
    assert not (tmp_path / "results" / "tiny").exists()
    ended = vitbench("run", *arguments, "--workers", 1, cwd=tmp_path)
    records = sorted((RunRecord.from_json(p.read_bytes()), p.stat().st_mtime_ns)[::-1]
                     for p in tmp_path.glob("results/tiny/runs/*/record.json"))
    assert [record.spec.model for _, record in records] == ["mlp@1", "mlp@1", "linear@1", "linear@1"]
    again = vitbench("run", *arguments[:3], "seeds=3", "--workers", 1, cwd=tmp_path).stdout
    assert "the runs took" in again
    assert "forecast" in again
    assert "forecast" not in ended.stdout  # one at a time was never measured: the probe had two


def test_a_failed_run_keeps_its_traceback_and_is_done_again_when_asked(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN_IN_TRAINING)
    write_study(tmp_path)
    arguments = ("run", "tiny.yaml", "models=[linear,broken]", "plugins=[broken.py]", "fractions=[0.1]", "seeds=2")
    ended = vitbench(*arguments, cwd=tmp_path)
    assert ended.returncode == 1
    assert "RuntimeError: no such layer" in ended.stdout
    run_id = next(tmp_path.glob("results/tiny/runs/*/failure.json")).parent.name
    shown = vitbench("logs", run_id[:9], cwd=tmp_path).stdout
    assert 'raise RuntimeError("no such layer")' in shown
    assert "./tiny/plugins/broken.py" in shown
    assert str(tmp_path) not in shown
    again = vitbench(*arguments, cwd=tmp_path)
    assert "nothing to do" in again.stdout
    retried = vitbench(*arguments, "--retry-failed", "--max-failures", 1, "--workers", 1, cwd=tmp_path)
    assert retried.returncode == 1
    assert "--max-failures is 1; 1 runs are left" in retried.stdout
    assert len(list(tmp_path.glob("results/tiny/replaced/*"))) == 2


def test_ctrl_c_keeps_what_is_finished_and_ends_with_130(copy: Path) -> None:
    overrides = [f"{key}={value}" for key, value in SLOW.items()]
    process = start("run", "tiny.yaml", *overrides, cwd=copy)
    until(lambda: list(copy.glob("results/tiny/live/*.json")))
    _, err = interrupt(process)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "finished runs are kept" in err
    assert len(_records(copy)) == 8
    assert list(copy.glob("results/tiny/live/*")) == []
    # Not those that ended (Z): in a container the first process may take seconds to collect them.
    left = subprocess.run(["pgrep", "-g", str(process.pid), "-r", "D,R,S,T"], capture_output=True, check=False)
    assert left.stdout == b""


def test_ctrl_c_pressed_again_and_again_leaves_no_traceback(copy: Path) -> None:
    overrides = [f"{key}={value}" for key, value in SLOW.items()]
    process = start("run", "tiny.yaml", *overrides, cwd=copy)
    until(lambda: list(copy.glob("results/tiny/live/*.json")))
    for _ in range(200):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.005)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "stopped; finished runs are kept, the same command goes on from here\n"
    assert list(copy.glob("results/tiny/live/*")) == []


def test_quiet_leaves_only_the_last_lines(copy: Path) -> None:
    ended = vitbench("run", "tiny.yaml", "seeds=3", "-q", cwd=copy)
    assert ended.returncode == 0, ended.stderr
    first, *_, last = ended.stdout.splitlines()
    assert first.split()[0] == "model"  # the table; no note, no count
    assert last == "report: results/tiny/report.html"
    assert not any("runs done" in line or "at a time" in line for line in ended.stdout.splitlines())
    assert "at a time" in vitbench("run", "tiny.yaml", "seeds=4", cwd=copy).stdout  # what -q leaves out


def test_a_quiet_run_still_names_what_failed(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN_IN_TRAINING)
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "-q", "models=[broken]", "plugins=[broken.py]", "fractions=[0.1]", "seeds=1",
                     cwd=tmp_path)
    assert ended.returncode == 1
    assert len([line for line in ended.stdout.splitlines() if line.startswith("failed: ")]) == 1


def test_a_terminated_driver_stops_like_an_interrupted_one_and_ends_with_143(copy: Path) -> None:
    overrides = [f"{key}={value}" for key, value in SLOW.items()]
    process = start("run", "tiny.yaml", *overrides, cwd=copy)
    until(lambda: list(copy.glob("results/tiny/live/*.json")))
    process.terminate()  # the driver alone, as `kill` and schedulers do
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "finished runs are kept" in err
    assert "Traceback" not in err
    assert len(_records(copy)) == 8
    assert list(copy.glob("results/tiny/live/*")) == []


def test_chosen_runs_are_shown_alone_and_the_page_holds_all(copy: Path) -> None:
    shown = vitbench("run", "tiny.yaml", "--only", "model=linear,seed=7", "seeds=[7]", cwd=copy).stdout
    assert "mlp" not in shown.partition("model  ")[2].partition("- n:")[0]
    assert "mlp" in (copy / "results" / "tiny" / "table.md").read_text()


def test_a_terminal_without_unicode_still_gets_its_table(copy: Path) -> None:
    shown = vitbench("tables", "tiny", cwd=copy, PYTHONUTF8="0", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert shown.returncode == 0, shown.stderr
    assert "\\u2212" in shown.stdout or "\\u2014" in shown.stdout


def test_a_full_output_is_not_blamed_on_the_results(copy: Path) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-m", "vitbench", "list", "models"], cwd=copy, stdout=full,
                               stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "error: output: No space left on device\n"


def test_a_second_driver_is_named_and_turned_away(copy: Path) -> None:
    overrides = [f"{key}={value}" for key, value in SLOW.items()]
    process = start("run", "tiny.yaml", *overrides, cwd=copy)
    try:
        until(lambda: list(copy.glob("results/tiny/live/*.json")))
        second = vitbench("run", "tiny.yaml", cwd=copy)
        assert second.returncode == 2
        assert f"another driver (pid {process.pid} on" in second.stderr
        assert "running" in vitbench("status", "tiny", cwd=copy).stdout
    finally:
        interrupt(process)


def test_workers_of_a_killed_driver_end_and_its_study_goes_on(copy: Path) -> None:
    process = start("run", "tiny.yaml", "models=[convnet:xs]", "fractions=[1]", "seeds=4", "budgets=[{steps: 400}]",
                    cwd=copy)
    until(lambda: list(copy.glob("results/tiny/live/*.json")))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    ended = vitbench("run", "tiny.yaml", "models=[linear]", cwd=copy)
    assert ended.returncode == 0, ended.stderr
    until(lambda: not subprocess.run(["pgrep", "-g", str(process.pid)], capture_output=True, check=False).stdout)


def test_only_and_time_limit_choose_what_is_done(tmp_path: Path) -> None:
    write_study(tmp_path)
    none = vitbench("run", "tiny.yaml", "--time-limit", "0s", cwd=tmp_path)
    assert none.returncode == 0
    assert "the time limit is reached; 8 runs are left" in none.stdout
    some = vitbench("run", "tiny.yaml", "--only", "model=linear,fraction=0.1", cwd=tmp_path)
    assert some.returncode == 0, some.stderr
    assert len(_records(tmp_path)) == 2
    assert "2 of 8 runs ended" in vitbench("tables", "tiny", cwd=tmp_path).stdout


@pytest.mark.slow
def test_fifty_kills_of_workers_and_driver_lose_nothing(tmp_path: Path) -> None:
    """Kill a random worker or the driver until fifty kills are done; every record ever seen stays, bit for bit."""
    import random

    rng = random.Random(0)
    write_study(tmp_path)
    arguments = ("run", "tiny.yaml", "models=[mlp:xs,convnet:xs]", "fractions=[0.1,0.3]", "seeds=30",
                 "budgets=[{steps: 60}]", "--retry-failed")
    seen: dict[str, bytes] = {}
    kills = 0
    while kills < 50:
        process = start(*arguments, cwd=tmp_path)
        until(lambda process=process: list(tmp_path.glob("results/tiny/live/*.json")) or process.poll() is not None)
        while kills < 50 and process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(rng.uniform(0.0, 0.6))
            workers = [json.loads(p.read_text())["pid"] for p in tmp_path.glob("results/tiny/live/*.json")]
            target = process.pid if rng.random() < 0.2 or not workers else rng.choice(workers)
            try:
                os.kill(target, signal.SIGKILL)
            except ProcessLookupError:
                continue
            kills += 1
            now = _records(tmp_path)
            for run_id, text in now.items():
                RunRecord.from_json(text)
                assert seen.setdefault(run_id, text) == text
            assert seen.keys() <= now.keys()
            if target == process.pid:
                break
        process.communicate(timeout=120)
    ended = vitbench(*arguments, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    now = _records(tmp_path)
    assert len(now) == 120
    assert seen.items() <= now.items()


CLOTHES = STUDY.replace("digits", "fashion_mnist").replace("0.1", "0.005").replace("32", "16")


def test_clothes_are_read_from_the_given_folder_and_trained_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.symlink_to(require_dataset("fashion-mnist"))
    ended = vitbench("run", write_study(tmp_path, CLOTHES), "seeds=1", "--data-dir", "data", cwd=tmp_path,
                     VITBENCH_CACHE=str(tmp_path / "cache"))
    assert ended.returncode == 0, ended.stderr
    assert "4 of 4" in ended.stdout
    assert "Split: official: 60,000 training and 10,000 test images. Of 10,000 test images 0 are" in ended.stdout
    assert str(tmp_path) not in (tmp_path / "results" / "tiny" / "resolved.json").read_text()


def test_a_wrong_file_is_refused_before_training_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train-images-idx3-ubyte.gz").write_bytes(b"")
    ended = vitbench("run", write_study(tmp_path, CLOTHES), "--data-dir", "data", cwd=tmp_path,
                     VITBENCH_CACHE=str(tmp_path / "cache"))
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: dataset 'fashion_mnist': data lacks train-labels-idx1-ubyte[.gz], ")
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.glob("results/tiny/runs/*")) == []


def test_a_data_folder_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    ended = vitbench("run", write_study(tmp_path, CLOTHES), "--data-dir", "nowhere", cwd=tmp_path)
    assert ended.returncode == 2
    assert "'--data-dir': dir 'nowhere' does not exist" in ended.stderr
    assert not (tmp_path / "results").exists()
