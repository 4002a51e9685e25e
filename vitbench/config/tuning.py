"""The tuning of a study (protocol rule 11): what is searched, how often, and on which images it is judged."""

from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, JsonValue, Tag, field_validator, model_validator

from vitbench.spec import Frozen, Recipe

FIRST_SEED = 10_000
"""Tuning's own seeds begin here; those of a study's runs end below."""
LEAST_VALIDATION = 100
"""Images: a choice made on fewer is mostly noise."""
DIGITS = 4
"""Of a sampled value: more would suggest an accuracy that no search has."""


def _finite(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError("Input should be a finite number")
    return value


def _plain(value: object) -> object:
    return value if isinstance(value, bool | str) else _finite(value)


# Checked before the union, which would tell of each of its types apart.
End = Annotated[int | float, BeforeValidator(_finite, json_schema_input_type=int | float)]
Choice = Annotated[bool | int | float | str, BeforeValidator(_plain, json_schema_input_type=bool | int | float | str)]


class Range(Frozen):
    """From `low` to `high`, evenly or evenly in the logarithm; whole numbers where the key of the recipe is one."""

    low: End
    high: End
    log: bool = False

    @model_validator(mode="after")
    def _not_empty(self) -> "Range":
        if not self.low < self.high:
            raise ValueError(f"a range should rise from low to high; found low {self.low}, high {self.high}")
        if not self.whole and rounded(self.low) == rounded(self.high):
            raise ValueError(f"a range should hold two values of {DIGITS} digits; found low {self.low}, high "
                             f"{self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low should be above 0 where log is true; found {self.low}")
        return self

    @property
    def whole(self) -> bool:
        """True for a range of whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)


def rounded(value: float) -> float:
    """`value` to DIGITS digits."""
    return float(f"{value:.{DIGITS}g}")


Choices = Annotated[list[Choice], Field(min_length=2, max_length=100)]


def _form(value: object) -> str | None:
    return "range" if isinstance(value, dict | Range) else "choices" if isinstance(value, list) else None


Dimension = Annotated[Annotated[Range, Tag("range")] | Annotated[Choices, Tag("choices")], Discriminator(
    _form, custom_error_type="form",
    custom_error_message="Input should be a range, {low: 1e-4, high: 1e-2, log: true}, or a list of values")]


class Tuning(Frozen):
    """A `tuned` setting beside the `default` one of every cell. The same space and trials for all models."""

    space: Annotated[dict[str, Dimension], Field(
        min_length=1, description="keys of the recipe: {low: 1e-4, high: 1e-2, log: true}, or a list of values")]
    trials: Annotated[int, Field(ge=2, le=10_000, description="for each model, share, regime and budget")] = 20
    sampler: Annotated[Literal["random", "tpe", "qmc"], Field(
        description="random search gives the sensitivity too; qmc: scrambled Sobol points")] = "random"
    pruner: Annotated[Literal["none", "halving"], Field(
        description="halving ends weak trials early (successive halving); tables say so")] = "none"
    validation: Annotated[Literal["holdout", "cv", "where_needed"], Field(
        description="holdout: the fraction's validation part, 100 images at least; cv: stratified folds of the whole "
                    "fraction; where_needed: cv only where holdout has fewer than 100")] = "holdout"
    folds: Annotated[int, Field(ge=2, le=20)] = 5
    repeats: Annotated[int, Field(ge=1, le=20, description="of the cross-validation, each with other folds")] = 1
    objective: Annotated[Literal["accuracy", "loss"], Field(
        description="of validation, after the last step; ties of accuracy go to the lower loss")] = "accuracy"
    searches: Annotated[int, Field(ge=1, le=10, description="repeats of the whole search on other tuning subsets; "
                                                            "each gives a tuned setting of its own")] = 1
    only: Annotated[str | None, Field(description="cells to tune, as --only names them; all without it")] = None

    @field_validator("space", mode="before")
    @classmethod
    def _known_keys(cls, space: Any) -> Any:
        from vitbench.registry import nearest

        if isinstance(space, dict):
            for key in space:
                if key not in Recipe.model_fields:
                    allowed = list(Recipe.model_fields)
                    raise ValueError(f"{key!r} is no key of the recipe; allowed: {', '.join(allowed)}."
                                     f"{nearest(key, allowed)}")
        return space

    @field_validator("space")
    @classmethod
    def _of_the_keys_kind(cls, space: dict[str, Dimension]) -> dict[str, Dimension]:
        """A weight decay from 0 to 1 is searched between them, too, though both ends are whole."""
        return {key: Range(low=float(of.low), high=float(of.high), log=of.log)
                if isinstance(of, Range) and of.whole and Recipe.model_fields[key].annotation is not int else of
                for key, of in space.items()}

    @property
    def dimensions(self) -> dict[str, Dimension]:
        """The space in the order of its names, whatever the file's."""
        return dict(sorted(self.space.items()))


Params = dict[str, JsonValue]
