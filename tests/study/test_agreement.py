"""When a run trained again is the run of its record."""

from typing import Any

import pytest

from tests.made_records import a_failure, a_record
from vitbench.record import RunRecord
from vitbench.spec import RunSpec
from vitbench.study.agreement import EARLY_LOSS, EARLY_STEPS, FINAL_ACCURACY, differences

BEFORE = a_record()


def changed(part: str, **values: Any) -> RunRecord:
    return BEFORE.model_copy(update={part: getattr(BEFORE, part).model_copy(update=values)})


def early(factor: float, of: RunRecord = BEFORE, column: str = "train_loss") -> RunRecord:
    """The first curve point moved; it is before EARLY_STEPS."""
    first, *rest = getattr(of.curves, column)
    return of.model_copy(update={"curves": of.curves.model_copy(update={column: (first * factor, *rest)})})


@pytest.mark.parametrize("exactly", [True, False])
def test_times_places_and_memory_are_no_numbers_of_a_run(exactly: bool) -> None:
    again = changed("cost", seconds=99.0, train_images_per_second=1.0, peak_memory_bytes=1)
    again = again.model_copy(update={"started": "2027-01-01T00:00:00Z", "card": {}})
    assert differences(BEFORE, again, exactly=exactly)[0] == []


@pytest.mark.parametrize(("again", "named"), [
    (early(1 + 1e-6), "curves.train_loss"), (changed("final", train_loss=0.010001), "final.train_loss"),
    (changed("final", test_accuracy=0.8), "final.test_accuracy 0.7, now 0.8"),
    (BEFORE.model_copy(update={"predictions_sha256": "0" * 64}), "logits"),
    (BEFORE.model_copy(update={"test_correct": "AAA="}), "hits"),
    (changed("data", subset="0" * 64), "data.subset"), (changed("cost", macs=5001), "cost.macs 5000, now 5001"),
])
def test_on_the_same_machine_every_number_must_be_equal(again: RunRecord, named: str) -> None:
    assert any(named in fault for fault in differences(BEFORE, again, exactly=True)[0])


@pytest.mark.parametrize("column", ["train_loss", "val_loss", "test_loss"])
def test_elsewhere_early_losses_tell_the_run_from_another(column: str) -> None:
    assert BEFORE.curves.step[0] <= EARLY_STEPS < BEFORE.curves.step[1]
    limit = EARLY_LOSS["fp32"]
    assert differences(BEFORE, early(1 + 0.9 * limit, column=column), exactly=False)[0] == []
    ((fault),) = differences(BEFORE, early(1 + 1.1 * limit, column=column), exactly=False)[0]
    assert fault.startswith("losses up to step 10 by 0.0011 of themselves")


def test_bf16_is_given_more_room() -> None:
    spec = RunSpec.model_validate(BEFORE.spec.model_dump() | {"recipe": {"precision": "bf16"}})
    before = BEFORE.model_copy(update={"spec": spec})
    assert differences(before, early(1.005, before), exactly=False)[0] == []
    assert differences(before, early(1.02, before), exactly=False)[0]


@pytest.mark.parametrize(("images", "off", "agrees"), [
    (10, 0.3, True), (10, 0.4, False),  # three images of ten
    (1000, FINAL_ACCURACY, True), (1000, FINAL_ACCURACY + 0.001, False),
])
def test_elsewhere_final_accuracies_may_be_off_by_a_little(images: int, off: float, agrees: bool) -> None:
    before = changed("data", test_images=images)
    final = before.final.model_copy(update={"test_accuracy": 0.7 - off})
    wrong, told = differences(before, before.model_copy(update={"final": final}), exactly=False)
    assert (wrong == []) is agrees
    assert f"final test accuracy by {off:.4f}" in told


@pytest.mark.parametrize("again", [changed("data", subset="0" * 64), changed("cost", params=1001),
                                   changed("curves", step=(0, 100, 301))])
def test_elsewhere_what_is_no_measurement_must_still_be_equal(again: RunRecord) -> None:
    assert differences(BEFORE, again, exactly=False)[0]


DIVERGED = a_record(outcome="diverged", reason="loss not finite", final={}, test_correct=None, predictions_sha256=None)


@pytest.mark.parametrize("exactly", [True, False])
def test_a_run_that_diverged_must_diverge_again(exactly: bool) -> None:
    assert differences(DIVERGED, DIVERGED, exactly=exactly)[0] == []
    assert differences(DIVERGED, BEFORE, exactly=exactly)[0] == ["it ended as diverged, now as done"]
    assert differences(BEFORE, DIVERGED, exactly=exactly)[0] == ["it ended as done, now as diverged (loss not finite)"]


def test_a_run_that_failed_must_fail_again() -> None:
    assert differences(a_failure(), a_failure(), exactly=False) == ([], ": failed again")
    assert differences(a_failure(), BEFORE, exactly=False)[0] == ["it ended as failed, now as done"]
    assert differences(BEFORE, a_failure(), exactly=False)[0] == ["it ended as done, now as failed (ValueError: no)"]
