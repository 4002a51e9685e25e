"""The second pass over what a study runs beside its grid: its controls, and the cells and space of its tuning."""

from collections.abc import Iterator

from pydantic import ValidationError

from vitbench.config import Mistake, Study, mistake
from vitbench.config.controls import Control
from vitbench.config.tuning import LEAST_VALIDATION, Range, Tuning
from vitbench.expansion import expand, recipe_of
from vitbench.grid import BadSelection, Resolved, Run, carved, select
from vitbench.spec import DataVariant, Recipe


def control_mistakes(study: Study, names: Resolved) -> list[Mistake]:
    """What is wrong with `controls` and `tuning` for this dataset and these models."""
    alone = study.model_copy(update={"controls": (), "tuning": None, "anchors": ()})
    default = [run for run in expand(alone, names) if not run.control]
    found, names_before = list[Mistake](), set[str]()
    for position, control in enumerate(study.controls):
        found += _of_control(f"controls[{position}]", control, study, default)
        if control.name in names_before:
            found.append(Mistake(f"controls[{position}].name", f"{control.name!r} stands twice"))
        names_before.add(control.name)
    return found + (list(_of_tuning(study, study.tuning, names, default)) if study.tuning else [])


def _of_control(place: str, control: Control, study: Study, default: list[Run]) -> Iterator[Mistake]:
    yield from _selection(f"{place}.only", control.only, default)
    before = study.data.model_dump()
    for key, values in (control.data or {}).items():
        yield from _refused(f"{place}.data", DataVariant, {**before, key: values})
        if before.get(key) == values:
            yield Mistake(f"{place}.data.{key}", f"changes nothing: the study itself has {values!r}")
    for recipe in [control.recipe] if control.recipe else [variant.recipe for variant in control.variants()]:
        yield from _refused(f"{place}.{'recipe' if control.recipe else 'grid'}", Recipe,
                            study.recipe.model_dump() | (recipe or {}))


def _selection(place: str, only: str | None, default: list[Run]) -> Iterator[Mistake]:
    try:
        select(default, only)
    except BadSelection as error:
        yield Mistake(place, str(error))


def _refused(place: str, schema: type[Recipe] | type[DataVariant], values: dict[str, object]) -> Iterator[Mistake]:
    try:
        schema.model_validate(values)
    except ValidationError as error:
        for one in error.errors():
            yield mistake(one, (place,)) if one["type"] != "extra_forbidden" else Mistake(
                f"{place}.{one['loc'][-1]}", f"unknown key; allowed: {', '.join(schema.model_fields)}")


def _of_tuning(study: Study, tuning: Tuning, names: Resolved, default: list[Run]) -> Iterator[Mistake]:
    yield from _selection("tuning.only", tuning.only, default)
    for key, dimension in tuning.space.items():
        ends = (dimension.low, dimension.high) if isinstance(dimension, Range) else dimension
        if not isinstance(dimension, Range) and len(set(map(repr, ends))) < len(ends):
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
