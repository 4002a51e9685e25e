"""Controls of a study: the grid, or a part of it, with one thing changed (claims.md, controls)."""

from itertools import product
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from vitbench.spec import Frozen, printable

MAIN, ANCHOR = "", "anchor"
"""What runs of the grid itself and of the anchors bear in a control's place."""

Seed = Annotated[int, Field(ge=0, lt=10_000)]  # 10,000 and above belong to tuning (protocol rule 11)
CHANGES = ("data", "recipe", "grid", "budget_factor", "streams", "crossed")


def _free(name: str) -> str:
    if name == ANCHOR:
        raise ValueError(f"Input should not be {ANCHOR!r}, which names the runs that are held against reference bands")
    return name


Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(printable), AfterValidator(_free)]


class StreamChanges(Frozen):
    """Streams held at one seed while the others follow the run's."""

    subset: Seed | None = None
    init: Seed | None = None
    order: Seed | None = None
    augment: Seed | None = None


class Crossed(Frozen):
    """A crossed design (protocol rule 26): every subset with every initialisation and every order, from 0 on."""

    subset: Annotated[int, Field(ge=2, le=100)] = 5
    init: Annotated[int, Field(ge=2, le=100)] = 5
    order: Annotated[int, Field(ge=1, le=100)] = 2

    def combinations(self) -> list[StreamChanges]:
        """All of them, the subsets outermost."""
        return [StreamChanges(subset=s, init=i, order=o, augment=o)
                for s, i, o in product(range(self.subset), range(self.init), range(self.order))]


class Control(Frozen):
    """The grid's default cells once more, with exactly one kind of change."""

    name: Name
    only: Annotated[str | None, Field(description="cells to repeat, as --only names them; all without it")] = None
    data: Annotated[dict[str, Any] | None, Field(description="pixels, label_noise, duplicates")] = None
    recipe: Annotated[dict[str, Any] | None, Field(description="values of the recipe, such as warmup: 0")] = None
    grid: Annotated[dict[str, Annotated[list[Any], Field(min_length=1, max_length=20)]] | None, Field(
        description="every combination of these values of the recipe, each a control of its own")] = None
    budget_factor: Annotated[int | None, Field(ge=2, le=64, description="the saturation check: budgets times this")
                             ] = None
    streams: Annotated[StreamChanges | None, Field(description="streams held at one seed")] = None
    crossed: Annotated[Crossed | None, Field(description="numbers of subsets, initialisations and orders")] = None

    @model_validator(mode="after")
    def _one_change(self) -> "Control":
        given = [key for key in CHANGES if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"Input should change exactly one of {', '.join(CHANGES)}; found "
                             f"{' and '.join(given) or 'none'}")
        if not all(value is None or value for value in (self.data, self.recipe, self.grid)):
            raise ValueError(f"{given[0]} should change something; found nothing")
        return self

    def variants(self) -> list["Control"]:
        """This control, or one for each combination of its `grid`: 'lr: learning_rate=0.001, weight_decay=0'."""
        if self.grid is None:
            return [self]
        found = []
        for values in product(*self.grid.values()):
            recipe = dict(zip(self.grid, values, strict=True))
            told = ", ".join(f"{key}={value}" for key, value in recipe.items())
            found.append(Control(name=f"{self.name}: {told}"[:100], only=self.only, recipe=recipe))
        return found
