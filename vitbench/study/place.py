"""Where a study is computed: chosen once, when it starts, and kept when it is resumed."""

import json
from dataclasses import dataclass, field

from pydantic import ValidationError

from vitbench.cost import Footprint
from vitbench.environment import describe, environment_id, usable_cores
from vitbench.record import Execution
from vitbench.store import ResultStore, StoreError, write_atomically


@dataclass(frozen=True)
class Machine:
    """What a worker found on this machine."""

    cuda: str | None  # name of the first CUDA device, None where there is none
    devices: int = 0  # CUDA devices
    costs: dict[str, Footprint] = field(default_factory=dict)  # of the study's models, by label
    load_seconds: float = 0.0  # for the dataset: minutes where it had to be fetched
    dataset_sha256: str = ""  # of its content
    pictures: dict[str, bytes] = field(default_factory=dict)  # PNG by regime: what it does to the images


@dataclass(frozen=True)
class Placement:
    """What computes a study's runs, and how many at a time."""

    device: str
    devices: int  # CUDA devices; 0 on a CPU
    workers: int

    @property
    def shared(self) -> bool:
        """True where runs are computed beside each other on one device."""
        return self.workers > max(1, self.devices)

    @classmethod
    def of(cls, device: str, devices: int, *, workers: int | None, runs_per_device: int, runs: int) -> "Placement":
        """`workers` at a time, or one a core, or on CUDA `runs_per_device` a device; never more than there are runs."""
        devices = devices if device == "cuda" else 0
        wanted = workers or (runs_per_device * devices if devices else usable_cores())
        return cls(device, devices, max(1, min(wanted, runs)))


def description_here(device: str, machine: Machine) -> dict[str, object]:
    """This machine and its packages as a record names them by hash."""
    return describe(machine.cuda or "" if device == "cuda" else "")


def choose_place(store: ResultStore, wanted: str, machine: Machine, version: str) -> Execution:
    """How this study is computed: the device is chosen when it starts and kept when it is resumed.

    Raises StoreError where the device is not here, or is another than the study's earlier runs had.
    """
    path = store.folder / "execution.json"
    before = None
    if path.exists():
        try:
            before = Execution.model_validate_json(path.read_bytes()).device
        except ValidationError:
            raise StoreError(f"{path} is damaged; remove it to choose the device again") from None
    device = wanted if wanted != "auto" else before or ("cuda" if machine.cuda else "cpu")
    if before not in (None, device):
        raise StoreError(f"this study was started on {before}, and one study never mixes devices; found "
                         f"device={device}. Use device={before}, or another --results folder")
    if device == "cuda" and not machine.cuda:
        raise StoreError("device: cuda is not usable here (torch finds no CUDA device); use device=cpu with "
                         "another --results folder" if before else "device: cuda is not usable here (torch finds "
                         "no CUDA device); use device=cpu")
    description = description_here(device, machine)
    place = Execution(device=device, threads=1, deterministic=True, environment=environment_id(description),
                      code_version=version)
    (store.folder / "environments").mkdir(exist_ok=True)
    write_atomically(store.folder / "environments" / f"{place.environment}.json",
                     json.dumps(description, indent=1) + "\n")
    write_atomically(path, place.model_dump_json(indent=1) + "\n")
    return place
