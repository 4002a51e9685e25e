"""`probe` and `keep: [weights]` as a user meets them."""

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from typer.testing import CliRunner

from tests.cli.driver import STUDY, vitbench, write_study
from vitbench.cli import app
from vitbench.cli.errors import explained
from vitbench.measurement import read
from vitbench.probes import PROBES
from vitbench.registry import _LOADED

OWN = '''\
import altair as alt
from vitbench.probes import PROBES, ROWS, RUN, Column, Measured, ProbeMeta, named


@PROBES.add("my_probe", ProbeMeta(statement="Accuracies are above chance.", source="here", looks_at=("study",)))
def my_probe(look):
    rows = [{**named(run), "accuracy": row.test_accuracy} for run, row in zip(look.runs, look.frame().rows)]
    return Measured((*RUN, Column(name="accuracy", unit="", meaning="of test images")), rows,
                    alt.Chart(ROWS).mark_bar().encode(x="run:N", y="accuracy:Q"), f"{len(rows)} runs.")
'''
ATTENTION = STUDY.replace("[linear, mlp:xs]", "[token_transformer:xs, linear]").replace("[0.02, 0.1]", "[0.1]")


@pytest.fixture(autouse=True)
def _own_arithmetic() -> Iterator[None]:
    yield
    torch.set_flush_denormal(False)
    torch.use_deterministic_algorithms(False)


class Ended(NamedTuple):
    """As a process would have ended."""

    returncode: int
    stdout: str
    stderr: str


