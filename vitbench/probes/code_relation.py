"""Whether codes of intensity have to do with each other: one-hot vectors, the map behind them, a learned table."""

from collections.abc import Iterator
from math import log
from typing import Annotated, Any

import altair as alt
import numpy as np
import numpy.typing as npt
from pydantic import Field

from vitbench.grid import Run
from vitbench.probes import PROBES, ROWS, RUN, WIDTH, Column, Look, Measured, ProbeError, ProbeMeta, filled, named
from vitbench.probes._chance import seeded
from vitbench.probes._figure import by_kind
from vitbench.spec import Frozen, ImageSpec

Table = npt.NDArray[np.float64]
ONE_HOT, MAP, LOOKUP = "one-hot codes", "map behind one-hot", "lookup table"
UNTRAINED, TRAINED = "untrained", "trained"
DIGITS = ImageSpec(8, 1)


class Options(Frozen):
    """Untrained models that the mechanism is measured on."""

    draws: Annotated[int, Field(ge=1, le=1000, description="untrained models of each embedding")] = 16


@PROBES.add("code_relation", ProbeMeta(
    statement="One-hot vectors carry no relation between codes; embeddings can learn one.",
    source="Bengio et al. 2003, section 1.1; Mikolov et al. 2013, section 1", looks_at=("mechanism", "runs"),
    options=Options))
def code_relation(look: Look) -> Measured:
    """Cosine of the vectors of two codes against the distance of their intensities, untrained and trained."""
    rows = filled(COLUMNS, (*_mechanism(look), *_runs(look)))
    return Measured(COLUMNS, rows, _figure(rows), _summary(rows))


def code_vectors(embed: Any) -> dict[str, Table]:
    """The vectors of all codes in an embedding (`TokenTransformer.embed`), each P x codes x numbers, P the places of a
    patch that have vectors of their own. Empty for an embedding of intensities themselves."""
    import torch

    from vitbench.nn.tokens import Lookup, OneHot

    vectors = next((part for part in embed.children() if isinstance(part, OneHot | Lookup)), None)
    if vectors is None:
        return {}
    if isinstance(vectors, Lookup):
        return {LOOKUP: vectors.table.weight.detach().double().cpu().numpy()[None]}
    own_1CC = vectors(torch.arange(vectors.codes)[None, :, None]).double().numpy()
    (map_,) = (part for part in embed.children() if isinstance(part, torch.nn.Linear))
    map_PCD = map_.weight.detach().double().cpu().T.unflatten(0, (-1, vectors.codes)).numpy()
    return {ONE_HOT: own_1CC, MAP: map_PCD}


def distances(codes: int, levels: int) -> npt.NDArray[np.int64]:
    """Codes x codes: steps of intensity between two codes, summed over channels."""
    channels = round(log(codes, levels))
    level_CK = np.arange(codes)[:, None] // levels**np.arange(channels) % levels
    apart_CC: npt.NDArray[np.int64] = np.abs(level_CK[:, None] - level_CK[None]).sum(axis=2)
    return apart_CC


def cosines(vectors_PCD: Table) -> Table:
    """P x codes x codes; a vector of zeros has cosine 0 to all."""
    norm_PC1 = np.linalg.norm(vectors_PCD, axis=2, keepdims=True)
    unit_PCD = np.divide(vectors_PCD, norm_PC1, out=np.zeros_like(vectors_PCD), where=norm_PC1 > 0)
    cosine_PCC: Table = unit_PCD @ unit_PCD.transpose(0, 2, 1)
    return cosine_PCC


def by_distance(vectors_PCD: Table, levels: int) -> Iterator[dict[str, Any]]:
    """For each distance of two different codes the mean and deviation of their cosine, over pairs and places."""
    cosine_PCC, apart_CC = cosines(vectors_PCD), distances(vectors_PCD.shape[1], levels)
    upper_CC = np.triu(np.ones_like(apart_CC, dtype=bool), k=1)
    for distance in range(1, int(apart_CC.max()) + 1):
        found = cosine_PCC[:, upper_CC & (apart_CC == distance)]
        yield {"levels": levels, "distance": distance, "pairs": found.size, "cosine": float(found.mean()),
               "deviation": float(found.std())}


