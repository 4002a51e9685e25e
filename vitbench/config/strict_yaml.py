"""YAML without the parts that can surprise or harm: anchors, aliases, tags, interpolation, duplicate keys."""

from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12
_REFUSED = {yaml.AnchorToken: "an anchor (&)", yaml.AliasToken: "an alias (*)", yaml.TagToken: "a tag (!)"}


class YamlRefused(ValueError):
    """Text that is not a study file; the message names the line."""


def refuse_surprises(text: str) -> None:
    """Raise YamlRefused at the first anchor, alias, tag, `${`, deep nesting or syntax error, with its line."""
    depth = 0
    try:
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            line = token.start_mark.line + 1
            if type(token) in _REFUSED:
                raise YamlRefused(f"line {line}: {_REFUSED[type(token)]} is not allowed in a study file; "
                                  "write the value out")
            if isinstance(token, yaml.ScalarToken) and "${" in token.value:
                raise YamlRefused(f"line {line}: ${{...}} is not allowed in a study file; write the value out")
            depth += isinstance(token, yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken
                                | yaml.FlowMappingStartToken | yaml.FlowSequenceStartToken)
            depth -= isinstance(token, yaml.BlockEndToken | yaml.FlowMappingEndToken | yaml.FlowSequenceEndToken)
            if depth > MAX_DEPTH:
                raise YamlRefused(f"line {line}: nested more than {MAX_DEPTH} deep")
    except yaml.MarkedYAMLError as error:
        raise _syntax(error) from None
    except yaml.YAMLError as error:
        raise YamlRefused(f"not YAML: {' '.join(str(error).split())}") from None


def _syntax(error: yaml.MarkedYAMLError) -> YamlRefused:
    mark = error.problem_mark or error.context_mark
    line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return YamlRefused(f"{line}{error.problem or error.context}")


def read_text(path: Path) -> str:
    """The file's text. Raises YamlRefused where it is missing, unreadable, too large or not UTF-8."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise YamlRefused(f"cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise YamlRefused(f"larger than {MAX_BYTES // 1024} KB, the most a study file may have")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlRefused(f"not UTF-8 at byte {error.start}") from None


def parse(text: str, overrides: list[str]) -> Any:
    """The plain value of `text` with `key.sub=value` overrides; lists are replaced whole."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    refuse_surprises(text)
    try:
        config = OmegaConf.create(text)
    except yaml.MarkedYAMLError as error:  # a duplicate key
        raise _syntax(error) from None
    except (OmegaConfBaseException, ValueError) as error:
        raise YamlRefused(f"not a study file: {_first_line(error)}") from None
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise YamlRefused(f"override {override!r}: write key=value or key.sub=value")
        try:
            refuse_surprises(value)
            OmegaConf.update(config, key, OmegaConf.create(f"value: {value}").value, merge=False)
        except YamlRefused as error:
            raise YamlRefused(f"override {override!r}: {error}") from None
        except (OmegaConfBaseException, yaml.YAMLError, ValueError, TypeError, AttributeError, IndexError) as error:
            raise YamlRefused(f"override {override!r}: {_first_line(error)}") from None
    return OmegaConf.to_container(config, resolve=False)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0]
