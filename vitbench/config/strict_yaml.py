"""YAML without the parts that can surprise or harm: anchors, aliases, tags, interpolation, duplicate keys."""

import re
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12
MAX_TOKENS = 16_000  # a list item is two
MAX_VALUE = 3_000  # characters; a number of more digits takes time, and Python prints no more than 4,300
# YAML 1.1 reads 010 as eight and 1:30 as ninety.
_SURPRISING_NUMBER = re.compile(r"[-+]?(0[0-9_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
_REFUSED = {yaml.AnchorToken: "an anchor (&)", yaml.AliasToken: "an alias (*)", yaml.TagToken: "a tag (!)"}


class YamlRefused(ValueError):
    """Text that is not a study file; the message names the line."""


def refuse_surprises(text: str) -> None:
    """Raise YamlRefused at the first anchor, alias, tag, `${`, deep nesting or syntax error, with its line."""
    depth = 0
    try:
        for position, token in enumerate(yaml.scan(text, Loader=yaml.SafeLoader)):
            line = token.start_mark.line + 1
            if position == MAX_TOKENS:
                raise YamlRefused(f"line {line}: more values than a study file may have")
            if type(token) in _REFUSED:
                raise YamlRefused(f"line {line}: {_REFUSED[type(token)]} is not allowed in a study file; "
                                  "write the value out")
            if isinstance(token, yaml.ScalarToken):
                _refuse_value(token, line)
            depth += isinstance(token, yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken
                                | yaml.FlowMappingStartToken | yaml.FlowSequenceStartToken)
            depth -= isinstance(token, yaml.BlockEndToken | yaml.FlowMappingEndToken | yaml.FlowSequenceEndToken)
            if depth > MAX_DEPTH:
                raise YamlRefused(f"line {line}: nested more than {MAX_DEPTH} deep")
    except yaml.MarkedYAMLError as error:
        raise _syntax(error) from None
    except yaml.YAMLError as error:
        raise YamlRefused(f"not YAML: {' '.join(str(error).split())}") from None


def _refuse_value(token: yaml.ScalarToken, line: int) -> None:
    if "${" in token.value:
        raise YamlRefused(f"line {line}: ${{...}} is not allowed in a study file; write the value out")
    if len(token.value) > MAX_VALUE:
        raise YamlRefused(f"line {line}: a value of more than {MAX_VALUE:,} characters")
    if token.plain and _SURPRISING_NUMBER.fullmatch(token.value):
        raise YamlRefused(f"line {line}: YAML reads {token.value} as a number of base 8 or 60; "
                          "write it without a leading zero or colon, or in quotes")


def _syntax(error: yaml.MarkedYAMLError) -> YamlRefused:
    mark = error.problem_mark or error.context_mark
    line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return YamlRefused(f"{line}{', '.join(filter(None, (error.context, error.problem)))}")


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

    config = _create(text)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise YamlRefused(f"override {override!r}: write key=value or key.sub=value")
        try:
            given = OmegaConf.to_container(_create(f"value: {value}"), resolve=False)
            if not isinstance(given, dict) or list(given) != ["value"]:
                raise YamlRefused("should be one value")
            OmegaConf.update(config, key, given["value"], merge=False)
        except Exception as error:  # OmegaConf raises IndexError, TypeError and others for keys that lead nowhere
            raise YamlRefused(f"override {override!r}: {_first_line(error)}") from None
    return OmegaConf.to_container(config, resolve=False)


def _create(text: str) -> Any:
    """OmegaConf's container for `text`. Raises YamlRefused."""
    from omegaconf import OmegaConf

    refuse_surprises(text)
    try:
        return OmegaConf.create(text)
    except yaml.MarkedYAMLError as error:  # a duplicate key
        raise _syntax(error) from None
    except Exception as error:  # no one class of OmegaConf's: AssertionError where the text is a number
        raise YamlRefused(f"not a study file: {_first_line(error) or 'it holds a single value'}") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0]
