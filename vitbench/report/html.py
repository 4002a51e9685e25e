"""The page of a study: one HTML file that asks nobody for anything."""

import base64
import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from vitbench.config import Study
from vitbench.report import notes, render, tables
from vitbench.report.alt_text import accuracy_text, overfitting_text, overview_text
from vitbench.report.catalogue import beside
from vitbench.report.cells import Cell, all_cells, cells
from vitbench.report.curve_figures import overfitting_form
from vitbench.report.curves import cell_curves
from vitbench.report.figures import accuracy, conditions, overview
from vitbench.report.frame import Frame
from vitbench.report.palette import ModelStyle, model_styles
from vitbench.report.tuning_figure import best_of_k, best_of_k_text
from vitbench.report.vega import of_condition

VEGA_LITE = "6.4"  # what Altair writes
MARKS = {"circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "square": "M-4-4h8v8h-8z", "diamond": "M0-5L4 0L0 5L-4 0z",
         "cross": "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z", "triangle-up": "M0-4.5L4.5 4h-9z",
         "triangle-down": "M0 4.5L4.5-4h-9z", "triangle-right": "M4.5 0L-4 4.5v-9z",
         "triangle-left": "M-4.5 0L4 4.5v-9z", "wedge": "M0-5L2.5 4h-5z", "arrow": "M0-5L4 0h-2.5v5h-3v-5H-4z"}


def page(frame: Frame, study: Study, picture: Callable[[str], bytes | None] = lambda _regime: None, *,
         mixed_devices: bool = False) -> str:
    """The whole page; the same records and pictures give the same bytes.

    `picture` gives the PNG of what a regime does to images, None where there is none. No request leaves the page, and
    its Content-Security-Policy forbids one. Raises MixedDevices as the table does.
    """
    whole, frame = frame, frame.main
    found = cells(frame)
    table = tables.summary(whole, mixed_devices=mixed_devices)
    scripts = {"vega": vega_bundle(), "page": (files("vitbench.report") / "page.js").read_text("utf-8")}
    versions, numerics, sha256 = notes.identity(whole)
    return _environment().get_template("page.html.j2").render(
        frame=frame, study=study, cells=found, table=Markup(render.html(table)),
        beside=[Markup(render.html(table)) for table in beside(whole)], whole=whole, policy=_policy(scripts),
        style=Markup((files("vitbench.report") / "page.css").read_text("utf-8")),
        scripts={name: Markup(text) for name, text in scripts.items()}, data=Markup(script_json(_data(whole, found))),
        key=[_key(style, found) for style in model_styles(found)], marks=MARKS, conditions=conditions(frame),
        labels=list(dict.fromkeys(cell.label for cell in found)),
        shares=list(dict.fromkeys(cell.share for cell in found)),
        # Without validation there is no onset to look at.
        first_share=next((cell.share for cell in found if cell.val_images), found[0].share),
        regimes=[_regime(whole, regime, picture(regime)) for regime in study.regimes if regime != "none"],
        ended_badly=_ended_badly(whole), missing=_missing(whole), excluded=sorted(whole.excluded.items()),
        versions=versions, numerics=numerics, sha256=sha256, devices=notes.devices_of(whole),
        run_ids=sorted({row.run_id for row in whole.rows}))


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script without a request."""
    import vl_convert
    text: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VEGA_LITE)
    if "</script" in text or "<!--" in text:
        raise ValueError("the Vega bundle would end its own script element")
    return text


def script_json(value: object) -> str:
    """JSON that no text in it can end early: <, > and & are escaped, and so is what ends a JavaScript line."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _environment() -> Environment:
    return Environment(loader=PackageLoader("vitbench.report", "."), autoescape=True, undefined=StrictUndefined,
                       trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)


def _policy(scripts: dict[str, str]) -> str:
    """Only our own scripts run, named by hash; nothing is fetched. Vega runs with its interpreter, without eval."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
                      for text in scripts.values())
    return (f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; connect-src 'none'; "
            "base-uri 'none'; form-action 'none'")


def _data(frame: Frame, found: tuple[Cell, ...]) -> dict[str, Any]:
    whole, frame = frame, frame.main
    by_condition = {condition: of_condition(frame, condition) for condition in conditions(frame)}
    return {
        "accuracy": {c: {"wide": accuracy(frame, condition=c),
                         "narrow": accuracy(frame, condition=c, direct_labels=False), "text": accuracy_text(of)}
                     for c, of in by_condition.items()},
        "overview": {c: {"spec": overview(frame, condition=c), "text": overview_text(of),
                         "shares": len({cell.share for cell in of})}
                     for c, of in by_condition.items()},
        "overfitting": {f"{quantity},{axis}": overfitting_form(frame, quantity, axis)
                        for quantity in ("accuracy", "loss") for axis in ("log", "linear")},
        "cells": [_curves(frame, cell) for cell in found],
        "tuning": {"spec": best_of_k(whole), "text": best_of_k_text(whole)} if whole.searches else None,
    }


def _curves(frame: Frame, cell: Cell) -> dict[str, Any]:
    """Rows without their keys: half the bytes of the page are curves."""
    curves = cell_curves(frame, cell)
    return {"label": cell.label, "share": cell.share, "condition": cell.condition, "curves": curves.curves,
            "onsets": curves.onsets, "text": overfitting_text(cell, curves)}


def _key(style: ModelStyle, found: tuple[Cell, ...]) -> dict[str, Any]:
    cell = next(cell for cell in found if cell.label == style.label)
    return {"style": style, "family": cell.family, "size": cell.size,
            "dash": " ".join(map(str, style.dash)) if style.dash[1] else "none"}


def _regime(frame: Frame, regime: str, png: bytes | None) -> dict[str, str | None]:
    source = None if png is None else f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return {"name": regime, "done": notes.augmentation_of(frame, regime), "source": source}


def _ended_badly(frame: Frame) -> list[dict[str, Any]]:
    return [{"name": f"{_named(cell)}, seed {row.seed}", "outcome": row.outcome,
             "run_id": row.run_id, "reason": row.reason or "no reason recorded"}
            for cell in all_cells(frame) for row in cell.rows if row.outcome != "done"]


def _missing(frame: Frame) -> list[str]:
    """One line a cell: its missing seeds."""
    lines = []
    for cell in all_cells(frame):
        ended = {row.run_id for row in cell.rows}
        seeds = [str(run.spec.seed) for run in cell.runs if run.spec.run_id not in ended]
        if seeds:
            lines.append(f"{_named(cell)}: seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}")
    return lines


def _named(cell: Cell) -> str:
    control = f", control {cell.control}" if cell.control else ""
    return f"{cell.label}, share {cell.share}, {cell.condition}{control}"
