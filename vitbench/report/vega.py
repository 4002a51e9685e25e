"""What all Vega-Lite figures share: configuration, selection of cells, and what a citation of them names."""

from typing import Any, Literal

import altair as alt

from vitbench.registry import nearest
from vitbench.report import notes
from vitbench.report.cells import Cell, cells
from vitbench.report.frame import Frame
from vitbench.report.palette import FONT, INK, QUIET, ModelStyle

Spec = dict[str, Any]
Quantity = Literal["accuracy", "loss"]
WIDTH = 560  # pixels of a plot where no page gives it another

CONFIG: Spec = {
    "font": FONT, "background": "transparent", "view": {"stroke": None},
    "axis": {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12,
             "titleFontWeight": "normal", "gridColor": QUIET, "gridOpacity": 0.22, "domainColor": QUIET,
             "tickColor": QUIET},
    "legend": {"labelColor": INK, "labelFontSize": 12, "title": None, "symbolSize": 500, "symbolOpacity": 1,
               "labelLimit": 220},
    "header": {"labelColor": INK, "labelFontSize": 12, "title": None},
    "title": {"color": INK, "subtitleColor": INK, "anchor": "start", "fontSize": 14, "subtitleFontSize": 12},
    "text": {"font": FONT, "fontSize": 12},
}


class NoSuchCell(ValueError):
    """A selection that is not in the study. The message says what is."""


def conditions(frame: Frame) -> tuple[str, ...]:
    """Each 'regime, budget, setting' of the study, in grid order: what one figure of all models holds fixed."""
    return tuple(dict.fromkeys(cell.condition for cell in cells(frame)))


def of_condition(frame: Frame, condition: str | None) -> tuple[Cell, ...]:
    """Cells of one condition, the first where none is given. Raises NoSuchCell."""
    known = conditions(frame)
    wanted = known[0] if condition is None and known else condition
    if wanted not in known:
        raise NoSuchCell(f"no condition {wanted!r} in study {frame.study!r}; it has {'; '.join(known) or 'none'}")
    return tuple(cell for cell in cells(frame) if cell.condition == wanted)


def one_cell(frame: Frame, label: str, share: str, condition: str | None) -> Cell:
    """The cell of a model, share and condition. Raises NoSuchCell."""
    found = {(cell.label, cell.share): cell for cell in of_condition(frame, condition)}
    for value, known in ((label, {key[0] for key in found}), (share, {key[1] for key in found})):
        if value not in known:
            raise NoSuchCell(f"no {value!r} in study {frame.study!r}.{nearest(value, sorted(known))}")
    return found[label, share]


def value_axis(quantity: Quantity, **options: Any) -> Any:
    """Axis of shares in percent or of losses in nats; plain numbers, so that ticks stay short."""
    if quantity == "accuracy":
        options["labelExpr"] = "format(datum.value * 100, '.3~g')"
    return alt.Axis(**options)


def by_model(channel: Any, styles: tuple[ModelStyle, ...], attribute: str) -> Any:
    """A channel that tells the models apart by one attribute of their styles; a key stands elsewhere."""
    scale = alt.Scale(domain=[s.label for s in styles], range=[getattr(s, attribute) for s in styles])
    kind = "O" if channel is alt.StrokeWidth else "N"  # Vega-Lite warns of widths without an order
    return channel(f"label:{kind}", scale=scale, legend=None)


def finish(chart: Any, frame: Frame, datasets: dict[str, list[Spec]]) -> Spec:
    """The specification with our configuration, its data, and what a citation names (protocol rule 30)."""
    versions, numerics, sha256 = notes.identity(frame)
    spec: Spec = chart.to_dict()
    rests_on = {"study": frame.study, "runs": len(frame.rows), "interval": notes.INTERVAL, "code_version": versions,
                "numerics": numerics, "content_sha256": sha256}
    return {**spec, "config": CONFIG, "datasets": datasets, "usermeta": {"vitbench": rests_on}}
