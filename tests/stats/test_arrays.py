"""What a statistic takes."""

from typing import Any

import numpy as np
import pytest

from vitbench.stats.arrays import finite


def test_numbers_become_floats_of_the_layout() -> None:
    assert finite([[1, 2], [3, 4]], "MS", least=2).dtype == np.float64
    assert finite((0.5,), "S").tolist() == [0.5]


@pytest.mark.parametrize(("values", "layout", "message"), [
    ([], "S", r"layout S >= 2; found \[\]"), ([0.1], "S", r"found \[0\.1\]"),
    ([0.1, float("nan")], "S", r"found \[0\.1, nan\]"), ([0.1, float("-inf")], "S", "inf"),
    ([[0.1, 0.2]], "MS", r"layout M >= 2 x S >= 2; found \[\[0\.1, 0\.2\]\]"),
    ([[0.1, 0.2], [0.3]], "MS", r"found \[\[0\.1, 0\.2\], \[0\.3\]\]"), ([0.1, 0.2], "MS", "layout M"),
    (["a", "b"], "S", r"found \['a', 'b'\]"), (None, "S", "found None"),
])
def test_anything_else_is_named(values: Any, layout: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        finite(values, layout, least=2)
