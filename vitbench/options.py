"""Options of a plug-in: validated against its own schema, and what of them differs from its defaults."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from vitbench.registry import nearest
from vitbench.spec import Frozen


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
        raise BadOption(f"{place}: {first['msg'].removeprefix('Value error, ').removeprefix('Input ')}; "
                        f"found {first['input']!r}") from None
    own = before.model_dump(mode="json")
    return full, {key: value for key, value in full.model_dump(mode="json").items() if value != own[key]}
