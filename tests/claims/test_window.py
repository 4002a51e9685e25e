"""a_window_needs_ever_more_parameters: each of its four facts can fail; accuracies are described."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.claims.simulated import study_of
from vitbench.claims import judge
from vitbench.measurement import Measurement, Value
from vitbench.probes._measure import Question
from vitbench.verdicts import Cell, Evidence, Expected
from vitbench.verdicts.conformance import NOTHING

CLAIM, PROBE = "a_window_needs_ever_more_parameters", "window_parameters"
Count = Callable[[int], float]
WINDOWS = (1, 3, 5, 7)


def evidence(connected: Count = lambda w: 1000.0 * w**2, attention: Count = lambda w: 4000.0,
             model: float = 20_000.0, models: Any = ("attention:s",)) -> Evidence:
    """`connected` and `attention` are parameters of a layer at a window; `model` those of window_fc, of 4,000."""

    def found(cell: Cell | None, _: np.random.Generator) -> list[dict[str, Value]]:
        size: dict[str, Value] = {"width": 64, "tokens": 4}
        layers = [{"part": "layer", "window": w, "parameters": connected(w), "attention": attention(w), **size}
                  for w in WINDOWS]
        whole = {"part": "model", "window": 7, "parameters": model, "attention": 4000, **size}
        return [] if cell else [*reversed(layers), whole]

    study = {"models": list(models), "images_per_class": [20, 80], "seeds": 2}
    return study_of(lambda cell: Expected(0.9 - 0.1 * ("wide" in cell.label)), study, probes={PROBE: found})


@pytest.mark.parametrize(("changed", "outcome", "words"), [
    ({}, "holds", "The layer's parameters rise with each wider window, from 1,000 to 49,000; they grow as w to the "
                  "power 2.00 to 2.00, within 0.9 to 2.1; those of attention stay at 4,000; a window of the whole "
                  "image takes 12.2 times those of attention of the same width, and 5 times those of a matched model, "
                  "more than"),
    ({"connected": lambda w: 1000.0 * min(w, 5)**2}, "fails", "Not so: the layer's parameters rise"),
    ({"connected": lambda w: 1000.0 * w**0.8, "attention": lambda w: 1000.0}, "fails",
     "Not so: they grow as w to the power 0.80 to 0.80, within 0.9 to 2.1"),
    ({"connected": lambda w: 1000.0 * w**2.2}, "fails", "Not so: they grow as w to the power 2.20"),
    ({"connected": lambda w: 100.0 * (w**2 if w < 7 else w**3)}, "fails", "Not so: they grow"),
    ({"attention": lambda w: 4000.0 + w}, "fails", "Not so: those of attention stay at 4,001"),
    ({"attention": lambda w: 24_500.0}, "fails", "Not so: a window of the whole image takes 2 times"),
    ({"model": 7000.0}, "fails", "Not so: a window of the whole image takes 12.2 times those of attention of the same "
                                 "width, and 1.75 times"),
])
def test_all_of_it_has_to_be_so(changed: dict[str, Any], outcome: str, words: str) -> None:
    found = judge(CLAIM, evidence(**changed))
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)
    assert (found.effect, found.legs) == (None, ())


def test_accuracy_against_window_is_described_at_the_full_size() -> None:
    models = [{"name": "window_fc", "size": "s", "window": window, "label": label}
              for window, label in ((7, "wide"), (3, "narrow"))]
    (leg,) = judge(CLAIM, evidence(models=models)).legs
    assert (leg.name, leg.outcome) == ("accuracy against window, at 80 a class (800 drawn images)", None)
    narrow, wide = leg.sentence.split("; ")
    assert narrow.startswith("narrow (window 3) 0.")
    assert wide.startswith("wide (window 7) 0.")
    assert [float(one.split()[3].rstrip(",")) for one in (narrow, wide)] == pytest.approx([0.9, 0.8], abs=0.04)
    assert wide.endswith(", n = 2")


def test_without_the_probe_it_says_what_to_run() -> None:
    found = judge(CLAIM, replace(evidence(), measured=lambda _: ()))
    assert found.outcome == "undecided"
    assert found.sentence.endswith("run `vitbench probe window_parameters`")


def test_it_holds_on_what_the_probe_measures_at_any_width_and_size(tmp_path: Path) -> None:
    found: list[Measurement] = [Question(PROBE, options, tmp_path).measured(print)
                                for options in ({}, {"width": 8, "image": 8})]
    assert judge(CLAIM, replace(NOTHING, measured=lambda _: tuple(found))).outcome == "holds"
