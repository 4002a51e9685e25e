"""A metric of one's own, and what it may give."""

from pathlib import Path

import numpy as np
import pytest

from vitbench import registry
from vitbench.metrics import METRICS, MetricError, MetricMeta, compute
from vitbench.registry import PluginError, UnknownName, load_plugin

MINE = """
import numpy as np
from vitbench.metrics import METRICS, MetricMeta

@METRICS.add("mine", MetricMeta(version=2, unit="shares", better="lower", meaning="of mine", source="here",
                                per_class={per_class}))
def mine(logits_IC, labels_I):
    return {value}
"""


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METRICS, "_entries", dict(METRICS._entries))
    monkeypatch.setattr(registry, "_LOADED", dict(registry._LOADED))


def load(folder: Path, value: str, *, per_class: bool = False) -> None:
    (folder / "mine.py").write_text(MINE.format(value=value, per_class=per_class))
    load_plugin(folder / "mine.py")


@pytest.mark.parametrize(("value", "per_class", "found"), [
    ("0.5", False, 0.5), ("np.float32(0.5)", False, 0.5), ("1", False, 1.0), ("None", False, None),
    ("[0.5, None]", True, (0.5, None)), ("np.array([0.25, 1])", True, (0.25, 1.0)),
])
def test_a_metric_of_ones_own_gives_plain_numbers(tmp_path: Path, value: str, per_class: bool, found: object) -> None:
    load(tmp_path, value, per_class=per_class)
    assert compute("mine", np.eye(2), np.arange(2)) == found
    assert METRICS.get("mine").plugin_sha256 is not None


@pytest.mark.parametrize(("value", "per_class", "message"), [
    ("float('nan')", False, "should give a finite number, or None where it is undefined; found nan"),
    ("np.inf", False, "finite number"), ("'much'", False, "found 'much'"), ("[1.0]", False, r"found \[1.0\]"),
    ("0.5", True, "should give 2 numbers, one a class; found 0.5"), ("[1, 2, 3]", True, "should give 2 numbers"),
    ("[1, float('nan')]", True, "finite number"), ("1 / 0", False, "'mine' fails: ZeroDivisionError"),
])
def test_what_is_no_number_is_refused(tmp_path: Path, value: str, per_class: bool, message: str) -> None:
    load(tmp_path, value, per_class=per_class)
    with pytest.raises(MetricError, match=message):
        compute("mine", np.eye(2), np.arange(2))


def test_a_direction_is_one_of_two() -> None:
    with pytest.raises(PluginError, match=r"better: should be one of higher, lower; found 'highest'.*'higher'"):
        MetricMeta(version=1, unit="", better="highest", meaning="", source="")  # type: ignore[arg-type]


def test_an_unknown_metric_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'balanced_accuracy'"):
        compute("balance_accuracy", np.eye(2), np.arange(2))
