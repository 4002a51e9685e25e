"""convolution_is_restricted_attention: exact, on what the probe built; trained heads stand beside it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.claims.simulated import level, study_of
from vitbench.claims import judge
from vitbench.measurement import Measurement, Value
from vitbench.probes._measure import Question
from vitbench.verdicts import Cell, Evidence
from vitbench.verdicts.conformance import NOTHING

CLAIM, PROBE = "convolution_is_restricted_attention", "attention_as_convolution"
Rows = list[dict[str, Value]]
DEFAULT = {1: 34, 3: 33, 5: 33}


def built(difference: float = 2e-15, convolutions: dict[int, int] = DEFAULT) -> Rows:
    """The last kernel differs by the most."""
    return [{"part": "built from a convolution", "kernel": kernel, "convolutions": count,
             "difference": difference * (kernel == max(convolutions))} for kernel, count in convolutions.items()]


def evidence(of_mechanism: Rows, *masses: float) -> Evidence:
    """Of two runs, with heads that have so much of their attention on one offset."""

    def found(cell: Cell | None, _: np.random.Generator) -> Rows:
        if cell is None:
            return [*of_mechanism, {"part": "sharpness of positions", "kernel": 3, "difference": 5.0}]
        return [{"part": "trained heads", "layer": 0, "head": head, "mass": mass} for head, mass in enumerate(masses)]

    return study_of(level, {"models": ["attention:s"], "images_per_class": [20], "seeds": 2}, probes={PROBE: found})


@pytest.mark.parametrize(("difference", "outcome", "words"), [
    (2e-15, "holds", "Attention computes 100 random convolutions with kernels of 1, 3 and 5, borders included, to less "
                     "than 1e-10; the largest difference is 2e-15"),
    (9.9e-11, "holds", "Attention computes"), (1e-10, "fails", "Not so: attention computes"),
    (0.3, "fails", "Not so: attention computes 100 random convolutions")])
def test_the_largest_difference_decides(difference: float, outcome: str, words: str) -> None:
    found = judge(CLAIM, evidence(built(difference)))
    assert (found.outcome, found.sentence[:len(words)]) == (outcome, words)
    assert (found.effect, found.run_ids) == (None, ())


@pytest.mark.parametrize("convolutions", [{1: 33, 3: 33, 5: 33}, {1: 50, 3: 50}, {1: 34, 3: 33, 7: 33}])
def test_fewer_or_other_convolutions_are_no_ground_for_it(convolutions: dict[int, int]) -> None:
    found = judge(CLAIM, evidence(built(convolutions=convolutions)))
    assert found.outcome == "undecided"
    assert found.sentence.endswith("run `vitbench probe attention_as_convolution`")


def test_of_several_measurements_each_of_so_many_counts_and_no_other() -> None:
    (good,), (bad,) = (evidence(built(by)).probe(PROBE) for by in (2e-15, 0.3))
    (few,) = evidence(built(0.3, {1: 1, 3: 1, 5: 1})).probe(PROBE)
    of: Callable[..., str] = lambda *all_of: judge(CLAIM, replace(NOTHING, measured=lambda _: all_of)).outcome  # noqa: E731
    assert (of(good, few), of(good, bad), of(few)) == ("holds", "fails", "undecided")


def test_trained_heads_are_described() -> None:
    (leg,) = judge(CLAIM, evidence(built(), 0.95, 0.9, 0.3)).legs
    assert leg.outcome is None
    assert leg.sentence == ("of 6 in runs of this study 4 have 0.9 or more of their attention on one offset; the "
                            "largest share is 0.95")
    assert judge(CLAIM, evidence(built())).legs == ()


def test_it_holds_on_what_the_probe_measures(tmp_path: Path) -> None:
    one: Measurement = Question(PROBE, {}, tmp_path).measured(print)
    assert judge(CLAIM, replace(NOTHING, measured=lambda _: (one,))).outcome == "holds"
