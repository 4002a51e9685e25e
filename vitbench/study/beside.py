"""The second pass over what a study runs beside its grid: its controls, and the cells and space of its tuning."""

from collections.abc import Iterator

from pydantic import ValidationError

from vitbench.config import Mistake, Study, mistake
from vitbench.config.controls import Control
from vitbench.config.tuning import LEAST_VALIDATION, Range, Tuning
from vitbench.expansion import expand, recipe_of
from vitbench.grid import BadSelection, Resolved, Run, carved, select
from vitbench.registry import nearest
from vitbench.spec import Budget, DataVariant, Frozen, Recipe


def control_mistakes(study: Study, names: Resolved) -> list[Mistake]:
    """What is wrong with `controls` and `tuning` for this dataset and these models."""
    alone = study.model_copy(update={"controls": (), "tuning": None, "anchors": ()})
    default = [run for run in expand(alone, names) if not run.control]
    found, names_before = list[Mistake](), set[str]()
    for position, control in enumerate(study.controls):
        place = f"controls[{position}]"
        wrong = list(_of_control(place, control, study, default))
        with_it = alone.model_copy(update={"controls": (control,)})
        found += wrong or _without_effect(place, control, expand(with_it, names))
        for name in (variant.name for variant in control.variants()):
            if name in names_before:
                found.append(Mistake(f"{place}.{'grid' if control.grid else 'name'}", f"{name!r} stands twice"))
            names_before.add(name)
    return found + (list(_of_tuning(study, study.tuning, names, default)) if study.tuning else [])


def _of_control(place: str, control: Control, study: Study, default: list[Run]) -> Iterator[Mistake]:
    yield from _selection(f"{place}.only", control.only, default)
    before = study.data.model_dump()
    for key, values in (control.data or {}).items():
        yield from _refused(f"{place}.data", DataVariant, {**before, key: values})
        if before.get(key) == values:
            yield Mistake(f"{place}.data.{key}", f"changes nothing: the study itself has {values!r}")
    for budget in study.budgets if control.budget_factor else ():
        yield from _refused(f"{place}.budget_factor", Budget,
                            {"unit": budget.unit, "amount": budget.amount * (control.budget_factor or 1)})
    for recipe in [control.recipe] if control.recipe else [variant.recipe for variant in control.variants()]:
        yield from _refused(f"{place}.{'recipe' if control.recipe else 'grid'}", Recipe,
                            study.recipe.model_dump() | (recipe or {}))


def _without_effect(place: str, control: Control, runs: list[Run]) -> Iterator[Mistake]:
    """A control of runs that the grid has: its paired differences would be 0 and prove nothing. Streams may be held at
    the only seed of a study that is cut short."""
    if control.streams is not None:
        if not control.streams.model_dump(exclude_none=True):
            yield Mistake(f"{place}.streams", "should hold one of subset, init, order, augment; found none")
    elif not {run.spec.run_id for run in runs if run.control} - {run.spec.run_id for run in runs if not run.control}:
        yield Mistake(place, "changes nothing: the study itself has these values")


def _selection(place: str, only: str | None, default: list[Run]) -> Iterator[Mistake]:
    try:
        select(default, only)
    except BadSelection as error:
        yield Mistake(place, str(error))


def _refused(place: str, schema: type[Frozen], values: dict[str, object]) -> Iterator[Mistake]:
    try:
        schema.model_validate(values)
    except ValidationError as error:
        for one in error.errors():
            key, allowed = one["loc"][-1], schema.model_fields
            yield mistake(one, (place,)) if one["type"] != "extra_forbidden" else Mistake(
                f"{place}.{key}", f"unknown key; allowed: {', '.join(allowed)}.{nearest(key, allowed)}")


def _of_tuning(study: Study, tuning: Tuning, names: Resolved, default: list[Run]) -> Iterator[Mistake]:
    yield from _selection("tuning.only", tuning.only, default)
    for key, dimension in tuning.space.items():
        ends = (dimension.low, dimension.high) if isinstance(dimension, Range) else dimension
        if not isinstance(dimension, Range) and len(set(ends)) < len(ends):
            yield Mistake(f"tuning.space.{key}", f"holds a value twice; found {list(ends)}")
        for entry in study.models:
            recipe = recipe_of(study, entry).model_dump()
            wrong = [m for end in ends for m in _refused("tuning.space", Recipe, recipe | {key: end})]
            if wrong:
                yield wrong[0]
                break
    if tuning.pruner == "halving" and tuning.validation != "holdout":
        yield Mistake("tuning.pruner", "halving compares trials along their curves, which needs validation: holdout; "
                                       f"found {tuning.validation}")
    yield from _few_images(tuning, names, default)


def _few_images(tuning: Tuning, names: Resolved, default: list[Run]) -> Iterator[Mistake]:
    """Shares on which a choice would be noise (protocol rule 11)."""
    try:
        chosen = select(default, tuning.only)
    except BadSelection:
        return
    for share, run in {run.spec.share: run for run in chosen}.items():
        counts = carved(run, names)
        images, least = sum(counts.validation), min(counts.drawn)
        if tuning.validation == "holdout" and images < LEAST_VALIDATION:
            yield Mistake("tuning.validation", f"share {share} has {images} validation images, and holdout needs "
                                               f"{LEAST_VALIDATION}; use where_needed or cv, or tune larger shares "
                                               "with tuning.only")
        if tuning.validation != "holdout" and images < LEAST_VALIDATION and least < tuning.folds:
            yield Mistake("tuning.folds", f"share {share} has {least} images of its smallest class, fewer than "
                                          f"{tuning.folds} folds; use fewer folds or larger shares")