def _mechanism(look: Look) -> Iterator[dict[str, Any]]:
    from vitbench import models

    found: dict[str, list[Table]] = {}
    for embedding in ("one_hot", "lookup"):
        for seed in look.rng.integers(2**63, size=look.options.draws):
            with seeded(seed):
                model = models.build("token_transformer", "s", {"tokens": "pixel", "embedding": embedding}, DIGITS, 10)
            for kind, vectors_PCD in code_vectors(model.embed).items():
                found.setdefault(kind, []).append(vectors_PCD)
    levels = found[ONE_HOT][0].shape[1]
    for kind, drawn in found.items():
        name = kind if kind == ONE_HOT else f"{kind}, {UNTRAINED}"
        vectors_PCD = drawn[0] if kind == ONE_HOT else np.concatenate(drawn)
        yield from ({"kind": name, **facts} for facts in by_distance(vectors_PCD, levels))


def _runs(look: Look) -> Iterator[dict[str, Any]]:
    coded = [run for run in look.runs if run.spec.options.get("embedding", "linear") != "linear"]
    if look.runs and not coded:
        raise ProbeError("none of these runs sees codes of intensity (embedding: one_hot or lookup of "
                         "token_transformer); `vitbench probe code_relation` looks at untrained ones")
    yield from (row for run in coded for row in _of_run(look, run))


def _of_run(look: Look, run: Run) -> Iterator[dict[str, Any]]:
    from vitbench.nn.tokens import Codes

    embed: Any = look.trained(run).module.model.embed
    (codes,) = (part for part in embed.children() if isinstance(part, Codes))
    for kind, vectors_PCD in code_vectors(embed).items():
        name = kind if kind == ONE_HOT else f"{kind}, {TRAINED}"
        yield from ({"kind": name, **facts, **named(run)} for facts in by_distance(vectors_PCD, codes.levels))


COLUMNS = (
    Column(name="kind", unit="", meaning="whose vectors: the one-hot codes themselves, those that the map behind them "
                                         "gives each code, or the learned table"),
    Column(name="levels", unit="", meaning="steps of intensity of a channel"),
    Column(name="distance", unit="steps of intensity", meaning="between two codes, summed over channels"),
    Column(name="pairs", unit="", meaning="of codes at this distance, in all places of a patch and untrained models"),
    Column(name="cosine", unit="", meaning="of their vectors, mean over pairs: 0 where codes have nothing in common"),
    Column(name="deviation", unit="", meaning="of the cosine over pairs"), *RUN)


def _figure(rows: list[dict[str, Any]]) -> Any:
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    return alt.Chart(ROWS).mark_line(point=alt.OverlayMarkDef(filled=True, size=40)).encode(
        x=alt.X("distance:Q", axis=alt.Axis(title="distance of two codes, steps of intensity", tickMinStep=1)),
        y=alt.Y("mean(cosine):Q", axis=alt.Axis(title="cosine of their vectors, mean"),
                scale=alt.Scale(domain=[-1, 1])),
        **by_kind("kind", kinds)).properties(width=WIDTH, height=280)


def _summary(rows: list[dict[str, Any]]) -> str:
    parts = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        found = [row for row in rows if row["kind"] == kind]
        half = max(row["distance"] for row in found) / 2
        near, far = (np.average([row["cosine"] for row in chosen], weights=[row["pairs"] for row in chosen])
                     for chosen in ([row for row in found if row["distance"] == 1],
                                    [row for row in found if row["distance"] >= half]))
        parts.append(f"{kind} {near:.2f} and {far:.2f}")
    return ("Cosine of the vectors of codes one step of intensity apart, and of those at least half the range apart: "
            f"{'; '.join(parts)}.")
