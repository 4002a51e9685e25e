"""Whether the vector of the place k further on is a linear map of a place's vector, the same map for every place."""

from collections.abc import Iterator
from typing import Annotated, Any

import altair as alt
import numpy as np
import numpy.typing as npt
from pydantic import Field

from vitbench.grid import Run
from vitbench.probes import PROBES, ROWS, RUN, Column, Look, Measured, ProbeError, ProbeMeta, filled, named
from vitbench.probes._chance import seeded
from vitbench.probes._figure import by_kind
from vitbench.spec import Frozen

Table = npt.NDArray[np.float64]
WAVES, WAVES_2D, LEARNED, TRAINED, RANDOM = (
    "sinusoidal", "sinusoidal 2-D", "learned, untrained", "learned, trained", "random")
ROTATION = ", rotation"  # instead of a fitted map
KINDS = (WAVES, WAVES + ROTATION, WAVES_2D, WAVES_2D + ROTATION, LEARNED, TRAINED, RANDOM)
DIRECTIONS = ("sequence", "right", "down")
LEAST_LINES = 3  # one to fit, two held out


class Options(Frozen):
    """Side of the grid and width of the tables of the mechanism; trained ones bring their own."""

    side: Annotated[int, Field(ge=4, le=64)] = 48
    width: Annotated[int, Field(ge=4, le=1024, multiple_of=4)] = 32
    max_shift: Annotated[int, Field(ge=1, le=64)] = 8
    splits: Annotated[int, Field(ge=1, le=100, description="random halves, averaged")] = 4


