"""`new` and `check`: a first file is sound as it is written."""

from pathlib import Path

import pytest
import yaml

from tests.boundaries.probe import loads_torch
from tests.cli.driver import vitbench
from vitbench import cost
from vitbench.cli.scaffold import BadName, write_new
from vitbench.models import MODELS, build
from vitbench.record import RunRecord
from vitbench.registry import load_plugin
from vitbench.spec import ImageSpec
from vitbench.verdicts.conformance import PROMISES


def test_a_new_study_is_accepted_by_plan(tmp_path: Path) -> None:
    assert "vitbench run" in vitbench("new", "study", "mine", cwd=tmp_path).stdout
    ended = vitbench("plan", "mine.yaml", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "token_transformer:xs" in ended.stdout


def test_a_new_model_trains_in_a_new_study(tmp_path: Path) -> None:
    for kind, name in (("study", "mine"), ("model", "my_net")):
        assert vitbench("new", kind, name, "--folder", "own", cwd=tmp_path).returncode == 0
    said = vitbench("new", "model", "other", cwd=tmp_path).stdout
    named = yaml.safe_load(said.partition("folder:\n")[2])  # the lines for the study are YAML as printed
    assert named == {"models": ["other:xs", "convnet:xs"], "plugins": ["other.py"]}
    study = tmp_path / "own" / "mine.yaml"
    study.write_text(study.read_text().replace("  - linear\n", "  - my_net:xs\n") + "plugins: [my_net.py]\n")
    ended = vitbench("run", "own/mine.yaml", "seeds=1", "fractions=[0.1]", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    texts = [path.read_bytes() for path in tmp_path.glob("results/mine/runs/[!.]*/record.json")]
    records = {record.spec.model: record for record in map(RunRecord.from_json, texts)}
    assert records.keys() == {"token_transformer@1", "convnet@1", "my_net@1"}
    assert records["my_net@1"].card["normalisation"] == "BatchNorm"


def test_check_accepts_the_new_model_and_names_a_broken_promise(tmp_path: Path) -> None:
    vitbench("new", "model", "my_net", cwd=tmp_path)
    path = tmp_path / "my_net.py"
    sound = vitbench("check", "my_net.py", cwd=tmp_path)
    assert sound.returncode == 0, sound.stdout
    assert {line.split()[0] for line in sound.stdout.splitlines()} == {"ok"}
    path.write_text(path.read_text().replace("nn.Linear(2 * width, num_classes)", "nn.Linear(2 * width, 3)"))
    broken = vitbench("check", "my_net.py", cwd=tmp_path)
    assert broken.returncode == 1
    assert "BROKEN my_net:xs: Images B x channels x size x size become finite logits B x classes." in broken.stdout
    assert "8x8x1: should give logits of shape (3, 7)" in broken.stdout


@pytest.mark.parametrize(("source", "message"), [
    (None, "cannot read this plug-in"), ("1 / 0", "fails on import: ZeroDivisionError"),
    ("", "registers no model and no claim"),
])
def test_check_refuses_a_file_that_is_neither_model_nor_claim(tmp_path: Path, source: str | None, message: str) -> None:
    if source is not None:
        (tmp_path / "mine.py").write_text(source)
    ended = vitbench("check", "mine.py", cwd=tmp_path)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_new_models_sizes_are_what_their_names_mean(tmp_path: Path) -> None:
    write_new("model", "sized_net", tmp_path)
    load_plugin(tmp_path / "sized_net.py")
    image = ImageSpec(28, 1)
    params = {size: cost.count(lambda size=size: build("sized_net", size, {}, image, 10), image).params
              for size in MODELS.get("sized_net").meta.sizes}
    assert all(abs(params[size] / wanted - 1) < 0.05 for size, wanted in (("xs", 20e3), ("s", 100e3), ("m", 400e3)))


@pytest.mark.parametrize(("kind", "name", "message"), [
    ("study", "", "letters, digits"), ("study", "a/b", "found 'a/b'"), ("study", ".hidden", "found '.hidden'"),
    ("study", "-q", "found '-q'"), ("study", "mine.yaml", "nor end in .yaml"), ("study", "quick", "is taken"),
    ("study", "study", "is taken"), ("model", "My", "found 'My'"), ("model", "../up", "found"),
    ("model", "class", "no word of Python's"), ("model", "n" * 65, "1 to 64"), ("model", "mlp", "ships with vitbench"),
    ("model", "digits", "ships with vitbench"), ("claim", "My", "a claim's should be"),
    ("claim", "attention_overtakes_with_enough_data", "ships with vitbench"), ("claim", "mlp", "ships with vitbench"),
])
def test_a_bad_name_is_refused_with_what_is_allowed(tmp_path: Path, kind: str, name: str, message: str) -> None:
    with pytest.raises(BadName, match=message):
        write_new(kind, name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "file"), [("study", "mine.yaml"), ("model", "mine.py"), ("claim", "mine.py")])
def test_no_file_is_overwritten(tmp_path: Path, kind: str, file: str) -> None:
    (tmp_path / file).write_text("precious")
    with pytest.raises(BadName, match="is there already and is left as it is"):
        write_new(kind, "mine", tmp_path)
    assert (tmp_path / file).read_text() == "precious"


def test_a_model_is_not_named_like_a_module_that_its_file_would_hide(tmp_path: Path) -> None:
    ended = vitbench("new", "model", "torch", cwd=tmp_path)
    assert ended.returncode == 2
    assert "'torch' is a module of Python's or of a package here" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_message(tmp_path: Path) -> None:
    ended = vitbench("new", "study", "z", "--folder", "/proc", cwd=tmp_path)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_a_new_claim_is_judged_on_a_new_study(tmp_path: Path) -> None:
    assert vitbench("new", "study", "mine", cwd=tmp_path).returncode == 0
    said = vitbench("new", "claim", "my_claim", cwd=tmp_path).stdout
    named = yaml.safe_load(said.partition("folder:\n")[2].partition("then")[0])
    assert named == {"claims": ["my_claim"], "plugins": ["my_claim.py"]}
    (tmp_path / "mine.yaml").write_text((tmp_path / "mine.yaml").read_text() + yaml.dump(named))
    ended = vitbench("run", "mine.yaml", "fractions=[0.1]", "budgets=[{steps: 5}]", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    record = next(tmp_path.glob("results/mine/runs/[!.]*/record.json"))
    assert RunRecord.from_json(record.read_bytes()).spec.plugins == {}
    assert "**undecided** (unanchored): 2 seeds: a verdict needs 6 or more" in vitbench(
        "claims", "mine", "--allow-plugins", cwd=tmp_path).stdout


def test_check_accepts_the_new_claim_and_names_a_broken_promise(tmp_path: Path) -> None:
    write_new("claim", "my_claim", tmp_path)
    path = tmp_path / "my_claim.py"
    sound = vitbench("check", "my_claim.py", cwd=tmp_path)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    assert [line.split()[:2] for line in sound.stdout.splitlines()] == [["ok", "my_claim:"]] * len(PROMISES)
    source = path.read_text()
    path.write_text(source.replace("return rule_g(difference, margin=MARGIN)",
                                   'return Verdict(outcome="holds", sentence="I know")'))
    broken = vitbench("check", "my_claim.py", cwd=tmp_path)
    assert broken.returncode == 1
    assert "should hold in 2 of 40 studies of its null at most; found 40" in broken.stdout
    path.write_text(source.replace("power=0.85", "power=0.1"))
    refused = vitbench("check", "my_claim.py", cwd=tmp_path)
    assert refused.returncode == 2
    assert "power: should be .5 to 1" in refused.stderr


def test_checking_a_claim_does_not_load_torch(tmp_path: Path) -> None:
    write_new("claim", "my_claim", tmp_path)
    argv = ["vitbench", "check", str(tmp_path / "my_claim.py")]
    assert not loads_torch(f"import sys; sys.argv = {argv!r}\nfrom vitbench.cli import main\n"
                           "try: main()\nexcept SystemExit as end: assert end.code == 0")
