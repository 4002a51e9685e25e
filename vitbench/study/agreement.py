"""Whether a run trained again agrees with its record: exactly on the same machine, elsewhere within a tolerance."""

from math import isclose
from typing import Any

from vitbench.record import Failure, RunRecord

# Elsewhere sums are taken in another order, and training lets the last bits grow. 60 runs of digits (docs/log.md) were
# trained with AVX2 and again with the oldest instructions of the same processor: up to step 10 losses differed by
# 3.4e-5 of themselves at most (bf16: 8.5e-4), at the end test accuracy by 12 of 360 images and the test loss by 35 %.
# So early losses say whether it is the same run, and the end only whether the record can be of it.
EARLY_STEPS = 10
EARLY_LOSS = {"fp32": 1e-3, "bf16": 1e-2}  # relative
FINAL_ACCURACY = 0.05  # or three images
TOLERANCE = (f"elsewhere losses up to step {EARLY_STEPS} within {EARLY_LOSS['fp32']:g} of themselves (bf16: "
             f"{EARLY_LOSS['bf16']:g}) and final accuracies within {FINAL_ACCURACY:g} or three images")


def differences(before: RunRecord | Failure, again: RunRecord | Failure, *, exactly: bool) -> tuple[list[str], str]:
    """What differs more than it may (nothing at all, or TOLERANCE), and a text of the largest differences."""
    outcomes = [ended.outcome if isinstance(ended, RunRecord) else "failed" for ended in (before, again)]
    if outcomes[0] != outcomes[1]:
        return [f"it ended as {outcomes[0]}, now as {outcomes[1]}{f' ({again.reason})' if again.reason else ''}"], ""
    if isinstance(before, Failure) or isinstance(again, Failure):
        return [], ": failed again"
    if exactly:
        numbers = _numbers(again)
        wrong = [f"{key} {_short(value)}, now {_short(numbers[key])}" for key, value in _numbers(before).items()
                 if value != numbers[key]]
        return wrong, "" if wrong else ": curves, final metrics and logits are the same"
    return _nearly(before, again)


def _numbers(record: RunRecord) -> dict[str, Any]:
    """All of a record that is no time, place or memory, by name."""
    parts = {part: getattr(record, part).model_dump() for part in ("data", "curves", "final")}
    parts["cost"] = record.cost.model_dump(include={"params", "macs", "activations"})
    return {"reason": record.reason, "family": record.family, "hits": record.test_correct,
            "logits": record.predictions_sha256,
            **{f"{part}.{key}": value for part, values in parts.items() for key, value in values.items()}}


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


_ALWAYS = ("family", "data.", "cost.", "curves.step", "curves.images_seen")


def _nearly(before: RunRecord, again: RunRecord) -> tuple[list[str], str]:
    first, second = _numbers(before), _numbers(again)
    wrong = [f"{key} {_short(value)}, now {_short(second[key])}" for key, value in first.items()
             if key.startswith(_ALWAYS) and (before.outcome == "done" or not key.startswith("curves."))
             and value != second[key]]
    early = max((_relative(a, b) for name in ("train_loss", "val_loss", "test_loss")
                 for step, a, b in zip(before.curves.step, getattr(before.curves, name) or (),
                                       getattr(again.curves, name) or (), strict=False)
                 if step <= EARLY_STEPS), default=0.0)
    limit = EARLY_LOSS[before.spec.recipe.precision]
    if early > limit:
        wrong.append(f"losses up to step {EARLY_STEPS} by {early:.2g} of themselves, allowed {limit:g}")
    told = f": losses up to step {EARLY_STEPS} differ by {early:.2g} of themselves at most"
    if before.outcome == "done":
        told += f", final test accuracy by {_apart(before, again, 'test'):.4f}"
        wrong += [f"final {part} accuracy by {apart:.4f}, allowed {allowed:.4f}"
                  for part, images in (("train", before.data.train_images), ("val", before.data.val_images),
                                       ("test", before.data.test_images))
                  if images and (apart := _apart(before, again, part)) > (
                      allowed := max(FINAL_ACCURACY, 3 / images)) + 1e-9]
    return wrong, told


def _apart(before: RunRecord, again: RunRecord, part: str) -> float:
    a, b = (getattr(record.final, f"{part}_accuracy") for record in (before, again))
    return abs(a - b) if a is not None and b is not None else 0.0


def _relative(a: float | None, b: float | None) -> float:
    if a is None or b is None or isclose(a, b, abs_tol=1e-5):
        return 0.0 if a is not None and b is not None else float(a is not b)
    return abs(a - b) / max(abs(a), abs(b))
