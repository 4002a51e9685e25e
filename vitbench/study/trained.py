"""Models of runs that ended, in memory again: from their kept weights, or trained again and held to their records."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vitbench import subset
from vitbench.record import DamagedRecord, Execution, RunRecord
from vitbench.store import ResultStore
from vitbench.study.agreement import differences
from vitbench.study.place import Machine
from vitbench.study.rerun import of_another_version, place_again, same_place

if TYPE_CHECKING:
    from torch import Tensor

    from vitbench.training.module import Classifier

AtPoint = Callable[["Classifier", int], object]
CHECKED_IMAGES = 32
# Logits are stored in float16: three digits. In bf16 machines differ in the second.
LOGITS_APART = {"fp32": 0.005, "bf16": 0.1}


class NotTheRun(ValueError):
    """A model that is not the one on record, or cannot be had; the message names the run and what differs."""


@dataclass(frozen=True)
class Trained:
    """A run's model after its last step, in evaluation mode, with its data on its device."""

    record: RunRecord
    module: "Classifier"
    how: str  # 'kept weights, ...' or 'trained again, ...'

    def images(self, part: str, count: int) -> "tuple[Tensor, np.ndarray]":
        """`count` images of 'train', 'val' or 'test' (all, where there are fewer), normalised as the model takes them,
        and their labels. The same ones for every run of a dataset's test part: a stratified sample."""
        import torch

        of = self.module.data.parts[part]
        chosen = subset.stratified_sample(of.labels_N, count, np.random.default_rng(0))
        images = of.images[torch.from_numpy(chosen).to(of.images.device)]
        return self.module.data.normalised(images), of.labels_N[chosen]


def trained(store: ResultStore, record: RunRecord, at_point: AtPoint | None = None) -> Trained:
    """The trained model of a run that is done. The plug-ins that it uses are loaded already.

    With `at_point` the run is always trained again: it is called as at_point(module, step) with the untrained module at
    step 0 and at every curve point, in evaluation mode; what it draws changes nothing of the run. Raises NotTheRun.
    """
    _refuse_another_version(record)
    if at_point is None:
        try:
            weights = store.weights(record)
        except FileNotFoundError:
            pass
        except DamagedRecord as error:
            raise NotTheRun(f"run {record.run_id}: {error}; remove the file, and the run is trained again") from None
        else:
            return _from_weights(store, record, weights)
    return _again(record, at_point)


def _from_weights(store: ResultStore, record: RunRecord, weights: bytes) -> Trained:
    module = from_weights(record, weights)
    try:
        apart = logits_apart(module, store.logits_IC(record), CHECKED_IMAGES)
    except FileNotFoundError:
        return Trained(record, module, "kept weights; no logits are there to check them by")
    except DamagedRecord as error:
        raise NotTheRun(f"run {record.run_id}: {error}") from None
    if not apart <= allowed_apart(record):  # one that is no number, too
        raise NotTheRun(f"run {record.run_id}: its kept weights give other logits than it stored: they differ by "
                        f"{apart:.2g} of themselves")
    return Trained(record, module, f"kept weights; stored logits of {CHECKED_IMAGES} test images agree")


def untrained(record: RunRecord) -> Trained:
    """The model of a run as it was before its first step, in evaluation mode. Raises NotTheRun."""
    _refuse_another_version(record)
    return Trained(record, _built(record), "untrained")


def from_weights(record: RunRecord, weights: bytes) -> "Classifier":
    """The module of a run with these weights, in evaluation mode. Raises NotTheRun where they do not fit."""
    import safetensors.torch

    module = _built(record)
    try:
        module.model.load_state_dict(safetensors.torch.load(weights))
    except Exception as error:  # of safetensors for bytes, of torch for names and shapes
        raise NotTheRun(f"run {record.run_id}: its kept weights do not fit {record.spec.model}: "
                        f"{str(error).splitlines()[0]}") from None
    return module


def _built(record: RunRecord) -> "Classifier":
    import torch

    from vitbench.training.run import classifier, drawn, loaded, prepare_torch

    place = _here(record)
    prepare_torch(place)
    arrays, device = loaded(record.spec), torch.device(place.device)
    if arrays.sha256 != record.data.dataset_sha256:
        raise NotTheRun(f"run {record.run_id} saw a dataset of SHA-256 {record.data.dataset_sha256}; "
                        f"{record.spec.dataset_text} has {arrays.sha256}")
    module, _ = classifier(record.spec, arrays, drawn(record.spec, arrays.train_labels), device, lambda _point: None)
    module.to(device).eval()
    return module


def _refuse_another_version(record: RunRecord) -> None:
    why = of_another_version(record.spec)
    if why:
        raise NotTheRun(f"run {record.run_id}: {why}")


def logits_apart(module: "Classifier", stored_IC: np.ndarray, count: int | None = None) -> float:
    """Largest difference between the module's test logits and the stored ones, as a share of 1 + |logit|; of the first
    `count` images or of all."""
    part = module.data.parts["test"]
    indices = np.arange(len(part.labels_N))[:count]
    found_IC, wanted_IC = module.logits(part, indices).astype(np.float64), stored_IC[indices].astype(np.float64)
    module.eval()
    return float((np.abs(found_IC - wanted_IC) / (1 + np.abs(wanted_IC))).max())


def allowed_apart(record: RunRecord) -> float:
    """How far logits of the same weights may lie apart, as `logits_apart` has it."""
    return LOGITS_APART[record.spec.recipe.precision]


def _again(record: RunRecord, at_point: AtPoint | None) -> Trained:
    import torch

    from vitbench.training.run import run_one

    place, begun = _here(record), list["Classifier"]()
    device = torch.device(place.device)

    def look(module: "Classifier", step: int) -> None:
        if at_point is None:
            return
        with torch.random.fork_rng(devices=[0] if device.type == "cuda" else []):
            at_point(module.eval(), step)
        module.train()

    def start(module: "Classifier") -> None:
        begun.append(module)
        look(module.to(device), 0)

    finished = run_one(record.spec, place, on_start=start, on_point=lambda point: look(begun[0], point.step))
    exactly = same_place(record.execution, place)
    wrong, told = differences(record, finished.record, exactly=exactly)
    if wrong:
        raise NotTheRun(f"run {record.run_id}, trained again, differs from its record"
                        f"{'' if exactly else ', compared as on another machine'}: {'; '.join(wrong)}. Runs that keep "
                        "their weights (keep: [weights]) need not be trained again")
    finished.module.to(device).eval()
    how = "exactly" if exactly else f"within the tolerance of another machine{told}"
    return Trained(record, finished.module, f"trained again; agrees with its record {how}")


def _here(record: RunRecord) -> Execution:
    import torch

    cuda = torch.cuda.is_available()
    return place_again(record, Machine(torch.cuda.get_device_name(0) if cuda else None, torch.cuda.device_count()))
