"""Row: one run as the tidy frame holds it; what tables, figures and claims are made from."""

from dataclasses import dataclass, fields
from typing import Any

MATCHED_LOSS = 0.05  # nats: where models that train at different speeds are compared


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run. Accuracies, errors and harms are shares of images; losses are in nats; None is 'missing'."""

    run_id: str
    study: str
    label: str  # the model's name in this study
    dataset: str  # name@version, with the options that differ from its own
    model: str  # name@version
    family: str  # attention, convolution, hybrid, control
    size: str | None
    options: dict[str, Any]  # those that differ from the size's own
    share: str  # the fraction as the study writes it, or 'N a class'
    fraction: float  # share of the training split that was drawn
    drawn_images: int
    train_images: int  # after validation was carved out: the axis of every figure
    val_images: int
    test_images: int
    seed: int
    regime: str
    budget_unit: str
    budget_amount: int
    setting: str  # default or tuned
    control: str  # the control that the run belongs to, `anchor`, or nothing in the grid itself
    init_seed: int  # seeds of the streams; but for crossed designs all are the run's
    order_seed: int
    pixels: str
    label_noise: str
    refit: bool
    precision: str
    outcome: str  # done, diverged or failed
    reason: str | None  # why it diverged or failed
    steps: int | None = None  # optimiser steps
    test_accuracy: float | None = None
    test_loss: float | None = None
    val_accuracy: float | None = None
    val_loss: float | None = None
    clean_train_accuracy: float | None = None
    clean_train_loss: float | None = None
    gap: float | None = None  # test error minus clean-train error: descriptive
    time_harm: float | None = None  # test error at the end minus at the onset
    onset_step: int | None = None  # step of lowest validation loss
    early_stopped_accuracy: float | None = None  # test accuracy at the onset, on the curve's sample
    matched_loss_step: int | None = None  # of the first curve point with a clean-train loss of MATCHED_LOSS or less
    matched_loss_accuracy: float | None = None  # test accuracy there, on the curve's sample
    rise: float | None = None  # last validation loss minus lowest
    fit_state: str | None = None  # underfit, fit, overfit, unknown
    over_confident: bool | None = None
    chance_accuracy: float  # what a diverged or failed run counts as
    params: int | None = None
    macs: int | None = None
    activations: int | None = None
    train_images_per_second: float | None = None
    peak_memory_bytes: int | None = None
    seconds: float | None = None
    shared_device: bool | None = None  # other runs were computed beside it
    device: str | None = None
    threads: int | None = None
    subset: str | None = None  # SHA-256 of the drawn indices
    numerics: int
    code_version: str | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """That of its Run."""
        return self.label, self.setting, self.control, self.run_id

    @property
    def counted_accuracy(self) -> float:
        """Test accuracy; a run that diverged or failed counts as chance (protocol rule 13)."""
        return self.chance_accuracy if self.outcome != "done" or self.test_accuracy is None else self.test_accuracy

    @property
    def counted_clean_train_accuracy(self) -> float:
        """The same on the clean training part."""
        done = self.outcome == "done" and self.clean_train_accuracy is not None
        return self.clean_train_accuracy if done else self.chance_accuracy  # type: ignore[return-value]

    @property
    def budget(self) -> str:
        """'steps:300'."""
        return f"{self.budget_unit}:{self.budget_amount}"


COLUMNS = tuple(field.name for field in fields(Row))
