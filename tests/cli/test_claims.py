"""`claims`: verdicts of studies at rest, with the claims that ship and those of the study's own."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import vitbench
from tests.report import factory
from tests.report.test_evidence import with_hits
from vitbench.claims import CLAIMS
from vitbench.cli.claims import judged
from vitbench.cli.scaffold import write_new
from vitbench.config import Study
from vitbench.measurement import Measurement, records_hash, write
from vitbench.probes import PROBES
from vitbench.registry import plugin_sha256
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder
from vitbench.verdicts import Verdict

SHIPPED, OWN = "attention_overtakes_with_enough_data", "my_claim"


def at_rest(folder: Path, name: str, study: Study, plugins: dict[str, Path]) -> StudyFolder:
    """A study that is done, as `run` leaves it."""
    store = ResultStore(folder / "results" / name)
    store.prepare()
    hashes = {plugin: plugin_sha256(path) for plugin, path in plugins.items()}
    resolved = factory.resolved(study).model_copy(update={"plugins": hashes})
    made = StudyFolder(name, study, resolved, store)
    made.write(plugins)
    for run in made.runs:
        store.write(with_hits(run, resolved, 0.95, 0.88), None)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies: `trial` names a claim that ships and one of its own, `silent` none."""
    folder = tmp_path_factory.mktemp("claims")
    write_new("claim", OWN, folder)
    study = factory.study(seeds=8, claims=[SHIPPED, OWN], plugins=[f"{OWN}.py"])
    at_rest(folder, "trial", study, {OWN: folder / f"{OWN}.py"})
    at_rest(folder, "silent", factory.study(), {})
    return folder


