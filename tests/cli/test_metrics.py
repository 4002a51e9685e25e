"""`metrics add`, `list metrics` and the export as a user meets them; no worker is started."""

from pathlib import Path

import pytest

from tests.cli.driver import vitbench
from tests.made_study import made_study


@pytest.fixture
def results(tmp_path: Path) -> Path:
    made_study(tmp_path / "results" / "made", diverged=1, failed=1, seeds=1)
    return tmp_path


def test_a_metric_is_added_named_where_it_cannot_be_and_exported(results: Path) -> None:
    runs = results / "results" / "made" / "runs"
    pruned, damaged, *_ = (path.parent for path in sorted(runs.glob("*/logits.npy")))
    (pruned / "logits.npy").unlink()
    (damaged / "logits.npy").write_bytes(b"")
    ended = vitbench("metrics", "add", "balanced_accuracy", "made", cwd=results)
    assert ended.returncode == 1
    first, counts, *rest = ended.stdout.splitlines()
    assert first.startswith("balanced_accuracy@1: mean over the classes")
    assert counts == "computed for 2 runs, there already for 0"
    told = "\n".join(rest)
    for words in ("1 runs keep no predictions:", "1 runs have a damaged record or damaged predictions:",
                  "1 runs diverged, so they have no predictions:", "1 runs failed, so they have no predictions:",
                  pruned.name, f"  {damaged.name} (", "logits.npy cannot be read"):
        assert words in told
    header, *lines = vitbench("export", "made", cwd=results).stdout.splitlines()
    assert header.endswith(",code_version,balanced_accuracy")
    assert sum(not line.endswith(",") for line in lines) == 2
    documented = vitbench("export", "made", "--columns", cwd=results).stdout.splitlines()[-1]
    assert documented.startswith("balanced_accuracy\tnumber\tshare of images\tmean over the classes")
    metric = next(runs.glob("*/metrics/balanced_accuracy.json"))
    metric.write_text("{")
    shown = vitbench("export", "made", cwd=results)
    assert shown.returncode == 0
    assert f"run {metric.parents[1].name}: not shown: metrics/balanced_accuracy.json: not a whole" in shown.stderr


def test_columns_are_told_before_the_first_run_too(tmp_path: Path) -> None:
    ended = vitbench("export", "quick", "--columns", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].startswith("code_version\t")


def test_a_metric_of_ones_own(results: Path) -> None:
    (results / "mine.py").write_text(
        "from vitbench.metrics import METRICS, MetricMeta\n"
        "@METRICS.add('mine', MetricMeta(version=1, unit='', better='lower', meaning='nothing', source='here'))\n"
        "def mine(logits_IC, labels_I):\n    return 0.25\n")
    ended = vitbench("metrics", "add", "mine", "made", "--plugin", "mine.py", cwd=results)
    assert ended.returncode == 0, ended.stderr
    assert "computed for 4 runs" in ended.stdout
    assert sum(line.endswith(",0.25") for line in vitbench("export", "made", cwd=results).stdout.splitlines()) == 4


@pytest.mark.parametrize(("arguments", "message"), [
    (("add", "balanced", "made"), "unknown metric 'balanced'; allowed: balanced_accuracy, "),
    (("add", "balanced_accuracy", "mad"), "mad: no results in results; there are: made. Did you mean 'made'?"),
    (("add", "mine", "made", "--plugin", "nowhere.py"), "nowhere.py: cannot read this plug-in"),
    (("add",), "Missing argument 'NAME'"), ((), "Missing command"), (("ad",), "No such command 'ad'"),
])
def test_bad_input_is_one_message_and_status_2(results: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = vitbench("metrics", *arguments, cwd=results)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_list_metrics_names_each_first(tmp_path: Path) -> None:
    lines = vitbench("list", "metrics", cwd=tmp_path).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["balanced_accuracy", "calibration_error",
                                                       "negative_log_likelihood", "per_class_accuracy", "top5_accuracy"]
    assert "undefined below six classes" in lines[-1]