def pairs(side: int, shift: int, direction: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers, in raster order, of the places of a square grid that have one `shift` further on, and of that one."""
    place = np.arange(side**2)
    further = place + shift * (side if direction == "down" else 1)
    there = place % side + shift < side if direction == "right" else further < side**2
    return place[there], further[there]


def rotation(width: int, angle: float) -> Table:
    """D x D, of sines and cosines in turn at rates 10000^(-2k/D): `rotation @ table[p] == table[p + angle]`."""
    map_DD = np.zeros((width, width))
    for i, turn in enumerate(angle * 10_000.0 ** (-np.arange(0, width, 2) / width)):
        map_DD[2 * i:2 * i + 2, 2 * i:2 * i + 2] = [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
    return map_DD


def rotation_2d(width: int, shift: int, direction: str) -> Table:
    """Of vectors whose first half tells the row and whose second half tells the column."""
    map_DD, half = np.eye(width), width // 2
    of = slice(half) if direction == "down" else slice(half, width)
    map_DD[of, of] = rotation(half, shift)
    return map_DD


def residual(before: Table, after: Table, map_DD: Table) -> float:
    """|after - before map'| / |after|: 0 where the map holds, 1 where it is no better than the map to zero."""
    return float(np.linalg.norm(after - before @ map_DD.T) / np.linalg.norm(after))


def fitted_residual(before: Table, after: Table, line: npt.NDArray[np.int64], splits: int,
                    rng: np.random.Generator) -> float:
    """Of the least-squares map of the pairs on one half of the lines, on the other half; mean over random halves.

    Held out, because a table of no more lines than numbers fits any map. `line` is what each pair's first place has of
    its own along the shift: its number, column or row. Were single places held out of a row, a table that adds a
    vector of the row to one of the column would show every row in the fit.
    """
    found = []
    for _ in range(splits):
        order = rng.permutation(np.unique(line))
        fitted = np.isin(line, order[:len(order) // 2])
        held = ~fitted
        transposed: Table = np.linalg.lstsq(before[fitted], after[fitted], rcond=None)[0].astype(np.float64)
        found.append(residual(before[held], after[held], transposed.T))
    return float(np.mean(found))


@PROBES.add("position_shift", ProbeMeta(
    statement="Sine and cosine make the position vector of place p + k a linear map of that of place p.",
    source="Vaswani et al. 2017, section 3.5", looks_at=("mechanism", "runs"), options=Options,
    families=("attention",)))
def position_shift(look: Look) -> Measured:
    """Residuals for every shift and direction, of tables of one size: sinusoidal, learned and random ones."""
    trained = list(_trained(look))
    if look.runs and not trained:
        raise ProbeError("none of these runs has a learned table of positions (positions: learned)")
    sizes = dict.fromkeys((round(len(table_ND)**0.5), table_ND.shape[1]) for _, table_ND in trained)
    sizes = sizes or {(look.options.side, look.options.width): None}
    tables: list[tuple[str, dict[str, Any], Table]] = [
        (kind, {}, table_ND) for side, width in sizes
        for kind, table_ND in _untrained(side, width, look.rng).items()]
    tables += [(TRAINED, named(run), table_ND) for run, table_ND in trained]
    rows = filled(COLUMNS, ({"side": round(len(table_ND)**0.5), "width": table_ND.shape[1], **facts, **run}
                            for kind, run, table_ND in tables for facts in _residuals(kind, table_ND, look)))
    return Measured(COLUMNS, rows, _figure(rows), _summary(rows))


def _trained(look: Look) -> Iterator[tuple[Run, Table]]:
    from vitbench.nn.positions import LearnedPositions

    for run in look.runs:
        if look.record(run).card.get("positions", "learned") == "learned":  # others are not trained
            for module in look.trained(run).module.model.modules():
                if isinstance(module, LearnedPositions):
                    yield run, module.table_ND.detach().cpu().double().numpy()


def _untrained(side: int, width: int, rng: np.random.Generator) -> dict[str, Table]:
    from vitbench.nn.grid import Grid
    from vitbench.nn.positions import LearnedPositions, SinusoidalPositions

    grid = Grid(side, side)
    with seeded(rng.integers(2**63)):
        learned = LearnedPositions(grid, width).table_ND.detach()
    waves = {kind: SinusoidalPositions(grid, width, dimensions).table(grid)
             for kind, dimensions in ((WAVES, 1), (WAVES_2D, 2))}
    return {kind: table_ND.double().numpy() for kind, table_ND in {**waves, LEARNED: learned}.items()} | {
        RANDOM: rng.normal(size=(side**2, width))}


def _residuals(kind: str, table_ND: Table, look: Look) -> Iterator[dict[str, Any]]:
    side, width = round(len(table_ND)**0.5), table_ND.shape[1]
    for direction in DIRECTIONS:
        for shift in range(1, min(look.options.max_shift, side - 1) + 1):
            place, further = pairs(side, shift, direction)
            before, after = table_ND[place], table_ND[further]
            facts = {"direction": direction, "shift": shift}
            line = {"sequence": place, "right": place % side, "down": place // side}[direction]
            lines = len(np.unique(line))
            if lines >= LEAST_LINES:
                yield {"kind": kind, **facts, "lines_fitted": lines // 2,
                       "residual": fitted_residual(before, after, line, look.options.splits, look.rng)}
            map_DD = None
            if kind == WAVES and width % 2 == 0:
                map_DD = rotation(width, shift * (side if direction == "down" else 1))
            elif kind == WAVES_2D and width % 4 == 0 and direction != "sequence":  # a row's end is no shift in 2-D
                map_DD = rotation_2d(width, shift, direction)
            if map_DD is not None:
                yield {"kind": kind + ROTATION, **facts, "lines_fitted": 0, "residual": residual(before, after, map_DD)}


COLUMNS = (
    Column(name="kind", unit="", meaning="of the table; a rotation has no free number, other maps are fitted"),
    Column(name="side", unit="places", meaning="of the square grid"),
    Column(name="width", unit="", meaning="numbers of a position vector"),
    Column(name="direction", unit="", meaning="of the shift: along the raster order, or right or down inside the grid"),
    Column(name="shift", unit="places", meaning="k"),
    Column(name="lines_fitted", unit="", meaning="places, columns or rows that the map was fitted to, half of all; "
                                                 "fewer than the numbers that tell them apart do not determine it"),
    Column(name="residual", unit="", meaning="on the others, held out, as a share of the norm of what was to be met: "
                                             "0 a linear map, 1 no better than the map to zero"), *RUN)


def _figure(rows: list[dict[str, Any]]) -> Any:
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    y = alt.Y("mean(residual):Q", axis=alt.Axis(title="relative residual (log scale)", format="~e", tickCount=5),
              scale=alt.Scale(type="log"))
    x = alt.X("shift:Q", axis=alt.Axis(title="shift k, places", tickMinStep=1, format="d"))
    return alt.Chart(ROWS).mark_line(point=alt.OverlayMarkDef(filled=True, size=36)).encode(
        x=x, y=y, detail=["side:N", "width:N"], **by_kind("kind", kinds)).properties(width=180, height=240).facet(
        column=alt.Column("direction:N", sort=list(DIRECTIONS)))


def _summary(rows: list[dict[str, Any]]) -> str:
    parts = []
    for kind in KINDS:
        found = [row["residual"] for row in rows if row["kind"] == kind]
        if found:
            parts.append(f"{kind} {min(found):.2g} to {max(found):.2g}")
    small = sorted({(row["side"], row["width"]) for row in rows if row["side"]**2 // 2 < row["width"]})
    sizes = ", ".join(f"{side} x {side} places of {width} numbers" for side, width in small)
    told = (f" With {sizes} half of the places does not determine a map: there the random table of their size is the "
            "measure.") if small else ""
    return f"Relative residual of the place k further on as a linear map: {'; '.join(parts)}.{told}"
