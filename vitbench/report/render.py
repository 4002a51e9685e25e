"""A table as Markdown, CSV, JSON or HTML. Pure: one table, one text."""

import csv as csv_module
import io
import json as json_module
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape

from vitbench.report.wording import NONE

Value = str | int | float | bool | None
WIDEST_PADDING = 40  # one long label must not push every row out of the window


@dataclass(frozen=True)
class Column:
    """A column; CSV and JSON have all, Markdown and HTML those that are `shown`."""

    key: str
    title: str
    numeric: bool = False
    shown: bool = True


@dataclass(frozen=True)
class Entry:
    """One place of a table: the number for machines, and the text for readers."""

    value: Value
    text: str


def where_varied(columns: Iterable[Column], values: Mapping[str, int]) -> tuple[Column, ...]:
    """The columns without those that hold one value in every row; `values` says how many some of them have."""
    return tuple(replace(column, shown=column.shown and values.get(column.key, 2) > 1) for column in columns)


def word(text: str | None) -> Entry:
    """A word, or a dash where it is missing."""
    return Entry(text, NONE if text is None else text)


def plain(value: Value) -> Entry:
    """A value that only machines read."""
    return Entry(value, "")


@dataclass(frozen=True)
class Table:
    """Columns, rows of as many entries, numbered footnotes on single cells, and what holds for all."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    footnotes: tuple[str, ...]
    footer: tuple[str, ...]

    def data(self) -> list[dict[str, Value]]:
        """One object a row, derived numbers with 6 significant digits, None for missing."""
        return [{column.key: rounded(entry.value) for column, entry in zip(self.columns, row, strict=True)}
                for row in self.rows]

    def shown(self) -> tuple[tuple[Column, ...], tuple[tuple[Entry, ...], ...]]:
        """Columns and rows for readers."""
        kept = [i for i, column in enumerate(self.columns) if column.shown]
        return tuple(self.columns[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in self.rows)


def rounded(value: Value) -> Value:
    """A float to 6 significant digits, so that no machine's last bit shows; anything else as it is."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def csv_text(header: list[str], rows: list[list[Value]]) -> str:
    """RFC 4180 with newline endings; missing is empty, truth is `true` or `false`."""
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([str(v).lower() if isinstance(v, bool) else rounded(v) for v in row] for row in rows)
    return out.getvalue()


def csv(table: Table) -> str:
    """All columns, one line a cell."""
    header = [column.key for column in table.columns]
    return csv_text(header, [list(row.values()) for row in table.data()])


def json(table: Table) -> str:
    """An array of objects, one a cell, null for missing."""
    return json_module.dumps(table.data(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


_INSIDE_A_WORD = re.compile(r"(?<=[^\W_])_(?=[^\W_])")
_MARKDOWN = re.compile(r"[\\`*_<>|~$#]|\](?=[(\[:])")


def markdown_text(text: str) -> str:
    """`text` on one line, showing as it is: Markdown's marks escaped, but not the _ inside a word."""
    parts = _INSIDE_A_WORD.split(" ".join(text.split()).replace("&", "&amp;"))
    return "_".join(_MARKDOWN.sub(r"\\\g<0>", part) for part in parts)


def markdown(table: Table) -> str:
    """A GitHub table, then numbered footnotes, then the footer; padded to be read as text, too."""
    columns, rows = table.shown()
    header = [markdown_text(column.title) for column in columns]
    body = [[markdown_text(entry.text) for entry in row] for row in rows]
    widths = [min(WIDEST_PADDING, max(len(line[i]) for line in [header, *body])) for i in range(len(columns))]
    right = [column.numeric for column in columns]
    rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip((max(w, 3) for w in widths), right, strict=True)]
    lines = [f"**{markdown_text(table.caption)}**", ""]
    lines += [_line(header, widths, right), _line(rule, widths, right), *(_line(line, widths, right) for line in body)]
    if table.footnotes:
        lines += ["", *(f"{i}. {markdown_text(note)}" for i, note in enumerate(table.footnotes, 1))]
    lines += ["", *(f"- {markdown_text(note)}" for note in table.footer)]
    return "\n".join(lines) + "\n"


def _line(texts: list[str], widths: list[int], right: list[bool]) -> str:
    padded = [t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right, strict=True)]
    return f"| {' | '.join(padded)} |"


def html(table: Table) -> str:
    """A `<table>` and its notes, everything escaped; `data-value` holds what a number sorts by."""
    columns, rows = table.shown()
    head = "".join(f'<th scope="col"{_kind(column)}>{escape(column.title)}</th>' for column in columns)
    body = "\n".join(f"<tr>{''.join(_place(c, e, i) for i, (c, e) in enumerate(zip(columns, row, strict=True)))}</tr>"
                     for row in rows)
    notes = "".join(f'<li value="{i}">{escape(note)}</li>' for i, note in enumerate(table.footnotes, 1))
    footer = "".join(f"<li>{escape(note)}</li>" for note in table.footer)
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="Table: {escape(table.caption)}">\n<table>'
            f"<caption><span>{escape(table.caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"
            f"</table></div>\n" + (f'<ol class="notes">{notes}</ol>\n' if notes else "")
            + f'<ul class="notes">{footer}</ul>\n')


def _kind(column: Column) -> str:
    return ' class="number"' if column.numeric else ""


def _place(column: Column, entry: Entry, position: int) -> str:
    if position == 0:
        return f'<th scope="row">{escape(entry.text)}</th>'
    value = f' data-value="{rounded(entry.value)}"' if column.numeric and entry.value is not None else ""
    return f"<td{_kind(column)}{value}>{escape(entry.text)}</td>"
