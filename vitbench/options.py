"""Options of a plug-in: validated against its own schema, and what of them differs from its defaults."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from vitbench.registry import nearest
from vitbench.spec import Frozen

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class BadOption(ValueError):
    """An option that a plug-in does not have or cannot take; the message begins with the option's name."""


class NoOptions(Frozen):
    """The options of a plug-in that has none."""


def validated(owner: str, schema: type[Frozen], preset: Mapping[str, Any],
              given: Mapping[str, Any]) -> tuple[Frozen, dict[str, Any]]:
    """`preset` changed by `given`, in full, and those that differ from the preset as JSON values: they name a run.

    Raises BadOption.
    """
    unknown = sorted(set(given) - set(schema.model_fields))
    if unknown:
        allowed = list(schema.model_fields)
        raise BadOption(f"{unknown[0]}: {owner!r} has no such option; allowed: {', '.join(allowed) or 'none'}."
                        f"{nearest(unknown[0], allowed)}")
    before = schema.model_validate(dict(preset))
    try:
        full = schema.model_validate({**before.model_dump(), **given})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "too_short":
            raise BadOption(f"{place}: {at_least(first)}; found {first['input']!r}") from None
        misspelt = first["type"] == "literal_error" and isinstance(first["input"], str)
        near = f".{nearest(first['input'], one_of(first))}" if misspelt else ""
        raise BadOption(f"{place}: {first['msg'].removeprefix('Value error, ').removeprefix('Input ')}; "
                        f"found {first['input']!r}{near}") from None
    own = before.model_dump(mode="json")
    return full, {key: value for key, value in full.model_dump(mode="json").items() if value != own[key]}


def one_of(error: "ErrorDetails") -> list[str]:
    """The allowed values of pydantic's literal_error."""
    return [part.strip("' ") for part in error["ctx"]["expected"].replace(" or ", ", ").split(", ")]


def at_least(error: "ErrorDetails") -> str:
    """How many entries a list should have, of pydantic's too_short."""
    least = error["ctx"]["min_length"]
    return f"should have at least {'one entry' if least == 1 else f'{least} entries'}"
