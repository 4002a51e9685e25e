"""What stops a study, and what is left of it: signals, deaths, a second driver."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.driver import SLOW, interrupt, records, start, until, vitbench, write_study
from vitbench.record import RunRecord


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
    failures = list(tmp_path.glob("results/tiny/runs/[!.]*/failure.json"))
    assert 0 < len(failures) < 8
    assert len(records(tmp_path)) + len(failures) == 16
    assert "worker died: signal SIGKILL" in vitbench("logs", failures[0].parent.name, cwd=tmp_path).stdout
    shown = vitbench("tables", "tiny", cwd=tmp_path).stdout  # the plug-in is not needed to read
    assert "counts as missing: its worker died: signal SIGKILL" in shown  # a crash is not a result
    assert "chance" not in shown
    again = vitbench("run", "tiny.yaml", "models=[linear,mortal]", "plugins=[mortal.py]", "seeds=4", cwd=tmp_path)
    assert f"{len(failures)} runs to do" in again.stdout  # so it is done again


def test_ctrl_c_keeps_what_is_finished_and_ends_with_130(copy: Path) -> None:
    overrides = [f"{key}={value}" for key, value in SLOW.items()]
    process = start("run", "tiny.yaml", *overrides, cwd=copy)
    until(lambda: list(copy.glob("results/tiny/live/*.json")))
    _, err = interrupt(process)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "finished runs are kept" in err
    assert len(records(copy)) == 8
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


def test_a_terminated_driver_stops_like_an_interrupted_one_and_ends_with_143(copy: Path) -> None:
    overrides = [f"{key}={value}" for key, value in SLOW.items()]
    process = start("run", "tiny.yaml", *overrides, cwd=copy)
    until(lambda: list(copy.glob("results/tiny/live/*.json")))
    process.terminate()  # the driver alone, as `kill` and schedulers do
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "finished runs are kept" in err
    assert "Traceback" not in err
    assert len(records(copy)) == 8
    assert list(copy.glob("results/tiny/live/*")) == []


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
            now = records(tmp_path)
            for run_id, text in now.items():
                RunRecord.from_json(text)
                assert seen.setdefault(run_id, text) == text
            assert seen.keys() <= now.keys()
            if target == process.pid:
                break
        process.communicate(timeout=120)
    ended = vitbench(*arguments, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    now = records(tmp_path)
    assert len(now) == 120
    assert seen.items() <= now.items()


def test_a_driver_terminated_before_its_first_run_says_143_too(tmp_path: Path) -> None:
    process = start("plan", write_study(tmp_path), "--probe", "-q", cwd=tmp_path)
    time.sleep(1.5)  # while it loads torch: there is nothing yet that a file could tell
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Traceback" not in errors
