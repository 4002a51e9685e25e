"""What `vitbench run` refuses before it trains, and runs that fail."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.driver import STUDY, interrupt, start, until, vitbench, write_study
from tests.requirements import require_dataset
from vitbench.study.slow import LONGEST_SECONDS

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


NO_PLACE = """\
from vitbench.datasets import DATASETS, DatasetMeta
from vitbench.spec import Duplicates, ImageSpec

@DATASETS.add("where", DatasetMeta(
    version=1, image=ImageSpec(8, 1), class_names=("left", "right"), train_counts=(9, 9), test_counts=(3, 3),
    source="made up", licence="CC0", citation="none", split="none", keeps_labels=("contrast",), sha256="0" * 64,
    duplicates=Duplicates(test_in_train=0, within_train=0)))
def where():
    raise AssertionError("nothing is read")
"""


def test_a_regime_that_the_dataset_forbids_is_refused_and_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "where.py").write_text(NO_PLACE)
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "dataset=where", "plugins=[where.py]", "regimes=[none,light]",
                     "fractions=[1]", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == ("error: tiny.yaml: regimes[1]: 'light' is forbidden by this dataset: it would shift, flip, "
                            "and the labels stay true only under contrast; allowed: none, strong\n")
    assert not (tmp_path / "results").exists()


def test_runs_that_do_not_fit_into_memory_are_refused_before_training(tmp_path: Path) -> None:
    write_study(tmp_path)
    huge = "models=[{name: token_transformer, size: xl, embed_dim: 4096, depth: 64}]"
    ended = vitbench("run", "tiny.yaml", huge, "--workers", 1, cwd=tmp_path)
    assert ended.returncode == 2
    assert "1 runs at a time need 2" in ended.stderr  # 206 GB for weights, gradients and averages
    assert "not even one fits: take a smaller model or batch_size" in ended.stderr


def test_attention_that_does_not_fit_into_memory_is_refused_with_what_would(tmp_path: Path) -> None:
    write_study(tmp_path)
    # The additive score of 64 pixels holds 64 x 64 x 512 numbers in each of 16 blocks.
    wide = "models=[{name: token_transformer, size: s, tokens: pixel, score: additive, embed_dim: 512, depth: 16}]"
    ended = vitbench("run", "tiny.yaml", wide, "fractions=[1]", "recipe.batch_size=1024", "--workers", 1, cwd=tmp_path)
    assert ended.returncode == 2
    assert re.search(r"the largest is token_transformer:s with batches of 1024: at least \d{3}\.\d GB\. not even one "
                     r"fits: with (tokens: patch, patch_size: 2 or )?batch_size: \d+ one would fit$", ended.stderr)


def test_a_run_that_no_core_could_end_within_the_limit_is_refused_before_training(tmp_path: Path) -> None:
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "models=[{name: token_transformer, size: xl, tokens: pixel}]",
                     "budgets=[{steps: 1000000}]", cwd=tmp_path)
    assert ended.returncode == 2
    assert "error: a run of token_transformer:xl (share 0.1, steps:1000000) would take at least " in ended.stderr
    assert "a run may take 4 h 00 min. By a rough estimate steps: " in ended.stderr
    assert ended.stderr.endswith("would fit; --allow-slow runs it all the same\n")
    assert not list(tmp_path.glob("results/tiny/runs/*"))


def test_a_run_that_might_be_slow_is_measured_and_refused_with_what_was_found(tmp_path: Path) -> None:
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "models=[linear]", "fractions=[0.1]", "seeds=1",
                     "budgets=[{steps: 10000000000}]", cwd=tmp_path)
    assert ended.returncode == 2
    assert "measuring linear, whose runs may be long" in ended.stdout
    assert "as measured here; a run may take 4 h 00 min. steps: " in ended.stderr
    planned = vitbench("plan", "tiny.yaml", "models=[linear]", "fractions=[0.1]", "seeds=1",
                       "budgets=[{steps: 10000000000}]", "--json", "--workers", 1, cwd=tmp_path)
    assert planned.returncode == 2
    assert json.loads(planned.stdout)["too_slow"] in planned.stderr


def test_a_slow_run_starts_where_that_is_allowed(tmp_path: Path) -> None:
    write_study(tmp_path)
    process = start("run", "tiny.yaml", "models=[{name: token_transformer, size: xl, tokens: pixel}]", "seeds=1",
                    "fractions=[0.1]", "budgets=[{steps: 1000000}]", "--allow-slow", cwd=tmp_path)
    until(lambda: list(tmp_path.glob("results/tiny/live/*.json")))
    out, _ = interrupt(process)
    assert process.returncode == 130
    assert "would fit (--allow-slow)" in out
    assert "measuring" not in out


def test_the_help_tells_the_limit() -> None:
    assert "4 hours" in " ".join(vitbench("run", "--help", cwd=Path()).stdout.split())
    assert LONGEST_SECONDS == 4 * 3600


def test_a_budget_that_buys_no_step_is_refused_before_training(tmp_path: Path) -> None:
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "budgets=[{flops: 10}]", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: a budget of 10 flops is less than one step of")


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


def test_a_quiet_run_still_names_what_failed(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN_IN_TRAINING)
    write_study(tmp_path)
    ended = vitbench("run", "tiny.yaml", "-q", "models=[broken]", "plugins=[broken.py]", "fractions=[0.1]", "seeds=1",
                     cwd=tmp_path)
    assert ended.returncode == 1
    assert len([line for line in ended.stdout.splitlines() if line.startswith("failed: ")]) == 1


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
