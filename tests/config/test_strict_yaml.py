import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vitbench.config.strict_yaml import MAX_BYTES, MAX_DEPTH, YamlRefused, parse, read_text

Write = Callable[..., Path]


@pytest.mark.parametrize(("text", "words"), [
    ("a: 1\nb: &x 2", "line 2: an anchor (&) is not allowed"),
    ("a: 1\nb: *x", "line 2: an alias (*) is not allowed"),
    ("a: 1\n\nb: !!python/object/apply:os.system [ls]", "line 3: a tag (!) is not allowed"),
    ("a: !x 1", "line 1: a tag (!)"), ("!!map {a: 1}", "line 1: a tag (!)"), ("a: !!binary aGk=", "line 1: a tag (!)"),
    ("a: 1\nb: ${oc.env:HOME}", "line 2: ${...} is not allowed"), ("${a}: 1", "line 1: ${...}"),
    ('a: "\\x24{oc.env:HOME}"', "line 1: ${...}"), ('a: "\\u0024{x}"', "line 1: ${...}"),
    ("a: |\n  x\n  ${y}", "${...} is not allowed"), ("a: $\\\n", None), ("a: cost $ {x}", None),
    ("a: 1\na: 2", "line 2, column 1: while constructing a mapping, found duplicate key a"),
    ("{a: 1, b: 2, a: 3}", "found duplicate key a"),
    ("a: {b: 1, b: 2}", "found duplicate key b"),
    ("a: [1, 2", "while parsing a flow sequence, "), ("a: b: c", "line 1, column 5: mapping values are not allowed"),
    ("\tb: 1", "line 1, column 1: "), ("a: 'x", "line 1, column 6: "), ("a: \x07", "special characters"),
    ("a: 1\n---\nb: 2", "expected a single document"), ("a: @x", "cannot start any token"),
    ("a: 010", "line 1: YAML reads 010 as a number of base 8 or 60"), ("a: [1, 007]", "YAML reads 007"),
    ("a: 1:30", "YAML reads 1:30 as"), ("a: -0_1", "YAML reads -0_1"), ("a: 1:30.5", "YAML reads 1:30.5 as"),
    ("a: '010'", None), ("a: 0", None), ("a: -0.5", None), ("a: 00.5", None), ("a: b:10", None), ("a: 0x1f", None),
    ("5", "it holds a single value"), ("true", "it holds a single value"),
    ("a: " + "x" * 3001, "line 1: a value of more than 3,000 characters"), ("a: " + "x" * 3000, None),
    ("a: [" + "1," * 2000 + "]", None), ("a: [" + "1," * 8001 + "]", "line 1: more values than a study file may have"),
    ("null: 1", "Incompatible key type"), ("a: =", "line 1, column 4: "), ("? [a, b]\n: 1", "found unhashable key"),
])
def test_what_can_surprise_is_refused_with_its_line(text: str, words: str | None) -> None:
    if words is None:
        parse(text, [])
        return
    with pytest.raises(YamlRefused) as caught:
        parse(text, [])
    assert words in str(caught.value)


@pytest.mark.parametrize("open_close", [("[", "]"), ("{a: ", "}")])
def test_nesting_has_an_end(open_close: tuple[str, str]) -> None:
    start, end = open_close
    for extra in (0, 1):
        depth = MAX_DEPTH - 1 + extra
        text = "x: " + start * depth + "1" + end * depth
        if extra:
            with pytest.raises(YamlRefused, match=f"nested more than {MAX_DEPTH} deep"):
                parse(text, [])
        else:
            parse(text, [])


@pytest.mark.parametrize("text", ["- " * 30, "? " * 30, "".join("  " * i + "a:\n" for i in range(30))])
def test_nesting_in_blocks_has_an_end_too(text: str) -> None:
    with pytest.raises(YamlRefused, match="nested more than"):
        parse(text, [])


def test_an_alias_bomb_is_refused_at_once() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{c}: &{c} [{','.join(f'*{p}' for _ in range(9))}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True))
    started = time.process_time()
    with pytest.raises(YamlRefused, match="line 1: an anchor"):
        parse(bomb, [])
    assert time.process_time() - started < 1


@pytest.mark.parametrize(("text", "value"), [
    ("", {}), ("# only a comment", {}), ("a: 1e-4", {"a": 1e-4}), ("a: yes", {"a": True}),
    ("a: [1, x]", {"a": [1, "x"]}), ("a: '1'", {"a": "1"}), ("- 1", [1]),
    ("a: 2020-01-01", {"a": "2020-01-01"}), ("a: ???", {"a": "???"}),
    ("a: ü", {"a": "ü"}), ("\ufeffa: 1", {"a": 1}),
])
def test_plain_yaml_has_its_plain_value(text: str, value: object) -> None:
    assert parse(text, []) == value


@pytest.mark.parametrize(("size", "taken"), [(MAX_BYTES, True), (MAX_BYTES + 1, False), (10**9, False)])
def test_a_file_has_a_largest_size(tmp_path: Path, size: int, taken: bool) -> None:
    path = tmp_path / "x.yaml"
    with path.open("wb") as file:
        file.truncate(size)
    if taken:
        assert len(read_text(path)) == size
    else:
        with pytest.raises(YamlRefused, match="larger than 256 KB"):
            read_text(path)


def test_a_file_that_is_not_utf_8_says_where(study_file: Write) -> None:
    with pytest.raises(YamlRefused, match="not UTF-8 at byte 10"):
        read_text(study_file(b"question: \xff"))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(YamlRefused, match="cannot be read: No such file"):
        read_text(tmp_path / "missing.yaml")
    with pytest.raises(YamlRefused, match="cannot be read: Is a directory"):
        read_text(tmp_path)
