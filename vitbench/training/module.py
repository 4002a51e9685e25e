"""The LightningModule: several optimiser steps a batch, one curve point an epoch."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from vitbench.metrics import accuracy, cross_entropy
from vitbench.spec import Recipe
from vitbench.training.data import Part, Resident
from vitbench.training.schedule import EVALUATION_BATCH, learning_rate

LARGEST_FLOAT16 = 65504.0


@dataclass(frozen=True)
class Point:
    """One curve point. Losses in nats; None where there is no validation."""

    step: int
    images_seen: int
    learning_rate: float
    gradient_norm: float
    train_loss: float
    train_accuracy: float
    test_loss: float | None = None  # None in a tuning trial, which has no test images
    test_accuracy: float | None = None
    val_loss: float | None = None
    val_accuracy: float | None = None


class Classifier(pl.LightningModule):
    """A model under one recipe. The learning rate, the batch and the random state are functions of the step."""

    automatic_optimization = False

    def __init__(self, model: nn.Module, data: Resident, recipe: Recipe, step_seeds: np.ndarray,
                 on_point: Callable[[Point], object]) -> None:
        super().__init__()
        self.model, self.data, self.recipe = model, data, recipe
        self.points: list[Point] = []
        self.diverged_at: int | None = None
        self.last_logits: dict[str, np.ndarray] = {}  # of all images of each part, after the last step
        self.steps_done = 0
        self.train_seconds = self.eval_seconds = 0.0
        self.steps = len(step_seeds)
        self._step_seeds, self._on_point = step_seeds, on_point
        self._weights = [p for p in model.parameters() if p.requires_grad]
        self._last = (torch.zeros(()), torch.zeros(()))  # loss and gradient norm of the latest step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW or SGD; biases, normalisation and positions are not decayed."""
        spared: set[str] = getattr(self.model, "no_weight_decay", set)()
        named = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        groups = [{"params": [p for n, p in named if p.ndim > 1 and n not in spared],
                   "weight_decay": self.recipe.weight_decay},
                  {"params": [p for n, p in named if p.ndim <= 1 or n in spared], "weight_decay": 0.0}]
        groups = [g for g in groups if g["params"]]
        rate = self.recipe.learning_rate
        if self.recipe.optimizer == "adamw":
            return torch.optim.AdamW(groups, lr=rate, fused=True)
        momentum = self.recipe.momentum
        return torch.optim.SGD(groups, lr=rate, momentum=momentum, nesterov=momentum > 0, fused=True)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of normalised images, in the recipe's precision."""
        bf16 = self.recipe.precision == "bf16"
        with torch.autocast(images.device.type, torch.bfloat16, enabled=bf16):
            logits: Tensor = self.model(images)
        return logits.float()

    def training_step(self, batch: tuple[int, int], _: int) -> None:
        """The optimiser steps from batch[0] up to, not including, batch[1]."""
        started = time.perf_counter()
        optimizer: Any = self.optimizers(use_pl_optimizer=False)
        for step in range(*batch):
            self._seed(int(self._step_seeds[step]))
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(self.recipe, step, self.steps)
            images, targets = self.data.batch(step)
            loss = F.cross_entropy(self(images), targets)  # of classes, or of shares where a regime smooths or mixes
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self._weights, self.recipe.gradient_clip or math.inf)
            optimizer.step()
        self._last = (loss.detach(), norm)
        self.steps_done = batch[1]
        self.train_seconds += time.perf_counter() - started

    def _seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def on_train_epoch_end(self) -> None:
        """Measure a curve point; stop where the loss, the gradient or a logit is not finite."""
        started = time.perf_counter()
        loss, norm = (float(value) for value in self._last)
        self.train_seconds += time.perf_counter() - started  # on CUDA the conversion waits for the steps
        started = time.perf_counter()
        if not (math.isfinite(loss) and math.isfinite(norm) and self._add_point(norm)):
            self.diverged_at = self.steps_done
            self.trainer.should_stop = True
        self.eval_seconds += time.perf_counter() - started

    def _add_point(self, norm: float) -> bool:
        """False, and no point, where the model no longer gives finite logits."""
        step, parts = self.steps_done, self.data.parts
        if step == self.steps:
            self.last_logits = {name: self.logits(part) for name, part in parts.items()}
            measured = {name: metrics_of(self.last_logits[name][part.sample], part.labels_N[part.sample])
                        for name, part in parts.items()}
        else:
            measured = {name: metrics_of(self.logits(part, part.sample), part.labels_N[part.sample])
                        for name, part in parts.items()}
        whole = all(np.isfinite(logits_IC).all() for logits_IC in self.last_logits.values())
        if not whole or not all(math.isfinite(loss) for loss, _ in measured.values()):
            return False
        columns = {f"{name}_{what}": value for name, both in measured.items()
                   for what, value in zip(("loss", "accuracy"), both, strict=True)}
        rate = learning_rate(self.recipe, step - 1, self.steps)
        self.points.append(Point(step=step, images_seen=step * self.data.batch_size, learning_rate=rate,
                                 gradient_norm=norm, **columns))
        self._on_point(self.points[-1])
        return True

    def logits(self, part: Part, indices: np.ndarray | None = None) -> np.ndarray:
        """Logits I x C as they are stored, in float16, of the chosen images or of all; NaN where not finite."""
        chosen = np.arange(len(part.labels_N)) if indices is None else indices
        batch = EVALUATION_BATCH[self.device.type]
        self.eval()
        with torch.inference_mode():
            batches = [self(self.data.normalised(part.images[torch.from_numpy(chosen[i:i + batch]).to(self.device)]))
                       for i in range(0, len(chosen), batch)]
            wide_IC = torch.cat(batches)
            # Clamped, an infinite logit would pass for a large one.
            wide_IC = wide_IC.where(wide_IC.isfinite(), math.nan).clamp(-LARGEST_FLOAT16, LARGEST_FLOAT16)
        self.train()
        return wide_IC.cpu().numpy().astype(np.float16)


def metrics_of(logits_IC: np.ndarray, labels_I: np.ndarray) -> tuple[float, float]:
    """Cross-entropy in nats and accuracy."""
    return cross_entropy(logits_IC, labels_I), accuracy(logits_IC, labels_I)
