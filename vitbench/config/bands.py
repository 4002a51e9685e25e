"""Reference bands: accuracies that a sound baseline reaches, with their source (protocol rule 19)."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, model_validator

import vitbench
from vitbench.spec import Frozen, Recipe, Regime

Share = Annotated[float, Field(gt=0, lt=1)]


class Band(Frozen):
    """What full data give to one family of models under the band's own recipe and budget; shares of test images."""

    dataset: str  # name@version
    family: Literal["attention", "convolution", "hybrid", "control"]
    low: Share  # below it a baseline is too weak to be compared with
    high: Share  # above it something else than the recipe was measured: said, blocks nothing
    recipe: Recipe
    regime: Regime = "none"
    steps: Annotated[int, Field(ge=1)]
    seeds: Annotated[int, Field(ge=2, le=3)] = 2
    source: Annotated[str, Field(min_length=1)]
    why: Annotated[str, Field(min_length=1)]  # how the limits follow from the source

    @model_validator(mode="after")
    def _rising(self) -> "Band":
        if self.low >= self.high:
            raise ValueError(f"a band should rise from low to high; found low {self.low}, high {self.high}")
        return self


class _File(Frozen):
    bands: tuple[Band, ...]


def bands_file() -> Path:
    """configs/reference/bands.yaml: in the package, or beside it in a clone."""
    package = Path(vitbench.__file__).parent
    inside = package / "configs" / "reference" / "bands.yaml"
    return inside if inside.is_file() else package.parent / "configs" / "reference" / "bands.yaml"


@cache
def bands() -> tuple[Band, ...]:
    """Every band that ships, in the file's order."""
    # Strict validation of JSON takes an array for a tuple.
    return _File.model_validate_json(json.dumps(yaml.safe_load(bands_file().read_text(encoding="utf-8")))).bands


def band_for(dataset: str, family: str) -> Band | None:
    """The band of a dataset (name@version) and a family; None where there is none."""
    return next((band for band in bands() if (band.dataset, band.family) == (dataset, family)), None)
