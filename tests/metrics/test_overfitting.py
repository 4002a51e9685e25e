from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import agrees, known
from vitbench.metrics import fit_state, over_confident, overfitting

LOSSES = st.lists(st.floats(0, 100), min_size=1, max_size=30)


@pytest.mark.parametrize("vector", known("fit_state"))
def test_states_are_the_known_ones(vector: dict[str, Any]) -> None:
    inputs = vector["inputs"]
    along = None
    if inputs["val_loss"] is not None:
        along = overfitting(inputs["val_loss"], inputs["test_loss"], inputs["test_error"])
    found = {
        "onset_index": along and along.onset_index, "rise": along and along.rise, "harm": along and along.time_harm,
        "test_loss_ratio": along and along.test_loss_ratio,
        "overconfident": over_confident(along.test_loss_ratio if along else None),
        "state": fit_state(inputs["train_error"][-1], inputs["test_error"][-1], along.time_harm if along else None),
    }
    assert set(found) == set(vector["expected"])
    for key, value in found.items():
        assert agrees(value, vector, key), (key, value)


@given(LOSSES)
def test_the_onset_is_the_first_lowest_validation_loss(val_loss: list[float]) -> None:
    found = overfitting(val_loss, val_loss, [0.5] * len(val_loss))
    assert val_loss[found.onset_index] == min(val_loss)
    assert min(val_loss) not in val_loss[: found.onset_index]
    assert found.rise == val_loss[-1] - min(val_loss)
    assert found.rise >= 0


@given(LOSSES, st.data())
def test_test_columns_never_move_the_onset(val_loss: list[float], data: st.DataObject) -> None:
    column = st.lists(st.floats(0.01, 1), min_size=len(val_loss), max_size=len(val_loss))
    test_loss, test_error = data.draw(column), data.draw(column)
    assert overfitting(val_loss, test_loss, test_error).onset_index == overfitting(
        val_loss, test_loss[::-1], test_error[::-1]).onset_index


@pytest.mark.parametrize(("train", "test", "harm", "state"), [
    (0.02, 0.03, 0.0, "fit"), (0.0201, 0.03, 0.0, "underfit"),  # the floor
    (0.10, 0.20, 0.0, "fit"), (0.1001, 0.20, 0.0, "underfit"),  # half the test error
    (0.0, 0.21, 0.21 - 0.20, "overfit"),  # .00999... as a float, .01 as decimals
    (0.0, 0.2, 0.0099, "fit"), (0.0, 0.2, -0.1, "fit"),
    (0.3, 0.3, 0.1, "underfit"),  # underfit before overfit
    (0.0, 0.2, None, "unknown"), (0.3, 0.3, None, "underfit"),
])
def test_the_thresholds_of_the_fit_state(train: float, test: float, harm: float | None, state: str) -> None:
    assert fit_state(train, test, harm) == state


def test_the_studys_own_constants_count() -> None:
    assert fit_state(0.1, 0.1, 0.0, train_error_floor=0.2) == "fit"
    assert fit_state(0.0, 0.2, 0.05, harm=0.06) == "fit"
    assert over_confident(1.3, threshold=1.4) is False


@pytest.mark.parametrize(("ratio", "expected"), [(1.10, True), (1.0999, False), (0.33 / 0.30, True),
                                                 (float("inf"), True), (None, None)])
def test_over_confidence_begins_at_a_tenth_more_loss(ratio: float | None, expected: bool | None) -> None:
    assert over_confident(ratio) is expected


@pytest.mark.parametrize(("last", "ratio"), [(0.0, 1.0), (0.5, float("inf"))])
def test_a_test_loss_of_nothing_at_the_onset_divides_nothing(last: float, ratio: float) -> None:
    assert overfitting([0.1, 0.2], [0.0, last], [0.0, 0.0]).test_loss_ratio == ratio
