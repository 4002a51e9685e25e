"""A tuned study by the command line: what it leaves, and what kills and damage do to it."""

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import start, until, vitbench

STUDY = """\
question: Does tuning change who wins?
dataset: digits
models: [mlp:xs, linear]
fractions: [0.1, 1]
seeds: 2
budgets: [{steps: 20}]
recipe: {batch_size: 32}
tuning:
  trials: 3
  validation: where_needed
  folds: 3
  space:
    learning_rate: {low: 0.001, high: 0.1, log: true}
    weight_decay: [0, 0.05]
"""


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study, done."""
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "tuned.yaml").write_text(STUDY)
    planned = vitbench("plan", "tuned.yaml", cwd=folder)
    assert "12 tuning trials to do, in 4 searches" in planned.stdout
    ended = vitbench("run", "tuned.yaml", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "16 runs and 12 tuning trials to do" in ended.stdout
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy"


def searches(folder: Path) -> dict[str, Any]:
    """Every search by its file, without what depends on the clock."""
    found = {}
    for path in sorted((folder / "results" / "tuned" / "tuning").glob("[!.]*.json")):
        content = json.loads(path.read_text())
        for trial in content["trials"]:
            trial.pop("seconds")
        found[path.name] = content
    return found


def test_a_tuned_study_shows_both_settings(finished: Path) -> None:
    found = searches(finished)
    assert {len(one["trials"]) for one in found.values()} == {3}
    assert {one["validation"] for one in found.values()} == {"3-fold cross-validation", "holdout"}
    summary = json.loads(vitbench("tables", "tuned", "--format", "json", cwd=finished).stdout)
    assert [row["setting"] for row in summary] == ["default", "tuned"] * 4
    assert {row["runs"] for row in summary} == {2}
    table = json.loads(vitbench("tables", "tuned", "tuning", "--format", "json", cwd=finished).stdout)
    trials = json.loads(vitbench("trials", "tuned", "--format", "json", cwd=finished).stdout)
    assert len(trials) == 12
    for row in table:
        of = [t for t in trials if (t["label"], t["share"]) == (row["label"], row["share"])]
        assert row["val_accuracy"] == max(t["val_accuracy"] for t in of)
    assert "tuning: 12 of 12 trials done in 4 searches" in vitbench("status", "tuned", cwd=finished).stdout
    assert vitbench("verify", "tuned", cwd=finished).returncode == 0


def test_tuned_and_default_runs_pair_and_are_done_once(finished: Path) -> None:
    rows = json.loads(vitbench("export", "tuned", "--format", "json", cwd=finished).stdout)
    pairs = {setting: {(row["label"], row["share"], row["seed"], row["subset"]) for row in rows
                       if row["setting"] == setting} for setting in ("default", "tuned")}
    assert pairs["default"] == pairs["tuned"]
    assert {row["seed"] for row in rows} == {0, 1}
    before = searches(finished)
    assert "nothing to do: all 16 runs are there" in vitbench("run", "tuned.yaml", cwd=finished).stdout
    assert searches(finished) == before


def test_killed_drivers_neither_repeat_nor_drop_a_trial(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "tuned.yaml").write_text(STUDY)
    for trials in (1, 6):
        process = start("run", "tuned.yaml", "--only", "setting=tuned", cwd=tmp_path)
        until(lambda: sum(len(s["trials"]) for s in searches(tmp_path).values()) >= trials)  # noqa: B023
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    ended = vitbench("run", "tuned.yaml", "--only", "setting=tuned", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert searches(tmp_path) == searches(finished)


def test_a_search_stopped_by_a_time_limit_is_to_do(tmp_path: Path) -> None:
    (tmp_path / "tuned.yaml").write_text(STUDY)
    ended = vitbench("run", "tuned.yaml", "--time-limit", "0.001s", cwd=tmp_path)
    (left,) = re.findall(r"stopped: the time limit is reached; (\d+) runs are left", ended.stdout)
    assert int(left) > 8  # those that wait for a search, too
    shown = json.loads(vitbench("status", "tuned", "--json", cwd=tmp_path).stdout)
    assert shown["trials"] == {"done": 0, "to_do": 12}
    assert shown["totals"]["runs"] == 16


def test_a_damaged_search_or_journal_is_named_and_nothing_is_lost(copy: Path) -> None:
    folder, before = copy / "results" / "tuned" / "tuning", searches(copy)
    path, journal = folder / next(iter(before)), folder / "journal.log"
    path.write_bytes(path.read_bytes()[:100])
    refused = vitbench("tables", "tuned", cwd=copy)
    assert refused.returncode == 2
    assert f"{path.name} is damaged; remove it" in refused.stderr
    assert "Traceback" not in refused.stderr
    path.unlink()
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], lines[3][:9] + b"\n", *lines[4:]]))
    refused = vitbench("run", "tuned.yaml", cwd=copy)
    assert refused.returncode == 2
    assert "journal.log, line 4: damaged" in refused.stderr
    journal.write_bytes(b"".join(lines)[:-20])  # a kill cut the last line
    assert vitbench("run", "tuned.yaml", cwd=copy).returncode == 0
    assert searches(copy) == before  # written again from the journal


def test_more_trials_go_on_from_those_there_are(copy: Path) -> None:
    before = searches(copy)
    only = ("--only", "setting=tuned,model=linear,fraction=1")
    assert vitbench("run", "tuned.yaml", "tuning.trials=5", *only, cwd=copy).returncode == 0
    more = [(before[name], one) for name, one in searches(copy).items() if len(one["trials"]) == 5]
    assert len(more) == 1
    assert more[0][1]["trials"][:3] == more[0][0]["trials"]


def test_a_search_that_was_edited_is_caught_and_one_of_an_earlier_form_can_go(copy: Path) -> None:
    path = next((copy / "results" / "tuned" / "tuning").glob("*.json"))
    whole = path.read_text()
    content = json.loads(whole)
    worst = min(content["trials"], key=lambda trial: trial["val_accuracy"])
    worst["val_accuracy"] = 1.0  # so that another setting would have been chosen
    path.write_text(json.dumps(content))
    found = vitbench("verify", "tuned", cwd=copy)
    assert found.returncode == 1
    assert f"tuning/{path.name}: does not hold the trials of the journal beside it" in found.stdout
    path.write_text(whole)
    earlier = path.with_name("0123456789abcdef.json")
    earlier.write_text(whole)
    assert "searches of an earlier form" in vitbench("prune", "tuned", cwd=copy).stdout
    assert vitbench("prune", "tuned", "--yes", cwd=copy).returncode == 0
    assert not earlier.exists()
    assert path.read_text() == whole
