"""A probe's figure: Vega-Lite in the report's visual language, and its drawing as a file."""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt

from vitbench.measurement import Measurement
from vitbench.report.html import VEGA_LITE
from vitbench.report.render import rounded
from vitbench.report.vega import CONFIG, Spec

FORMATS = ("svg", "png", "html")
# Of kinds that are no families, in the order in which they are named: hue, dash and shape, each enough alone.
LOOKS = (("#0072b2", [1, 0], "circle"), ("#d55e00", [6, 3], "square"), ("#009e73", [2, 2.5], "triangle-up"),
         ("#a8408a", [10, 3, 2, 3], "diamond"), ("#7a7a7a", [4, 4], "cross"), ("#b07a00", [1.5, 4], "triangle-down"),
         ("#4f7fd1", [8, 2], "triangle-right"), ("#1b1b1b", [3, 1], "triangle-left"))


def by_kind(field: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Channels colour, dash and shape that tell at most eight kinds apart, with one legend:
    `chart.mark_line(point=True).encode(x=..., y=..., **by_kind("kind", kinds))`."""
    looks = LOOKS[:len(kinds)]
    legend = alt.Legend(orient="top", columns=3, symbolSize=90, symbolStrokeWidth=1)
    channels = {"color": alt.Color, "strokeDash": alt.StrokeDash, "shape": alt.Shape}
    return {name: channel(f"{field}:N", legend=legend if name == "color" else None, scale=alt.Scale(
        domain=list(kinds), range=[look[i] for look in looks])) for i, (name, channel) in enumerate(channels.items())}


def spec_of(chart: Any, of: Measurement) -> Spec:
    """The chart with the rows as its data, our configuration, and what a citation names (protocol rule 30)."""
    spec: Spec = json.loads(json.dumps(chart.to_dict()), parse_float=lambda text: rounded(float(text)))
    datasets = {"rows": list(of.rows), **spec.get("datasets", {})}
    rests_on = {"probe": of.probe, "version": of.version, "options": of.options, "study": of.study,
                "runs": len(of.run_ids), "records_sha256": of.records_sha256, "code_version": of.code_version}
    return {**spec, "config": CONFIG, "datasets": datasets, "usermeta": {"vitbench": rests_on}}


def drawing(of: Measurement, form: str) -> bytes:
    """The figure as svg, png or html (a page that asks nobody for anything), on white: a file has no page around it."""
    import vl_convert

    spec = {**of.figure, "config": {**of.figure["config"], "background": "white"}}
    if form == "png":
        png: bytes = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=2)
        return png
    if form == "html":
        page: str = vl_convert.vegalite_to_html(spec, vl_version=VEGA_LITE, bundle=True)
        return page.encode()
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    return svg.encode()
