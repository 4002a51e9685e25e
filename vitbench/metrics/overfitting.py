"""How a run overfits: onset, time harm, rise and fit state (protocol rules 15 and 16)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

FitState = Literal["underfit", "overfit", "fit", "unknown"]
TOLERANCE = 1e-9  # differences of decimals such as .21 - .20 meet a threshold of .01


@dataclass(frozen=True)
class Overfitting:
    """Measured along one run's curve points; harms are differences of error rates, rise is in nats."""

    onset_index: int  # first curve point of lowest validation loss
    time_harm: float  # test error at the end minus test error at the onset
    rise: float  # last validation loss minus lowest
    test_loss_ratio: float  # test loss at the end over test loss at the onset


def overfitting(val_loss: Sequence[float], test_loss: Sequence[float], test_error: Sequence[float]) -> Overfitting:
    """From columns over the curve points, all on the same images at every point."""
    onset = min(range(len(val_loss)), key=val_loss.__getitem__)
    ratio = test_loss[-1] / test_loss[onset] if test_loss[onset] > 0 else float("inf") if test_loss[-1] > 0 else 1.0
    return Overfitting(onset, test_error[-1] - test_error[onset], val_loss[-1] - val_loss[onset], ratio)


def fit_state(train_error: float, test_error: float, time_harm: float | None, *,
              train_error_floor: float = 0.02, harm: float = 0.01) -> FitState:
    """State of a run at its end. `time_harm` is None without validation. A label, never a test."""
    if train_error > max(train_error_floor, test_error / 2) + TOLERANCE:
        return "underfit"
    if time_harm is None:
        return "unknown"
    return "overfit" if time_harm >= harm - TOLERANCE else "fit"


def over_confident(test_loss_ratio: float | None, *, threshold: float = 1.10) -> bool | None:
    """True where test loss grew by the threshold since the onset; None without validation."""
    return None if test_loss_ratio is None else test_loss_ratio >= threshold - TOLERANCE
