"""RunSpec: everything that decides a run's numbers, and the run id that is its hash."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

NUMERICS = 1
"""Raised by a change that moves losses (golden loss file); part of every run id."""

MAX_DIGITS = 28
"""Of an exact decimal, before and after the point."""

Regime = Literal["none", "light", "strong"]
Precision = Literal["fp32", "bf16"]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class Frozen(BaseModel):
    """A validated value: immutable, strict, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def printable(text: str) -> str:
    """`text`, refused where a character would break a line or turn its direction in a table."""
    odd = next((c for c in text if not c.isprintable()), None)
    if odd is not None:
        raise ValueError(f"Input should hold no control character; {odd!r} is one")
    return text


def exact_decimal(value: object) -> str:
    """`value` as the shortest decimal text, so that .29 means 29/100 and hashes the same as '0.290'."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("Input should be a number")
    try:
        number = Decimal(repr(value) if isinstance(value, float) else str(value))
    except InvalidOperation:
        raise ValueError("Input should be a number") from None
    if not number.is_finite():
        raise ValueError("Input should be a finite number")
    if len(number.as_tuple().digits) > MAX_DIGITS or abs(number.adjusted()) > MAX_DIGITS:
        raise ValueError(f"Input should have at most {MAX_DIGITS} digits")  # beyond, decimals are rounded
    return format(number.normalize(), "f")


def _fraction(text: str) -> str:
    if not 0 < Decimal(text) <= 1:
        raise ValueError("Input should be greater than 0 and at most 1")
    return text


_Written = Annotated[float, Field(gt=0, le=1)] | Annotated[str, Field(pattern=r"^[0-9.eE+-]+$")]  # for editors
_WrittenNoise = Annotated[float, Field(ge=0, lt=1)] | Annotated[str, Field(pattern=r"^[0-9.eE+-]+$")]
ExactFraction = Annotated[str, BeforeValidator(exact_decimal, json_schema_input_type=_Written),
                          AfterValidator(_fraction)]


class Recipe(Frozen):
    """Optimiser, schedule, batch size and regularisation of a run. Defaults are frozen by a golden file."""

    optimizer: Literal["adamw", "sgd"] = "adamw"
    learning_rate: Positive = 1e-3
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.05
    momentum: Annotated[float, Field(ge=0, lt=1, description="of sgd, with Nesterov's step")] = 0.9
    schedule: Literal["cosine", "one_cycle"] = "cosine"
    warmup: Annotated[float, Field(ge=0, lt=1, description="share of the steps with rising learning rate")] = 0.1
    batch_size: Annotated[int, Field(ge=1, le=65536)] = 64
    gradient_clip: Annotated[float, Field(ge=0, allow_inf_nan=False, description="largest norm; 0: off")] = 1.0
    precision: Precision = "fp32"

    def batch(self, train_images: int) -> int:
        """Images of a batch: always full, so all of them where there are fewer than `batch_size`."""
        return min(self.batch_size, train_images)

    @property
    def regularisers(self) -> str:
        """Those that are on (protocol rule 8): 'weight decay 0.05, gradient clip 1', or 'none'."""
        amounts = {"weight decay": self.weight_decay, "gradient clip": self.gradient_clip}
        return ", ".join(f"{name} {amount:g}" for name, amount in amounts.items() if amount) or "none"


class BudgetTooSmall(ValueError):
    """A budget that buys no step; the message has both numbers."""


class Budget(Frozen):
    """How long a run trains, and in which unit."""

    unit: Literal["epochs", "steps", "flops"]
    amount: Annotated[int, Field(ge=1, le=10**20)]

    def steps(self, train_images: int, batch_size: int, macs: int) -> int:
        """Optimiser steps of this budget for a model of `macs` forward multiply-adds an image.

        An epoch is rounded up to whole steps. `flops` counts 3 x forward MACs x 2 for each image seen
        (protocol rule 9). Raises BudgetTooSmall.
        """
        if self.unit == "steps":
            return self.amount
        if self.unit == "epochs":
            return -(-self.amount * train_images // batch_size)
        steps = self.amount // (6 * macs * batch_size)
        if steps < 1:
            raise BudgetTooSmall(f"a budget of {self.amount:,} flops is less than one step of {batch_size} images "
                             f"({6 * macs * batch_size:,} flops)")
        return steps


def _noise(text: str) -> str:
    if not 0 <= Decimal(text) < 1:
        raise ValueError("Input should be at least 0 and less than 1")
    return text


class DataVariant(Frozen):
    """What is done to a dataset's images and labels before a run sees them: controls of claims.md."""

    pixels: Annotated[Literal["as_is", "shuffled"], Field(
        description="shuffled: one fixed permutation of the places, the same for every image")] = "as_is"
    label_noise: Annotated[str, BeforeValidator(exact_decimal, json_schema_input_type=_WrittenNoise),
                           AfterValidator(_noise),
                           Field(description="share of training labels replaced by another class's")] = "0"
    duplicates: Annotated[Literal["kept", "masked"], Field(
        description="masked: test and validation leave out images that are in training, too")] = "kept"


