"""`vitbench run` from the outside: what is kept, what is skipped, what is said."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.cli.driver import records, vitbench, write_study
from vitbench.record import RunRecord


def test_a_study_leaves_whole_records_logits_subsets_table_and_page(finished: Path) -> None:
    home = finished / "results" / "tiny"
    assert len(records(finished)) == len(list(home.glob("runs/*/logits.npy"))) == 8
    for text in records(finished).values():
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
    before = records(copy)
    ended = vitbench("run", "tiny.yaml", cwd=copy)
    assert ended.returncode == 0
    assert "nothing to do: all 8 runs are there" in ended.stdout
    assert records(copy) == before


def test_regimes_are_run_beside_each_other_told_in_the_table_and_shown_on_the_page(tmp_path: Path) -> None:
    write_study(tmp_path)
    arguments = ("run", "tiny.yaml", "models=[linear]", "fractions=[0.02]", "seeds=1")
    assert vitbench(*arguments, "regimes=[none,strong]", cwd=tmp_path).returncode == 0
    pictures, before = tmp_path / "results" / "tiny" / "augmented", records(tmp_path)
    assert [path.name for path in pictures.iterdir()] == ["strong.png"]
    first = (pictures / "strong.png").read_bytes()
    ended = vitbench(*arguments, "regimes=[none,light,strong]", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "2 runs were there already, 1 are new" in ended.stdout
    assert "Regime light: shift; not flip." in ended.stdout
    assert [line.split()[2] for line in ended.stdout.splitlines() if line.startswith("linear")] == [
        "none", "light", "strong"]
    assert sorted(path.name for path in pictures.iterdir()) == ["light.png", "strong.png"]
    assert (pictures / "strong.png").read_bytes() == first
    assert before.items() <= records(tmp_path).items()
    page = (pictures.parent / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    (pictures / "strong.png").unlink()
    vitbench("report", "tiny", cwd=tmp_path)
    assert "no whole <code>augmented/strong.png</code>" in (pictures.parent / "report.html").read_text()


def test_added_seeds_are_done_alone_and_the_change_is_named(copy: Path) -> None:
    before = records(copy)
    ended = vitbench("run", "tiny.yaml", "seeds=3", cwd=copy)
    assert ended.returncode == 0, ended.stderr
    assert "the study changed since its last run: seeds: [0, 1] -> [0, 1, 2]" in ended.stdout
    assert "verdicts are exploratory" in (copy / "results" / "tiny" / "table.md").read_text()
    assert "8 runs were there already, 4 are new" in ended.stdout
    assert before.items() <= records(copy).items()


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
    before = records(copy)
    ended = vitbench("run", "tiny.yaml", "fractions=[0.1]", cwd=copy)
    assert ended.returncode == 0
    assert "4 runs of an earlier form of this study stay in" in ended.stdout
    assert records(copy) == before
    assert len(vitbench("export", "tiny", cwd=copy).stdout.splitlines()) == 1 + 4


def test_a_damaged_record_is_named_set_aside_and_done_again(copy: Path) -> None:
    before = records(copy)
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
    assert records(copy).keys() == before.keys()
    redone = RunRecord.from_json(records(copy)[victim])
    assert redone.final == RunRecord.from_json(text).final  # the same numbers again
    assert redone.curves == RunRecord.from_json(text).curves


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


def test_quiet_leaves_only_the_last_lines(copy: Path) -> None:
    ended = vitbench("run", "tiny.yaml", "seeds=3", "-q", cwd=copy)
    assert ended.returncode == 0, ended.stderr
    first, *_, last = ended.stdout.splitlines()
    assert first.split()[0] == "model"  # the table; no note, no count
    assert last == "report: results/tiny/report.html"
    assert not any("runs done" in line or "at a time" in line for line in ended.stdout.splitlines())
    assert "at a time" in vitbench("run", "tiny.yaml", "seeds=4", cwd=copy).stdout  # what -q leaves out


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


def test_only_and_time_limit_choose_what_is_done(tmp_path: Path) -> None:
    write_study(tmp_path)
    none = vitbench("run", "tiny.yaml", "--time-limit", "0s", cwd=tmp_path)
    assert none.returncode == 0
    assert "the time limit is reached; 8 runs are left" in none.stdout
    some = vitbench("run", "tiny.yaml", "--only", "model=linear,fraction=0.1", cwd=tmp_path)
    assert some.returncode == 0, some.stderr
    assert len(records(tmp_path)) == 2
    assert "2 of 8 runs ended" in vitbench("tables", "tiny", cwd=tmp_path).stdout
