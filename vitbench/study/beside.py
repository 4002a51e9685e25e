"""The second pass over what a study runs beside its grid: its controls, and the cells and space of its tuning."""

from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError

from vitbench.config import Mistake, Study, mistake
from vitbench.config.controls import Control
from vitbench.config.tuning import LEAST_VALIDATION, Range, Tuning
from vitbench.expansion import default_runs
from vitbench.grid import BadSelection, Resolved, Run, carved, select
from vitbench.spec import Budget, DataVariant, Recipe


def control_mistakes(study: Study, names: Resolved) -> list[Mistake]:
    """What is wrong with `controls` and `tuning` for this dataset and these models."""
    default = default_runs(study, names)
    found, names_before = list[Mistake](), set[str]()
    for position, control in enumerate(study.controls):
        place = f"controls[{position}]"
        of_this = list(_of_control(place, control, study, default))
        # Runs of two controls of one name would count as one cell's.
        for name in [] if of_this else [variant.name for variant in control.variants()]:
            if name in names_before:
                of_this.append(Mistake(f"{place}.{'grid' if control.grid else 'name'}", f"{name!r} stands twice"))
            names_before.add(name)
        found += of_this
    return found + (list(_of_tuning(study, study.tuning, names, default)) if study.tuning else [])


def _of_control(place: str, control: Control, study: Study, default: list[Run]) -> Iterator[Mistake]:
    yield from _selection(f"{place}.only", control.only, default)
    before = study.data.model_dump()
    for key, value in (control.data or {}).items():
        wrong = list(_refused(f"{place}.data", DataVariant, {**before, key: value}))
        yield from wrong
        if not wrong and DataVariant.model_validate({**before, key: value}) == study.data:
            yield Mistake(f"{place}.data.{key}", f"changes nothing: the study itself has {before[key]!r}")
    for key, value in (control.recipe or {}).items():
        yield from _refused(f"{place}.recipe", Recipe, study.recipe.model_dump() | {key: value})
    for key, values in (control.grid or {}).items():
        yield from _first(_refused(f"{place}.grid", Recipe, study.recipe.model_dump() | {key: value})
                          for value in values)
    for budget in study.budgets:
        longer = {"unit": budget.unit, "amount": budget.amount * (control.budget_factor or 1)}
        yield from (Mistake(f"{place}.budget_factor", one.message) for one in _refused(place, Budget, longer))


def _first(wrong: Iterable[Iterable[Mistake]]) -> list[Mistake]:
    """Of the values of one key the first that is wrong: the others would be so in the same words."""
    return next((found for each in wrong if (found := list(each))), [])


def _selection(place: str, only: str | None, default: list[Run]) -> Iterator[Mistake]:
    try:
        select(default, only)
    except BadSelection as error:
        yield Mistake(place, str(error))


def _refused(place: str, schema: type[Recipe | DataVariant | Budget],
             values: Mapping[str, object]) -> Iterator[Mistake]:
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
        yield from _first(_refused("tuning.space", Recipe, study.recipe.model_dump() | {key: end}) for end in ends)
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
