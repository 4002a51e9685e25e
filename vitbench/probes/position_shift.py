"""Whether the vector of place p + k is a linear map of the vector of place p, the same map for every p."""

from collections.abc import Iterator
from typing import Annotated, Any

import altair as alt
import numpy as np
import numpy.typing as npt
from pydantic import Field

from vitbench.grid import Run
from vitbench.probes import PROBES, ROWS, RUN, WIDTH, Column, Look, Measured, ProbeError, ProbeMeta, named
from vitbench.probes._figure import by_kind
from vitbench.spec import Frozen

Table = npt.NDArray[np.float64]
SINUSOIDAL, EXACT, LEARNED, TRAINED, RANDOM = KINDS = (
    "sinusoidal, fitted", "sinusoidal, rotation", "learned, untrained", "learned, trained", "random")


class Options(Frozen):
    """Places and width are those of the tables of the mechanism; trained ones bring their own."""

    places: Annotated[int, Field(ge=8, le=4096)] = 256
    width: Annotated[int, Field(ge=2, le=1024, multiple_of=2)] = 64
    max_shift: Annotated[int, Field(ge=1, le=1024)] = 16
    splits: Annotated[int, Field(ge=1, le=100, description="random halves of the places, averaged")] = 8


def rotation(width: int, shift: int) -> Table:
    """D x D, of a table whose columns alternate sine and cosine: `rotation @ table[p] == table[p + shift]`."""
    map_DD = np.zeros((width, width))
    for i, angle in enumerate(shift * 10_000.0 ** (-np.arange(0, width, 2) / width)):
        map_DD[2 * i:2 * i + 2, 2 * i:2 * i + 2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return map_DD


def rotated_residual(table_ND: Table, shift: int) -> float:
    """Relative residual of the rotation over all places: |table[p + k] - R table[p]| / |table[p + k]|."""
    target = table_ND[shift:]
    return float(np.linalg.norm(target - table_ND[:-shift] @ rotation(table_ND.shape[1], shift).T)
                 / np.linalg.norm(target))


def fitted_residual(table_ND: Table, shift: int, splits: int, rng: np.random.Generator) -> float:
    """Relative residual on half of the places of the least-squares map of the other half, mean over random halves.

    1 is what the map to zero gives. Held out, because a table of no more places than numbers a place fits any map.
    """
    before, after = table_ND[:-shift], table_ND[shift:]
    found = []
    for _ in range(splits):
        order = rng.permutation(len(before))
        fitted, held = order[:len(order) // 2], order[len(order) // 2:]
        map_DD = np.linalg.lstsq(before[fitted], after[fitted], rcond=None)[0]
        found.append(np.linalg.norm(after[held] - before[held] @ map_DD) / np.linalg.norm(after[held]))
    return float(np.mean(found))


@PROBES.add("position_shift", ProbeMeta(
    statement="Sine and cosine make the position vector of place p + k a linear map of that of place p.",
    source="Vaswani et al. 2017, section 3.5", looks_at=("mechanism", "runs"), options=Options,
    families=("attention",)))
def position_shift(look: Look) -> Measured:
    """Residuals for every shift, of tables of one size: sinusoidal, learned and random ones."""
    trained, none = list(_trained(look)), dict.fromkeys(column.name for column in RUN)
    if look.runs and not trained:
        raise ProbeError("none of these runs has a learned table of positions (positions: learned)")
    sizes = dict.fromkeys((len(table_ND), table_ND.shape[1]) for _, table_ND in trained)
    sizes = sizes or {(look.options.places, look.options.width): None}
    tables = [(kind, none, table_ND) for places, width in sizes
              for kind, table_ND in _untrained(places, width, look.rng)]
    tables += [(TRAINED, named(run), table_ND) for run, table_ND in trained]
    rows = [{"kind": kind, "places": len(table_ND), "width": table_ND.shape[1], "shift": shift, **facts, **run}
            for kind, run, table_ND in tables for shift, facts in _residuals(kind, table_ND, look)]
    return Measured((*COLUMNS, *RUN), rows, _figure(rows), _summary(rows))


def _trained(look: Look) -> Iterator[tuple[Run, Table]]:
    for run in look.runs:
        if look.record(run).card.get("positions", "learned") == "learned":  # others are not trained
            model = look.trained(run).module.model
            for name, weight in model.named_parameters():
                if name.endswith("positions.table_ND"):
                    yield run, weight.detach().cpu().double().numpy()


def _untrained(places: int, width: int, rng: np.random.Generator) -> Iterator[tuple[str, Table]]:
    import torch

    from vitbench.nn.token_transformer import LearnedPositions, SinusoidalPositions

    waves_ND = SinusoidalPositions(places, width).table_ND.double().numpy()
    yield from ((kind, waves_ND) for kind in ((SINUSOIDAL, EXACT) if width % 2 == 0 else (SINUSOIDAL,)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63)))
        yield LEARNED, LearnedPositions(places, width).table_ND.detach().double().numpy()
    yield RANDOM, rng.normal(size=(places, width))


def _residuals(kind: str, table_ND: Table, look: Look) -> Iterator[tuple[int, dict[str, float]]]:
    for shift in range(1, min(look.options.max_shift, len(table_ND) // 2) + 1):
        if kind == EXACT:
            yield shift, {"pairs_fitted": 0, "residual": rotated_residual(table_ND, shift)}
        else:
            yield shift, {"pairs_fitted": (len(table_ND) - shift) // 2,
                          "residual": fitted_residual(table_ND, shift, look.options.splits, look.rng)}


COLUMNS = (
    Column(name="kind", unit="", meaning="of the table; a rotation has no free number, other maps are fitted"),
    Column(name="places", unit="", meaning="rows of the table"),
    Column(name="width", unit="", meaning="numbers of a position vector"),
    Column(name="shift", unit="places", meaning="k"),
    Column(name="pairs_fitted", unit="", meaning="pairs of places that the map was fitted to; fewer than the "
                                                 "width do not determine it"),
    Column(name="residual", unit="", meaning="on the places held out, as a share of the norm of what was to be met: "
                                             "0 a linear map, 1 no better than the map to zero"))


def _figure(rows: list[dict[str, Any]]) -> Any:
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    y = alt.Y("mean(residual):Q", axis=alt.Axis(title="relative residual (log scale)", format="~e", tickCount=5),
              scale=alt.Scale(type="log"))
    x = alt.X("shift:Q", axis=alt.Axis(title="shift k, places", tickMinStep=1, format="d"))
    return alt.Chart(ROWS).mark_line(point=alt.OverlayMarkDef(filled=True, size=40)).encode(
        x=x, y=y, detail=["places:N", "width:N"], **by_kind("kind", kinds)).properties(width=WIDTH, height=280)


def _summary(rows: list[dict[str, Any]]) -> str:
    parts = []
    for kind in KINDS:
        found = [row["residual"] for row in rows if row["kind"] == kind]
        if found:
            parts.append(f"{kind} {min(found):.2g} to {max(found):.2g}")
    return f"Relative residual of p + k as a linear map of p: {'; '.join(parts)}."
