"""A tuned study by the command line: what it leaves, and what kills and damage do to it."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.cli.driver import start, until, vitbench

STUDY = """\
question: Does tuning change who wins?
dataset: digits
models: [mlp:xs, linear]
fractions: [0.1, 1]
seeds: 2
budgets: [{steps: STEPS}]
recipe: {batch_size: 32}
tuning:
  trials: 3
  validation: where_needed
  folds: 3
  space:
    learning_rate: {low: 0.001, high: 0.1, log: true}
    weight_decay: [0, 0.05]
"""


def write(folder: Path, steps: int = 20) -> None:
    (folder / "tuned.yaml").write_text(STUDY.replace("STEPS", str(steps)))


def searches(folder: Path) -> dict[str, Any]:
    """Every search by its file, without what depends on the clock."""
    found = {}
    for path in sorted((folder / "results" / "tuned" / "tuning").glob("*.json")):
        content = json.loads(path.read_text())
        for trial in content["trials"]:
            trial.pop("seconds")
        found[path.name] = content
    return found


def test_a_tuned_study_tunes_runs_and_shows_both_settings(tmp_path: Path) -> None:
    write(tmp_path)
    planned = vitbench("plan", "tuned.yaml", cwd=tmp_path)
    assert "12 tuning trials to do, in 4 searches" in planned.stdout
    ended = vitbench("run", "tuned.yaml", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "16 runs and 12 tuning trials to do" in ended.stdout
    found = searches(tmp_path)
    assert {len(one["trials"]) for one in found.values()} == {3}
    assert {one["validation"] for one in found.values()} == {"3-fold cross-validation", "holdout"}
    summary = json.loads(vitbench("tables", "tuned", "--format", "json", cwd=tmp_path).stdout)
    assert [row["setting"] for row in summary] == ["default", "tuned"] * 4
    assert {row["runs"] for row in summary} == {2}
    table = json.loads(vitbench("tables", "tuned", "tuning", "--format", "json", cwd=tmp_path).stdout)
    trials = json.loads(vitbench("trials", "tuned", "--format", "json", cwd=tmp_path).stdout)
    assert len(trials) == 12
    for row in table:
        of = [t for t in trials if (t["label"], t["share"]) == (row["label"], row["share"])]
        assert row["val_accuracy"] == max(t["val_accuracy"] for t in of)
    rows = json.loads(vitbench("export", "tuned", "--format", "json", cwd=tmp_path).stdout)
    pairs = {(row["label"], row["share"], row["seed"], row["subset"]) for row in rows if row["setting"] == "tuned"}
    assert pairs == {(row["label"], row["share"], row["seed"], row["subset"]) for row in rows
                     if row["setting"] == "default"}  # they pair
    assert {row["seed"] for row in rows} == {0, 1}
    again = vitbench("run", "tuned.yaml", cwd=tmp_path)
    assert "nothing to do: all 16 runs are there" in again.stdout
    assert searches(tmp_path) == found
    assert "tuning: 12 of 12 trials done in 4 searches" in vitbench("status", "tuned", cwd=tmp_path).stdout
    assert vitbench("verify", "tuned", cwd=tmp_path).returncode == 0


def test_killed_drivers_and_workers_neither_repeat_nor_drop_a_trial(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        write(folder, steps=200)
    assert vitbench("run", "tuned.yaml", "--only", "setting=tuned", cwd=whole).returncode == 0
    for trials in (1, 4, 8):  # the driver, with a trial running
        process = start("run", "tuned.yaml", "--only", "setting=tuned", cwd=killed)
        until(lambda: sum(len(s["trials"]) for s in searches(killed).values()) >= trials)  # noqa: B023
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    ended = vitbench("run", "tuned.yaml", "--only", "setting=tuned", cwd=killed)
    assert ended.returncode == 0, ended.stderr
    assert searches(killed) == searches(whole)


def test_a_search_may_be_stopped_by_a_time_limit_and_goes_on(tmp_path: Path) -> None:
    write(tmp_path)
    ended = vitbench("run", "tuned.yaml", "--time-limit", "0.001s", cwd=tmp_path)
    assert "stopped: the time limit is reached" in ended.stdout
    shown = json.loads(vitbench("status", "tuned", "--json", cwd=tmp_path).stdout)
    assert shown["trials"] == {"done": 0, "to_do": 12}
    assert shown["totals"]["runs"] == 16


def test_a_damaged_search_or_journal_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    write(tmp_path)
    assert vitbench("run", "tuned.yaml", cwd=tmp_path).returncode == 0
    folder, before = tmp_path / "results" / "tuned" / "tuning", searches(tmp_path)
    path = folder / next(iter(before))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused = vitbench("tables", "tuned", cwd=tmp_path)
    assert refused.returncode == 2
    assert f"{path.name} is damaged; remove it" in refused.stderr
    assert "Traceback" not in refused.stderr
    path.unlink()
    assert vitbench("run", "tuned.yaml", cwd=tmp_path).returncode == 0
    assert searches(tmp_path) == before  # written again from the journal
    journal = folder / "journal.log"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], lines[3][:9] + b"\n", *lines[4:]]))
    path.unlink()
    refused = vitbench("run", "tuned.yaml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "journal.log, line 4: damaged" in refused.stderr
    journal.write_bytes(b"".join(lines)[:-20])  # a kill cut the last line
    assert vitbench("run", "tuned.yaml", cwd=tmp_path).returncode == 0
    assert searches(tmp_path) == before


def test_more_trials_go_on_from_those_there_are(tmp_path: Path) -> None:
    write(tmp_path)
    only = ("--only", "setting=tuned,model=linear,fraction=1")
    assert vitbench("run", "tuned.yaml", *only, cwd=tmp_path).returncode == 0
    (before,) = searches(tmp_path).values()
    assert vitbench("run", "tuned.yaml", "tuning.trials=5", *only, cwd=tmp_path).returncode == 0
    (after,) = searches(tmp_path).values()
    assert len(after["trials"]) == 5
    assert after["trials"][:3] == before["trials"]


def test_a_search_that_was_edited_is_caught_and_one_of_an_earlier_form_can_go(tmp_path: Path) -> None:
    write(tmp_path)
    assert vitbench("run", "tuned.yaml", "models=[linear]", "fractions=[1]", cwd=tmp_path).returncode == 0
    (path,) = (tmp_path / "results" / "tuned" / "tuning").glob("*.json")
    whole = path.read_text()
    content = json.loads(whole)
    worst = min(content["trials"], key=lambda trial: trial["val_accuracy"])
    worst["val_accuracy"] = 1.0  # so that another setting would have been chosen
    path.write_text(json.dumps(content))
    found = vitbench("verify", "tuned", cwd=tmp_path)
    assert found.returncode == 1
    assert f"tuning/{path.name}: does not hold the trials of the journal beside it" in found.stdout
    path.write_text(whole)
    assert vitbench("verify", "tuned", cwd=tmp_path).returncode == 0
    assert vitbench("run", "tuned.yaml", "models=[linear]", "fractions=[1]", "tuning.folds=4", "tuning.objective=loss",
                    cwd=tmp_path).returncode == 0
    shown = vitbench("prune", "tuned", cwd=tmp_path).stdout
    assert "searches of an earlier form" in shown
    assert vitbench("prune", "tuned", "--yes", cwd=tmp_path).returncode == 0
    assert not path.exists()
    assert vitbench("verify", "tuned", cwd=tmp_path).returncode == 0
