"""What a search found: each trial, and the best that a shorter search is expected to find."""

import altair as alt

from vitbench.report.cells import cells
from vitbench.report.frame import Frame
from vitbench.report.palette import model_styles
from vitbench.report.tuning import values
from vitbench.report.vega import Spec, by_model, finish, value_axis
from vitbench.report.wording import percent, six_digits
from vitbench.stats.search import expected_best


def best_of_k(frame: Frame) -> Spec:
    """Panels by share and setting: a point a trial at its validation accuracy, and a line a model, the best that k
    trials drawn from them are expected to hold (Dodge et al. 2019). One that diverged or failed counts as chance."""
    chance, rows = 1 / frame.resolved.num_classes, list[Spec]()
    for one in frame.searches:
        found, named = values(one, chance), {"label": one.label, "panel": _panel(frame, one.share, one.setting)}
        rows += [{**named, "trials": i, "value": six_digits(value)} for i, value in enumerate(found, 1)]
        rows += [{**named, "trials": k, "best": six_digits(expected_best(found, k))} for k in range(1, len(found) + 1)]
    styles = [style for style in model_styles(cells(frame)) if style.label in {row["label"] for row in rows}]
    x = alt.X("trials:Q", axis=alt.Axis(title="trials", tickMinStep=1, format="d"))
    base = alt.Chart().encode(x=x, color=by_model(alt.Color, tuple(styles), "colour"), tooltip=[
        alt.Tooltip("label:N", title="model"), alt.Tooltip("trials:Q")])
    axis = value_axis("accuracy", title="validation accuracy, %", tickCount=5)
    points = base.mark_point(filled=True, size=28, opacity=0.45).encode(
        y=alt.Y("value:Q", axis=axis, scale=alt.Scale(zero=False)), shape=by_model(alt.Shape, tuple(styles), "shape"))
    line = base.mark_line(strokeWidth=2).encode(y=alt.Y("best:Q", axis=axis),
                                                strokeDash=by_model(alt.StrokeDash, tuple(styles), "dash"))
    chart = alt.layer(points.transform_filter("isValid(datum.value)"), line.transform_filter("isValid(datum.best)"),
                      data=alt.NamedData(name="trials")).properties(width=180, height=180).facet(
        column=alt.Column("panel:N", sort=list(dict.fromkeys(row["panel"] for row in rows)),
                          header=alt.Header(labelLimit=180)), spacing=14)
    return finish(chart, frame, {"trials": rows})


def _panel(frame: Frame, share: str, setting: str) -> str:
    several = len({one.setting for one in frame.searches}) > 1
    return f"share {share}{f', {setting}' if several else ''}"


def best_of_k_text(frame: Frame) -> str:
    """The same in words."""
    chance = 1 / frame.resolved.num_classes
    parts = [f"{one.label}, share {one.share}: {len(found)} trials from {percent(min(found))} to "
             f"{percent(max(found))} % validation accuracy; one alone is expected to reach "
             f"{percent(expected_best(found, 1))} %"
             for one in frame.searches if (found := values(one, chance))]
    return f"{'; '.join(parts)}." if parts else "No trial has ended."
