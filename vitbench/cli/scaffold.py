"""`new`: a first file of a study, a model or a claim, ready to run."""

import importlib.util
import keyword
from pathlib import Path

from vitbench.claims import CLAIMS
from vitbench.config.load import STUDY_NAME_CHARACTERS, shipped_studies
from vitbench.datasets import DATASETS
from vitbench.models import MODELS
from vitbench.registry import PLUGIN_NAME

KINDS = ("study", "model", "claim")

STUDY = """\
# Question   {name}: what is to be answered?
# Command    vitbench run {name}.yaml        (first: vitbench plan {name}.yaml)
# Completion in an editor: `vitbench schema > study.schema.json`, and as the first line of this file
#            # yaml-language-server: $schema=study.schema.json
question: Who overfits a handful of handwritten digits, attention or convolution?
dataset: digits                  # vitbench list datasets
models:                          # vitbench list models
  - token_transformer:xs
  - convnet:xs
  - linear
fractions: [0.1, 1]              # or images_per_class: [2, 5]
seeds: 2                         # for looking; intervals can be relied on from 6 on
budgets:
  - steps: 30                    # for a first look; 300 and more for numbers that are to stand
recipe:
  batch_size: 32
  learning_rate: 0.003
"""

MODEL = '''\
"""What this model is, and where it comes from (paper, equation, table)."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from vitbench.models import MODELS, Card, ModelMeta
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn


class Options(Frozen):
    """What a study may set beside the name; a size sets it too."""

    width: Annotated[int, Field(ge=1, le=4096)] = 24


# About 20 k, 100 k and 400 k parameters at 28 x 28 pixels, 1 channel and 10 classes: what xs, s and m mean.
SIZES = {{"xs": {{"width": 32}}, "s": {{"width": 73}}, "m": {{"width": 148}}}}


def card(options: Options, image: ImageSpec) -> Card:
    return {{"stem": "3x3", "stride": 1, "normalisation": "BatchNorm"}}


@MODELS.add("{name}", ModelMeta("convolution", options=Options, sizes=SIZES, card=card))
def {name}(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    from torch import nn  # in here, so that commands that only read stay quick

    width = options.width
    return nn.Sequential(
        nn.Conv2d(image.channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, num_classes))
'''

CLAIM = '''\
"""What this claim says, and why it could be true or false."""

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import (Cell, Evidence, Expected, Planted, Verdict, accuracy_difference, matched_pairs,
                               rule_g)

MARGIN = 0.01  # the smallest difference that matters: one point of test accuracy


def planted(cell: Cell) -> Expected:
    """What runs have on average in a made-up study in which the claim is true."""
    return Expected(accuracy=0.92 if cell.family == "attention" else 0.90)


@CLAIMS.add("{name}", ClaimMeta(
    sentence="On the study's largest size of data, attention is more accurate than CNNs of its size.",
    source="where it is said: paper, section, figure",
    null="Attention and CNNs of its size are equally accurate.",
    # Power: the share of such studies that give `holds`. `vitbench check` counts it.
    planted=Planted("2 points ahead, 10 seeds", planted, power=0.85),
    margin=MARGIN))
def {name}(evidence: Evidence) -> Verdict:
    # One stratum for each regime, budget and pair with the same number of parameters.
    pairs = matched_pairs(evidence, evidence.full)
    # Attention minus CNN inside each seed, so that both saw the same images.
    difference = accuracy_difference(evidence, pairs, evidence.full)
    return rule_g(difference, margin=MARGIN)
'''

TEXTS = {"study": STUDY, "model": MODEL, "claim": CLAIM}
NEXT = {"study": "next: vitbench plan {file}; vitbench run {file}",
        "model": "check it: vitbench check {file}\nand name it in a study in the same folder:\n"
                 "    models: [{name}:xs, convnet:xs]\n    plugins: [{name}.py]",
        "claim": "check it: vitbench check {file}\nand name it in a study in the same folder:\n"
                 "    claims: [{name}]\n    plugins: [{name}.py]\n"
                 "then, once the study has run: vitbench claims STUDY --allow-plugins"}


class BadName(ValueError):
    """A name that no new file can have; the message says what is allowed."""


def write_new(kind: str, name: str, folder: Path) -> None:
    """Write the file and say what comes next. Raises BadName; overwrites nothing."""
    _refuse_study(name) if kind == "study" else _refuse_plugin(kind, name)
    path = folder / f"{name}{'.yaml' if kind == 'study' else '.py'}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEXTS[kind].format(name=name))
    except FileExistsError:
        there = path if folder.is_dir() else folder
        raise BadName(f"{there} is there already and is left as it is; choose another name or --folder") from None
    print(f"wrote {path}\n{NEXT[kind].format(file=path, name=name)}")


def _refuse_study(name: str) -> None:
    if not name or not set(name) <= STUDY_NAME_CHARACTERS or name[0] in ".-" or name.endswith((".yaml", ".yml")):
        raise BadName(f"NAME: a study's should hold letters, digits, ., _ and - only, and neither begin with . or - "
                      f"nor end in .yaml; found {name!r}")
    shipped = sorted({"study", *(path.stem for path in shipped_studies().glob("*.yaml"))})  # study.yaml is a result's
    if name in shipped:
        raise BadName(f"NAME: {name!r} is taken by vitbench; choose another than {', '.join(shipped)}")


def _refuse_plugin(kind: str, name: str) -> None:
    if not PLUGIN_NAME.fullmatch(name) or keyword.iskeyword(name):
        raise BadName(f"NAME: a {kind}'s should be 1 to 64 small letters, digits and _, begin with a letter, and be no "
                      f"word of Python's own; found {name!r}")
    if importlib.util.find_spec(name):
        raise BadName(f"NAME: {name!r} is a module of Python's or of a package here, which the file would hide; choose "
                      "another")
    shipped = sorted({*MODELS.shipped(), *DATASETS.shipped(), *CLAIMS.shipped()})
    if name in shipped:
        raise BadName(f"NAME: {name!r} ships with vitbench; choose another than {', '.join(shipped)}")
