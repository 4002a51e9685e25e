"""Measuring: what is kept, when it is read instead, and what is refused."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import pytest

from tests.report import factory
from vitbench import measurement
from vitbench.options import BadOption
from vitbench.probes import PROBES, ROWS, RUN, Column, Look, Measured, ProbeError, ProbeMeta, named
from vitbench.probes._figure import drawing
from vitbench.probes._measure import Question
from vitbench.record import DamagedRecord
from vitbench.registry import Entry, PluginError, load_plugin
from vitbench.spec import Frozen
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder

Build = Callable[[Look], Any]
X = (Column(name="x", unit="", meaning="a number"),)
CHART = alt.Chart(ROWS).mark_point().encode(x="x:Q")


class Options(Frozen):
    """Of the probe made here."""

    scale: float = 1.0


def drawn(look: Look) -> Measured:
    """Three numbers of no short form."""
    rows = [{"x": float(value) * look.options.scale} for value in look.rng.normal(size=3)]
    return Measured(X, rows, CHART, "drawn")


@pytest.fixture
def add() -> Iterator[Callable[..., str]]:
    """Registers a function as the probe `made`."""
    def register(build: Build, sha256: str | None = None, **meta: Any) -> str:
        given = {"statement": "s", "source": "s", "looks_at": ("mechanism",), "options": Options, **meta}
        PROBES._entries["made"] = Entry("made", build, ProbeMeta(**given), sha256)
        return "made"

    yield register
    PROBES._entries.pop("made", None)


def measure(question: Question) -> measurement.Measurement:
    return question.measured(lambda _line: None)


def test_the_same_question_gives_the_same_bytes_and_another_key_another_file(
        add: Callable[..., str], tmp_path: Path) -> None:
    add(drawn)
    asked = [Question("made", {}, tmp_path / "one"), Question("made", {}, tmp_path / "two"),
             Question("made", {"scale": 2.0}, tmp_path / "one")]
    found = [measure(question) for question in asked]
    first, second = (asked[i].path.read_bytes() for i in (0, 1))
    assert first == second
    assert asked[0].path.with_suffix(".svg").read_bytes() == asked[1].path.with_suffix(".svg").read_bytes()
    assert asked[0].path.parent == asked[2].path.parent == tmp_path / "one" / "probes" / "made"
    assert [question.path.stem for question in asked] == [each.key for each in found]
    assert asked[0].path != asked[2].path
    assert found[2].rows[0]["x"] == pytest.approx(2 * found[0].rows[0]["x"], rel=1e-5)


def test_an_answer_that_is_read_again_has_its_figure(
        add: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(drawn)
    asked = Question("made", {}, tmp_path)

    def killed(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("vitbench.probes._measure.drawing", killed)
        with pytest.raises(KeyboardInterrupt):
            measure(asked)
    assert asked.answered() is None


def test_what_decides_the_numbers_decides_the_key() -> None:
    keys = {measurement.key_of(*given) for given in (
        (1, {}, [], None), (2, {}, [], None), (1, {"a": 1}, [], None), (1, {}, ["r"], None), (1, {}, [], "f" * 64))}
    assert len(keys) == 5
    assert measurement.key_of(1, {}, ["b", "a"], None) == measurement.key_of(1, {}, ["a", "b"], None)


def test_numbers_are_kept_with_six_digits_in_the_order_of_the_columns(
        add: Callable[..., str], tmp_path: Path) -> None:
    columns = (*X, Column(name="y", unit="", meaning="another"))
    add(lambda _look: Measured(columns, [{"y": None, "x": 2 / 3}, {"x": 3, "y": True}], CHART, "s"))
    asked = Question("made", {}, tmp_path)
    found = measure(asked)
    assert [list(row.items()) for row in found.rows] == [[("x", 0.666667), ("y", None)], [("x", 3), ("y", True)]]
    assert found.figure["datasets"]["rows"] == [dict(row) for row in found.rows]
    assert found == measurement.read(asked.path)


def test_what_was_measured_is_read_until_it_is_damaged(add: Callable[..., str], tmp_path: Path) -> None:
    calls = []
    add(lambda look: calls.append(1) or drawn(look))
    asked = Question("made", {}, tmp_path)
    assert asked.answered() is None
    found = measure(asked)
    assert asked.answered() == found
    content = asked.path.read_text()
    asked.path.write_text(content.replace('"summary":"drawn"', '"summary":"drawx"'))
    assert asked.answered() is None
    with pytest.raises(DamagedRecord, match=r"probes/made/.*: its content hash does not match"):
        measurement.read(asked.path)
    asked.path.write_text(content)
    other = asked.path.with_name("0" * 16 + ".json")
    shutil.copy(asked.path, other)
    with pytest.raises(DamagedRecord, match="holds another measurement, made/"):
        measurement.read(other)
    assert len(calls) == 1


@pytest.mark.parametrize(("gives", "message"), [
    (lambda _: 3, "should give a Measured; found a int"),
    (lambda _: Measured(X, [], CHART, "s"), "gave no row"),
    (lambda _: Measured(X, [{"y": 1.0}], CHART, "s"), "rows with x; found one with y"),
    (lambda _: Measured(X, [{"x": 1.0, "y": 1.0}], CHART, "s"), "found one with x, y"),
    (lambda _: Measured((*X, *X), [{"x": 1.0}], CHART, "s"), "'x' stands twice"),
    (lambda _: Measured(X, [{"x": float("nan")}], CHART, "s"), "finite numbers, .*; found x nan"),
])
def test_a_probe_that_gives_something_else_is_told_what(
        add: Callable[..., str], tmp_path: Path, gives: Build, message: str) -> None:
    add(gives)
    with pytest.raises(ProbeError, match=f"probe 'made' .*{message}"):
        measure(Question("made", {}, tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_fault_in_a_users_probe_is_a_sentence_and_in_ours_a_traceback(
        add: Callable[..., str], tmp_path: Path) -> None:
    add(lambda _look: 1 / 0, sha256="f" * 64)
    with pytest.raises(ProbeError, match="probe 'made' fails: ZeroDivisionError: division by zero"):
        measure(Question("made", {}, tmp_path))
    add(lambda _look: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        measure(Question("made", {}, tmp_path))


def test_a_probe_is_not_done_on_what_it_does_not_look_at(add: Callable[..., str], kept: StudyFolder) -> None:
    add(drawn, looks_at=("mechanism",))
    with pytest.raises(ProbeError, match=r"looks at a mechanism alone and takes no study: `vitbench probe made`"):
        Question("made", {}, kept.store.folder.parent, kept)
    for looks_at, what in ((("runs",), "trained runs"), (("study",), "records")):
        add(drawn, looks_at=looks_at)
        with pytest.raises(ProbeError, match=f"looks at {what}: name a study"):
            Question("made", {}, kept.store.folder.parent)


def test_a_wrong_option_is_named(tmp_path: Path, add: Callable[..., str]) -> None:
    add(drawn)
    with pytest.raises(BadOption, match=r"option scal: 'made' has no such option; .* Did you mean 'scale'"):
        measure(Question("made", {"scal": 1}, tmp_path))
    with pytest.raises(BadOption, match="option scale: should be a valid number"):
        measure(Question("made", {"scale": "much"}, tmp_path))


@pytest.mark.parametrize(("meta", "message"), [
    ({"statement": " "}, "statement and source: each says something"),
    ({"looks_at": ()}, "looks_at: should be a tuple of mechanism, runs, study"),
    ({"looks_at": "runs"}, "looks_at: should be a tuple"),
    ({"looks_at": ("run",)}, "Did you mean 'runs'"),
    ({"families": ("attentive",)}, "families: .* Did you mean 'attention'")])
def test_what_a_probe_declares_is_checked(meta: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        ProbeMeta(**{"statement": "s", "source": "s", "looks_at": ("runs",), **meta})


@pytest.fixture
def records_only(tmp_path: Path) -> StudyFolder:
    """A study of two models whose records were made up."""
    of = factory.study(seeds=1, fractions=[0.1])
    folder = StudyFolder("made_up", of, factory.resolved(of), ResultStore(tmp_path / "results" / "made_up"))
    folder.store.prepare()
    folder.write({})
    for run in folder.runs:
        folder.store.write(factory.record(run, folder.resolved), None)
    return folder


def test_a_probe_of_records_has_the_frame_and_rests_on_the_records(
        add: Callable[..., str], records_only: StudyFolder) -> None:
    def accuracies(look: Look) -> Measured:
        rows = [{**named(run), "x": row.test_accuracy} for run, row in zip(look.runs, look.frame().rows, strict=True)]
        return Measured((*RUN, *X), rows, CHART, "s")

    add(accuracies, looks_at=("study",))
    runs = tuple(records_only.runs)
    asked = Question("made", {}, records_only.store.folder.parent, records_only, runs)
    found = measure(asked)
    assert asked.path.is_relative_to(records_only.store.folder / "probes" / "made")
    assert [(row["run"], row["label"]) for row in found.rows] == [(run.spec.run_id, run.label) for run in runs]
    assert found.run_ids == tuple(sorted(run.spec.run_id for run in runs))
    assert asked.answered() == found
    changed = factory.record(runs[0], records_only.resolved, test_accuracy=0.5)
    (records_only.store.runs / runs[0].spec.run_id / "record.json").write_text(changed.to_json())
    assert asked.answered() is None  # of a run that was done again with another end
    one = Question("made", {}, records_only.store.folder.parent, records_only, runs[:1])
    assert one.path != asked.path


def test_how_each_trained_model_was_had_is_kept(add: Callable[..., str], kept: StudyFolder, tmp_path: Path) -> None:
    def parameters(look: Look) -> Measured:
        rows = [{**named(run), "x": sum(p.numel() for p in look.trained(run).module.model.parameters())}
                for run in look.runs]
        return Measured((*RUN, *X), rows, CHART, "s")

    shutil.copytree(kept.store.folder, tmp_path / "tiny")
    folder = replace(kept, store=ResultStore(tmp_path / "tiny"))
    runs = tuple(folder.runs)
    (folder.store.runs / runs[1].spec.run_id / "weights.safetensors").unlink()
    add(parameters, looks_at=("runs",))
    told: list[str] = []
    found = Question("made", {}, tmp_path, folder, runs).measured(told.append)
    hows = [found.weights[run.spec.run_id].partition(";")[0] for run in runs]
    assert hows == ["kept weights", "trained again"]
    assert told == [f"run {i} of 2: {run.label}, share 0.1, seed 0" for i, run in enumerate(runs, 1)]
    record = folder.store.read(runs[0].spec.run_id)
    assert found.rows[0]["x"] == record.cost.params  # type: ignore[union-attr]


def test_a_users_file_is_a_probe_named_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "my_probe.py"
    path.write_text('import altair as alt\nfrom vitbench.probes import *\n'
                    '@PROBES.add("my_probe", ProbeMeta(statement="s", source="s", looks_at=("mechanism",)))\n'
                    'def my_probe(look):\n'
                    '    return Measured((Column(name="x", unit="", meaning="m"),), [{"x": 1.5}],\n'
                    '                    alt.Chart(ROWS).mark_bar().encode(x="x:Q"), "found 1.5")\n')
    try:
        digest = load_plugin(path)
        found = measure(Question("my_probe", {}, tmp_path))
    finally:
        PROBES._entries.pop("my_probe", None)
    assert found.plugin_sha256 == digest
    assert found.summary == "found 1.5"


def test_a_figure_is_drawn_in_every_form(add: Callable[..., str], tmp_path: Path) -> None:
    add(drawn)
    found = measure(Question("made", {}, tmp_path))
    assert drawing(found, "svg").startswith(b"<svg")
    assert drawing(found, "png").startswith(b"\x89PNG")
    page = drawing(found, "html").decode()
    assert "vega" in page
    assert json.dumps(found.rows[0]["x"]) in page


def test_an_empty_list_is_refused_in_words(results: Path) -> None:
    with pytest.raises(BadOption, match=r"images: should have at least one entry; found \(?\[?"):
        _ = Question("memorisation", {"images": []}, results).options
