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
from vitbench.training.schedule import learning_rate

EVALUATION_BATCH = 256
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
    val_loss: float | None
    val_accuracy: float | None
    test_loss: float
    test_accuracy: float


class Classifier(pl.LightningModule):
    """A model under one recipe. The learning rate, the batch and the random state are functions of the step."""

    automatic_optimization = False

    def __init__(self, model: nn.Module, data: Resident, recipe: Recipe, step_seeds: list[int],
                 on_point: Callable[[Point], object]) -> None:
        super().__init__()
        self.model, self.data, self.recipe = model, data, recipe
        self.points: list[Point] = []
        self.diverged_at: int | None = None
        self.train_seconds = self.eval_seconds = 0.0
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
        steps = len(self._step_seeds)
        for step in range(*batch):
            self._seed(self._step_seeds[step])
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(self.recipe, step, steps)
            images, labels = self.data.batch(step)
            loss = F.cross_entropy(self(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            norm = nn.utils.clip_grad_norm_(self._weights, self.recipe.gradient_clip or math.inf)
            optimizer.step()
        self._last = (loss.detach(), norm)
        self._finished = batch[1]
        self.train_seconds += time.perf_counter() - started

    def _seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def on_train_epoch_end(self) -> None:
        """Measure a curve point; stop where the loss or the weights are no longer finite."""
        started = time.perf_counter()
        loss, norm = (float(value) for value in self._last)
        self.train_seconds += time.perf_counter() - started  # on CUDA the conversion waits for the steps
        started = time.perf_counter()
        step = self._finished
        if math.isfinite(loss) and math.isfinite(norm):
            train = self.measure(self.data.train)
            if math.isfinite(train[0]):
                self._add_point(step, norm, train)
                self.eval_seconds += time.perf_counter() - started
                return
        self.diverged_at = step
        self.trainer.should_stop = True

    def _add_point(self, step: int, norm: float, train: tuple[float, float]) -> None:
        val_loss, val_accuracy = self.measure(self.data.validation) if self.data.validation else (None, None)
        test_loss, test_accuracy = self.measure(self.data.test)
        rate = learning_rate(self.recipe, step - 1, len(self._step_seeds))
        self.points.append(Point(step, step * self.data.batch_size, rate, norm, *train, val_loss, val_accuracy,
                                 test_loss, test_accuracy))
        self._on_point(self.points[-1])

    def measure(self, part: Part) -> tuple[float, float]:
        """Loss and accuracy on the part's fixed sample, without augmentation, in evaluation mode."""
        logits_IC = self.logits(part, part.sample)
        labels_I = part.labels_N[part.sample]
        return cross_entropy(logits_IC, labels_I), accuracy(logits_IC, labels_I)

    def logits(self, part: Part, indices: np.ndarray | None = None) -> np.ndarray:
        """Logits I x C as they are stored, in float16, of the chosen images or of all."""
        chosen = np.arange(len(part.labels_N)) if indices is None else indices
        self.eval()
        with torch.inference_mode():
            batches = [self(self.data.normalised(part.images[torch.from_numpy(b).to(self.device)]))
                       for b in np.array_split(chosen, -(-len(chosen) // EVALUATION_BATCH))]
            wide = torch.cat(batches).clamp(-LARGEST_FLOAT16, LARGEST_FLOAT16).cpu().numpy()
        self.train()
        return wide.astype(np.float16)