def here(*arguments: str) -> Ended:
    """The command in this process, which has torch loaded already."""
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        told = explained(result.exception) if isinstance(result.exception, Exception) else None
        if told is None:
            raise result.exception
        return Ended(2, result.stdout, result.stderr + told)
    return Ended(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with a probe of its own: done once without weights, then with one seed more that keeps them."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "my_probe.py").write_text(OWN)
    study = write_study(folder, f"{ATTENTION}plugins: [my_probe.py]\n")
    first = vitbench("run", study, "-q", cwd=folder)
    assert first.returncode == 0, first.stderr
    second = vitbench("run", study, "seeds=3", "keep=[weights]", cwd=folder)
    assert second.returncode == 0, second.stderr
    assert "4 runs ended without keeping their weights and are not done again; probes train" in second.stdout
    assert "4 runs were there already, 2 are new" in second.stdout
    return folder


@pytest.fixture
def copy(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(done, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    yield tmp_path / "copy"
    PROBES._entries.pop("my_probe", None)
    _LOADED.clear()


def test_only_new_runs_keep_weights_and_their_ids_do_not_tell(done: Path) -> None:
    runs = [path for path in (done / "results" / "tiny" / "runs").iterdir() if not path.name.startswith(".")]
    assert sorted((path / "weights.safetensors").exists() for path in runs) == [False] * 4 + [True] * 2
    assert vitbench("status", "tiny", cwd=done).stdout.count("4 runs ended without keeping their weights") == 1


def test_a_probe_of_runs_takes_weights_or_trains_again_and_says_which(copy: Path) -> None:
    ended = vitbench("probe", "position_shift", "tiny", "max_shift=2", "--figure", "shift.png", cwd=copy)
    assert ended.returncode == 0, ended.stderr
    assert "2 of 3 runs keep no weights; trained again, one after the other, they take about" in ended.stderr
    assert "run 3 of 3: token_transformer:xs, share 0.1, seed 2" in ended.stderr
    assert ("- Study tiny, 3 runs; 1 kept weights; stored logits of 32 test images agree; 2 trained again; agrees "
            "with its record exactly.") in ended.stdout
    assert (copy / "shift.png").read_bytes().startswith(b"\x89PNG")
    (path,) = (copy / "results" / "tiny" / "probes" / "position_shift").glob("*.json")
    assert path.with_suffix(".svg").read_bytes().startswith(b"<svg")
    found = read(path)
    assert found.options["max_shift"] == 2
    assert len(found.run_ids) == 3

    again = here("probe", "position_shift", "tiny", "max_shift=2")
    assert again.stdout == ended.stdout
    assert again.stderr.startswith("read from results/tiny/probes/position_shift/")
    anew = here("probe", "position_shift", "tiny", "max_shift=2", "--again", "--format", "csv")
    assert read(path) == found
    rows = list(csv.DictReader(io.StringIO(anew.stdout)))
    assert [float(row["residual"]) for row in rows] == [row["residual"] for row in found.rows]


def test_a_mechanism_needs_no_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = here("probe", "attention_as_convolution", "convolutions=6", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(ended.stdout)
    assert max(row["difference"] for row in rows if row["part"] == "built from a convolution") < 1e-10
    assert rows[0]["mass"] is None
    assert len(list((tmp_path / "results" / "probes" / "attention_as_convolution").glob("*"))) == 2


def test_the_studys_own_probe_is_run_only_where_that_is_allowed(copy: Path) -> None:
    refused = here("probe", "my_probe", "tiny")
    assert refused.returncode == 2
    assert "this runs plug-ins of the study, which are code; read them in results/tiny/plugins" in refused.stderr
    ended = here("probe", "my_probe", "tiny", "--allow-plugins")
    assert ended.returncode == 0, ended.stderr
    assert "6 runs." in ended.stdout
    one = json.loads(next((copy / "results/tiny/runs").glob("*/record.json")).read_text())["run_id"]
    ended = here("probe", "my_probe", one[:10], "--allow-plugins", "--format", "json")
    assert [row["run"] for row in json.loads(ended.stdout)] == [one]
    ended = here("probe", "my_probe", "tiny", "--plugin", "my_probe.py", "--allow-plugins")
    assert ended.stderr.startswith("read from")  # the same file


@pytest.mark.parametrize(("arguments", "message"), [
    (["position_shft"], "unknown probe 'position_shft'; allowed: "),
    (["position_shift", "tinny"], "Did you mean 'tiny'"),
    (["position_shift", "tiny", "--only", "model=linear"],
     "probe 'position_shift' looks at attention models; study 'tiny' has linear (control)"),
    (["position_shift", "tiny", "maxshift=1"], "option maxshift: 'position_shift' has no such option"),
    (["position_shift", "max_shift=0"], "option max_shift: should be greater than or equal to 1; found 0"),
    (["position_shift", "max_shift=1", "tiny"], "override 'tiny': write key=value"),
    (["position_shift", "--only", "seed=1"], "--only chooses runs of a study"),
    (["position_shift", "--figure", "x.pdf"], "--figure: should end in .svg, .png, .html; found 'x.pdf'"),
    (["position_shift", "--format", "html"], "--format: should be one of md, csv, json; found 'html'"),
    (["my_probe"], "unknown probe 'my_probe'"),
])
def test_bad_input_is_told_in_a_sentence(
        done: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str) -> None:
    monkeypatch.chdir(done)
    ended = here("probe", *arguments)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_list_probes_names_each_with_its_statement() -> None:
    lines = here("list", "probes").stdout.splitlines()
    assert {"attention_as_convolution", "position_shift", "score_variance"} <= {line.split("\t")[0] for line in lines}
    assert all(len(line.split("\t")) >= 3 for line in lines)


def test_weights_that_were_swapped_are_found_and_pruned_ones_are_no_fault(copy: Path) -> None:
    paths = sorted((copy / "results/tiny/runs").glob("*/weights.safetensors"))
    assert "ok    weights      2 checked" in here("verify", "tiny", "--allow-plugins").stdout
    shutil.copy(paths[0], paths[1])
    ended = here("verify", "tiny")
    assert ended.returncode == 1
    assert f"run {paths[1].parent.name}: weights.safetensors does not hold the weights that the rec" in ended.stdout
    pruned = here("prune", "tiny", "--weights", "--yes")
    assert "gone: 2 items" in pruned.stdout
    assert not paths[0].exists()
    assert here("verify", "tiny").returncode == 0