def test_the_studys_own_claim_is_not_run_unasked(folder: Path) -> None:
    ended = vitbench("claims", "trial", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    shipped, own = ended.stdout.split("## ")[1:]
    assert shipped.startswith(f"trial: {SHIPPED}\n")
    assert "**blocked** (unanchored): Ahead from the start: attention leads at 0.1 (145 drawn images)" in shipped
    assert ("**blocked** (unanchored): It is code of the study's own, which runs only when asked for: read "
            "results/trial/plugins/my_claim.py, then add --allow-plugins.") in own


def test_with_allow_plugins_it_is_judged_and_named_by_its_hash(folder: Path) -> None:
    ended = vitbench("claims", "trial", "--allow-plugins", "--format", "json", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    _, own = json.loads(ended.stdout)
    assert (own["study"], own["claim"], own["verdict"], own["n"]) == ("trial", OWN, "holds", 8)
    assert own["effect"] == pytest.approx(0.07, abs=0.02)
    assert own["low"] < own["effect"] < own["high"]
    assert own["claim_sha256"] == plugin_sha256(folder / f"{OWN}.py")
    assert {path.name for path in (folder / "results/trial/runs").iterdir()} > set(own["run_ids"])
    assert len(own["run_ids"]) == 16


def test_all_studies_are_judged_where_none_is_named_and_silent_ones_are_told(folder: Path) -> None:
    ended = vitbench("claims", "--format", "csv", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert [(row["study"], row["claim"]) for row in csv.DictReader(io.StringIO(ended.stdout))] == [
        ("trial", SHIPPED), ("trial", OWN)]
    assert ended.stderr.startswith("no claims are named by: silent; ")


def test_json_is_an_array_where_there_is_nothing_to_judge(folder: Path) -> None:
    ended = vitbench("claims", "silent", "--format", "json", cwd=folder)
    assert (ended.returncode, json.loads(ended.stdout)) == (0, [])


def changed(folder: Path, tmp_path: Path, source: str, *, keep_hash: bool = False) -> str:
    """What judging `trial` says when its claim's file is `source`."""
    shutil.copytree(folder / "results", tmp_path / "results")
    home = tmp_path / "results" / "trial"
    (home / "plugins" / f"{OWN}.py").write_text(source)
    if not keep_hash:
        facts = json.loads((home / "resolved.json").read_text())
        facts["plugins"][OWN] = plugin_sha256(home / "plugins" / f"{OWN}.py")
        (home / "resolved.json").write_text(json.dumps(facts))
    ended = vitbench("claims", "trial", "--allow-plugins", cwd=tmp_path)
    assert "Traceback" not in ended.stderr
    return f"{ended.returncode} {ended.stdout.partition('my_claim')[2]}{ended.stderr}"


def test_an_edited_claim_is_not_the_studys(folder: Path, tmp_path: Path) -> None:
    said = changed(folder, tmp_path, "1 / 0", keep_hash=True)
    assert said.startswith("0 ")
    assert "is not the file that the study was run with; vitbench run takes the new one" in said


def test_a_file_without_the_claim_is_a_named_outcome(folder: Path, tmp_path: Path) -> None:
    assert "registers no claim of this name" in changed(folder, tmp_path, "")


def test_a_file_that_fails_on_import_is_an_error(folder: Path, tmp_path: Path) -> None:
    said = changed(folder, tmp_path, "1 / 0")
    assert said.startswith("2 ")
    assert "fails on import: ZeroDivisionError" in said


def test_a_claim_that_fails_is_an_error_that_names_it(folder: Path, tmp_path: Path) -> None:
    source = (folder / f"{OWN}.py").read_text()
    said = changed(folder, tmp_path, source.replace("pairs = matched", "pairs = 1 / 0 * matched"))
    assert said.startswith("2 ")
    assert "error: claim 'my_claim' fails: ZeroDivisionError" in said


def test_a_claim_that_is_gone_is_a_named_outcome(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "results", tmp_path / "results")
    (tmp_path / "results/trial/plugins/my_claim.py").unlink()
    ended = vitbench("claims", "trial", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "This version has no claim of this name, and the study's results no file of it." in ended.stdout


def test_two_studies_with_other_files_of_one_name_are_judged_alone(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "results", tmp_path / "results")
    other = tmp_path / f"{OWN}.py"
    other.write_text((folder / f"{OWN}.py").read_text() + "# another\n")
    at_rest(tmp_path, "zweite", factory.study(seeds=8, claims=[OWN], plugins=[f"{OWN}.py"]), {OWN: other})
    ended = vitbench("claims", "trial", "zweite", "--allow-plugins", "--format", "json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert [found["verdict"] for found in json.loads(ended.stdout)] == ["blocked", "holds", "blocked"]
    assert "judge each study alone" in ended.stdout


@pytest.mark.parametrize(("arguments", "message"), [
    (["trial", "--format", "html"], "--format: should be one of md, json, csv; found 'html'"),
    (["nowhere"], "no results in results"),
])
def test_what_cannot_be_meant_is_refused(folder: Path, arguments: list[str], message: str) -> None:
    ended = vitbench("claims", *arguments, cwd=folder)
    assert ended.returncode == 2
    assert message in ended.stderr


def test_claims_are_listed_with_their_sentence(folder: Path) -> None:
    ended = vitbench("list", "claims", cwd=folder)
    assert any(line.startswith(f"{SHIPPED}\tWith little data a CNN") for line in ended.stdout.splitlines())


def test_a_claims_file_is_no_part_of_a_runs_id() -> None:
    with_claim = factory.study(claims=[OWN], plugins=[f"{OWN}.py"])
    facts = factory.resolved(with_claim).model_copy(update={"plugins": {OWN: "c" * 64}})
    folders = [StudyFolder("trial", study, names, ResultStore(Path("nowhere"))) for study, names in (
        (with_claim, facts), (factory.study(), factory.resolved(factory.study())))]
    ids = [[run.spec.run_id for run in of.runs] for of in folders]
    assert ids[0] == ids[1]


def test_the_word_is_nowhere(folder: Path) -> None:
    for arguments in (["claims", "trial", "--allow-plugins"], ["list", "claims"], ["claims", "--help"]):
        assert "significan" not in vitbench(*arguments, cwd=folder).stdout.lower()


ON_A_PROBE = '''\
from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import Verdict


@CLAIMS.add("on_a_probe", ClaimMeta(sentence="s", source="s", null="n", planted=None))
def on_a_probe(evidence):
    found = evidence.probe("position_shift")
    return Verdict(outcome="holds", sentence=", ".join(each.summary for each in found))
'''


def test_a_claim_reads_what_a_probe_found_on_these_records_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "on_a_probe.py").write_text(ON_A_PROBE)
    study = factory.study(seeds=1, claims=["on_a_probe"], plugins=["on_a_probe.py"])
    folder = at_rest(tmp_path, "trial", study, {"on_a_probe": tmp_path / "on_a_probe.py"})
    version = PROBES.get("position_shift").meta.version

    def verdict() -> Verdict:
        (found,) = judged(folder, allow_plugins=True)
        return found.verdict

    def keep(summary: str, home: Path, **values: Any) -> Path:
        content = Measurement(**{"probe": "position_shift", "version": version, "statement": "s", "source": "s",
                                 "options": {"made": summary}, "columns": (), "rows": (), "summary": summary,
                                 "figure": {}, "code_version": "0", **values})
        path = home / "probes" / "position_shift" / f"{content.key}.json"
        write(path, content)
        return path

    home, records = folder.store.folder, folder.frame().records
    ids = tuple(sorted(records))
    try:
        assert verdict().outcome == "undecided"
        assert "run `vitbench probe position_shift trial`" in verdict().sentence
        keep("of an earlier definition", home, version=version + 1)
        keep("of another's file", home, plugin_sha256="f" * 64)
        keep("of other records", home, run_ids=ids, records_sha256="0" * 64)
        keep("damaged", home).write_text("{}")
        assert verdict().outcome == "undecided"
        keep("of the mechanism", home.parent)
        keep("of all runs", home, run_ids=ids, records_sha256=records_hash(records.values()))
        assert (verdict().outcome, verdict().sentence) == ("holds", "of all runs, of the mechanism")
    finally:
        CLAIMS._entries.pop("on_a_probe", None)


@pytest.mark.parametrize(("text", "status", "said"), [
    ("trial: {CLAIM: blocked}", 0, ""),
    ("trial: {CLAIM: [holds, blocked]}", 0, ""),
    ('{"trial": {"CLAIM": "blocked"}}', 0, ""),
    ("trial: {CLAIM: holds}", 1, f"trial: {SHIPPED}: expected holds; found blocked"),
    ("other: {CLAIM: [holds, depends]}", 1, f"other: {SHIPPED}: expected holds or depends; it was not judged"),
    ("trial: {CLAIM: hold}", 2, "found 'hold'. Did you mean 'holds'?"),
    ("trial: {CLAIM: []}", 2, "should be of holds, fails"),
    ("trial: {attention_overtakes: holds}", 2, f"there is no such claim. Did you mean '{SHIPPED}'?"),
    ("trial: holds", 2, "should be a mapping, {CLAIM: OUTCOME}; found 'holds'"),
    ("[]", 2, "should be a mapping"), ("", 2, "error: "), ("a: &x {}", 2, "error: "), (None, 2, "No such file"),
])
def test_verdicts_are_held_to_a_file(folder: Path, tmp_path: Path, text: str | None, status: int, said: str) -> None:
    path = tmp_path / "expected.yaml"
    if text is not None:
        path.write_text(text.replace("CLAIM", SHIPPED))
    ended = vitbench("claims", "trial", "--expect", str(path), cwd=folder)
    assert ended.returncode == status, ended.stderr
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


ROOT = Path(__file__).parents[2]


def test_the_shipped_results_give_the_verdicts_that_are_shown() -> None:
    ended = vitbench("claims", "digits", "--format", "json", "--expect", "configs/verdicts.yaml", cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    readme = (ROOT / "README.md").read_text()
    for found in json.loads(ended.stdout):
        numbers = "" if found["low"] is None else f"{found['effect']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]"
        assert f"| `{found['claim']}` | {found['verdict']} | {numbers} |" in readme


def test_nothing_that_looks_tested_is_said_of_few_seeds(tmp_path: Path) -> None:
    at_rest(tmp_path, "few", factory.study(seeds=3, claims=list(CLAIMS.shipped())), {})
    for form in ("md", "json", "csv"):
        ended = vitbench("claims", "few", "--format", form, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert "significant" not in ended.stdout
    exact = {"convolution_is_restricted_attention", "a_window_needs_ever_more_parameters"}
    found = json.loads(vitbench("claims", "few", "--format", "json", cwd=tmp_path).stdout)
    assert {each["claim"] for each in found if each["verdict"] in ("holds", "fails", "depends")} <= exact


def test_declared_comparisons_are_those_that_claims_on_rankings_look_at(tmp_path: Path) -> None:
    study = factory.study(seeds=6, fractions=[1], models=["token_transformer:xs", "convnet:xs", "linear"],
                          budgets=[{"steps": 300}, {"steps": 600}], claims=["budget_changes_the_ranking"],
                          comparisons=[["linear", "convnet:xs"]])
    at_rest(tmp_path, "declared", study, {})
    [found] = json.loads(vitbench("claims", "declared", "--format", "json", cwd=tmp_path).stdout)
    legs = [leg["name"] for leg in found["legs"] if " against " in leg["name"]]
    assert legs == ["linear against convnet:xs at 1, none, default: steps:300, then steps:600"]
