"""The study file's schema. Names are checked against folders; no plug-in is imported here."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_serializer, model_validator

from vitbench.config.controls import Control, Seed
from vitbench.config.tuning import Tuning
from vitbench.spec import Budget, DataVariant, ExactFraction, Frozen, Positive, Recipe, Regime, printable

Size = Literal["xs", "s", "m", "l", "xl"]
Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(printable)]


def _options_apart(entry: dict[Any, Any], keys: tuple[str, ...]) -> dict[Any, Any]:
    """`keys` of the entry, and all others under `options`: people write options beside the name."""
    known = {k: v for k, v in entry.items() if k in keys}
    options = {k: v for k, v in entry.items() if k not in known and k != "options"}
    known["options"] = entry.get("options", {})
    if options and isinstance(known["options"], dict):
        twice = sorted(options.keys() & known["options"].keys())
        if twice:
            raise ValueError(f"{twice[0]!r} stands twice: in options, and beside them")
        known["options"] = {**known["options"], **options}
    return known


class DatasetEntry(Frozen):
    """The dataset of a study: `digits`, or a mapping with options, `{name: far_pairs, distance: 12}`."""

    name: Annotated[str, Field(description="of `vitbench list datasets`, or of a file under plugins")]
    options: dict[str, Any] = Field(default_factory=dict, description="of the dataset; may also stand beside its name")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, entry: object) -> object:
        if isinstance(entry, str):
            return {"name": entry}
        if not isinstance(entry, dict):
            raise ValueError("Input should be a name, or a mapping with a name and options")
        return _options_apart(entry, ("name",))

    @model_serializer
    def _as_written(self) -> str | dict[str, Any]:
        return {"name": self.name, **self.options} if self.options else self.name


class ModelEntry(Frozen):
    """One model of a study: `token_transformer:s`, or a mapping with options, a label and own recipe values."""

    name: Annotated[str, Field(description="of a model that ships, or of a file under plugins")]
    size: Annotated[Size | None, Field(description="one of the model's own")] = None
    label: Annotated[Label, Field(description="what tables call it; name:size where none is given")]
    options: dict[str, Any] = Field(default_factory=dict, description="of the model; may also stand beside its name")
    recipe: dict[str, Any] = Field(default_factory=dict, description="differs from the study's recipe in these")

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, entry: object) -> object:
        if isinstance(entry, str):
            name, colon, size = entry.partition(":")
            entry = {"name": name, **({"size": size} if colon else {})}
        if not isinstance(entry, dict):
            return entry
        known = _options_apart(entry, ("name", "size", "label", "recipe"))
        known.setdefault("label", ":".join(str(known[k]) for k in ("name", "size") if known.get(k)))
        return known


class FitRule(Frozen):
    """Constants of the fit state (protocol rule 16). A label, never a test."""

    train_error_floor: Annotated[float, Field(ge=0, le=1)] = 0.02
    time_harm: Positive = 0.01
    test_loss_ratio: Positive = 1.10


class BudgetEntry(Budget):
    """`{steps: 300}`, `{epochs: 50}` or `{flops: 1000000000000}`."""

    @model_validator(mode="before")
    @classmethod
    def _one_key(cls, value: object) -> object:
        if not isinstance(value, dict) or "unit" in value:
            return value
        if len(value) != 1:
            raise ValueError("Input should have one key: steps, epochs or flops")
        ((unit, amount),) = value.items()
        return {"unit": unit, "amount": amount}


class Study(Frozen):
    """What a person launches and cites."""

    question: Annotated[str, Field(min_length=1, max_length=2000,
                                   description="what the study is to answer; printed on its page")]
    dataset: Annotated[DatasetEntry, Field(description="a name of `vitbench list datasets` or of a file under plugins; "
                                                       "or a mapping with its options")]
    models: Annotated[tuple[ModelEntry, ...],
                      Field(min_length=1, max_length=200, description="labels are unique")]
    fractions: Annotated[Annotated[tuple[ExactFraction, ...], Field(min_length=1, max_length=200)] | None,
                         Field(description="shares of each class; this or images_per_class")] = None
    images_per_class: Annotated[Annotated[tuple[Annotated[int, Field(ge=1)], ...],
                                          Field(min_length=1, max_length=200)] | None,
                                Field(description="images of each class; this or fractions")] = None
    seeds: Annotated[tuple[Seed, ...], Field(
        min_length=1, max_length=10_000,
        description="a count or a list; seed s is subset, initialisation and order s, the same for every model",
    )] = tuple(range(6))
    regimes: Annotated[tuple[Regime, ...], Field(
        min_length=1, max_length=200, description="augmentation levels, as far as the dataset's labels allow",
    )] = ("none",)
    budgets: Annotated[tuple[BudgetEntry, ...], Field(
        min_length=1, max_length=200, description="how long a run trains; the schedule always runs to its end",
    )] = (BudgetEntry(unit="steps", amount=300),)
    recipe: Recipe = Recipe()
    data: DataVariant = DataVariant()
    refit: Annotated[bool, Field(description="train on the validation part, too; no curve of validation then")] = False
    tuning: Annotated[Tuning | None, Field(description="a tuned setting beside the default one")] = None
    controls: Annotated[tuple[Control, ...], Field(
        max_length=100, description="the grid, or a part of it, with one thing changed")] = ()
    anchors: Annotated[tuple[Label, ...], Field(
        max_length=20, description="labels of models to hold against the dataset's reference bands, one a family")] = ()
    comparisons: Annotated[tuple[tuple[Label, Label], ...], Field(
        max_length=200, description="pairs of labels whose ranking claims look at; without it every attention model "
        "with the CNNs that match it")] = ()
    margin: Annotated[float, Field(gt=0, lt=1, description="difference of accuracy that matters, as a share of images")
                      ] = 0.01
    fit: FitRule = FitRule()
    device: Annotated[Literal["auto", "cpu", "cuda"], Field(
        description="chosen when a study starts and kept when it goes on")] = "auto"
    keep: Annotated[tuple[Literal["weights"], ...], Field(
        max_length=1, description="what a run keeps beside record and test logits; weights: of the trained model, for "
        "probes. No part of a run's id")] = ()
    priority: Annotated[tuple[str, ...], Field(
        max_length=200, description="runs to do first, as --only names them: 'model=convnet:s,fraction=0.1'")] = ()
    looks: Annotated[tuple[Annotated[int, Field(ge=6, le=10_000)], ...], Field(
        max_length=20, description="numbers of seeds at which verdicts are looked at, declared beforehand")] = ()
    claims: Annotated[tuple[str, ...], Field(
        max_length=200, description="names of `vitbench list claims`, or of files under plugins")] = ()
    plugins: Annotated[tuple[str, ...], Field(
        max_length=200, description="files with models, datasets or claims of your own, beside the study")] = ()

    @field_validator("looks")
    @classmethod
    def _rising(cls, looks: tuple[int, ...]) -> tuple[int, ...]:
        if list(looks) != sorted(set(looks)):
            raise ValueError("Input should rise: each look has more seeds than the one before")
        return looks

    @field_validator("seeds", mode="before", json_schema_input_type=Annotated[int, Field(ge=1, le=10_000)]
                     | Annotated[tuple[Seed, ...], Field(min_length=1, max_length=10_000)])
    @classmethod
    def _count_or_list(cls, value: object) -> object:
        """`seeds: 10` means 0..9."""
        if isinstance(value, list | tuple):
            return tuple(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000:
            raise ValueError("Input should be a count from 1 to 10,000 or a list of seeds")
        return tuple(range(value))