class StreamSeeds(Frozen):
    """Seeds of single streams where they differ from the run's seed (crossed designs)."""

    subset: Seed | None = None
    init: Seed | None = None
    order: Seed | None = None
    augment: Seed | None = None


class RunSpec(Frozen):
    """One cell with one seed: the unit of work, of resuming and of storage."""

    numerics: int = Field(default=NUMERICS)
    dataset: str
    dataset_options: dict[str, Any] = Field(default_factory=dict)  # only those that differ from the dataset's own
    model: str
    size: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)  # only those that differ from the size's own
    fraction: ExactFraction | None = None
    images_per_class: Annotated[int, Field(ge=1)] | None = None
    seed: Seed
    streams: StreamSeeds = StreamSeeds()
    data: DataVariant = DataVariant()
    recipe: Recipe = Recipe()
    regime: Regime = "none"
    regime_version: Annotated[int, Field(ge=1)] = 1  # of vitbench.regimes: names runs of this regime alone
    refit: bool = False  # trained on the validation part, too
    budget: Budget
    plugins: dict[str, str] = Field(default_factory=dict)  # name -> SHA-256, of the plug-ins this run uses

    @model_validator(mode="after")
    def _one_share(self) -> "RunSpec":
        if (self.fraction is None) == (self.images_per_class is None):
            raise ValueError("give exactly one of fraction and images_per_class")
        return self

    @property
    def dataset_text(self) -> str:
        """The dataset with its options."""
        return with_options(self.dataset, self.dataset_options)

    @property
    def share(self) -> str:
        """The fraction as written, or 'N a class'."""
        return self.fraction or f"{self.images_per_class} a class"

    def changed(self, **values: Any) -> "RunSpec":
        """The same with other values, checked anew. Raises ValidationError."""
        # Not model_copy: it would keep the run id that was computed for the original.
        return RunSpec.model_validate(self.model_dump() | values)

    def steps(self, train_images: int, macs: int) -> int:
        """Optimiser steps of this run. Raises BudgetTooSmall."""
        return self.budget.steps(train_images, self.recipe.batch(train_images), macs)

    @cached_property
    def run_id(self) -> str:
        """First 16 hex digits of the SHA-256 over canonical JSON; values equal to the default are left out,
        so that an option added later does not rename old runs (protocol rule 29)."""
        return sha256_json({"numerics": self.numerics, **self.model_dump(exclude_defaults=True)})[:16]


@dataclass(frozen=True)
class ImageSpec:
    """Square images: pixels a side, and channels."""

    size: int
    channels: int


class Duplicates(Frozen):
    """Images whose bytes occur twice in a dataset, whatever their labels (protocol rule 4)."""

    test_in_train: int  # test images that are in the training split, too
    within_train: int  # training images that repeat an earlier one


def canonical_json(value: object) -> str:
    """Sorted keys, no spaces, no NaN: one text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def sha256_json(value: object) -> str:
    """SHA-256 (hex) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def named_version(name: str, version: int) -> str:
    """'digits@1': how a dataset or model is named in a RunSpec."""
    return f"{name}@{version}"


def with_options(versioned: str, options: Mapping[str, Any]) -> str:
    """'far_pairs@1', or 'far_pairs@1 (distance 12, images 1000)'."""
    told = ", ".join(f"{name} {value}" for name, value in sorted(options.items()))
    return f"{versioned} ({told})" if told else versioned


def split_version(versioned: str) -> tuple[str, int]:
    """The name and version of 'digits@1'."""
    name, _, version = versioned.rpartition("@")
    return name, int(version)
