"""What the vectors of codes have to do with each other: nothing, by chance, or as planted."""

from math import cos, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.probes.trained_study import trained_study
from vitbench.models import build
from vitbench.probes import Look, ProbeError
from vitbench.probes._measure import Question
from vitbench.probes._target import Target, choose
from vitbench.probes.code_relation import LOOKUP, MAP, ONE_HOT, by_distance, code_vectors, cosines, distances
from vitbench.spec import ImageSpec
from vitbench.study.folder import StudyFolder


def model(embedding: str, **options: Any) -> Any:
    torch.manual_seed(1)
    return build("token_transformer", "xs", {"embedding": embedding, **options}, ImageSpec(8, 1), 5).eval()


def test_one_hot_codes_have_cosine_0_at_every_distance() -> None:
    found = list(by_distance(code_vectors(model("one_hot").embed)[ONE_HOT], 16))
    assert [row["distance"] for row in found] == list(range(1, 16))
    assert [row["pairs"] for row in found] == list(range(15, 0, -1))
    assert all(row["cosine"] == row["deviation"] == 0 for row in found)


def test_distances_are_summed_over_channels() -> None:
    levels, found = 3, distances(27, 3)
    for a in range(27):
        for b in range(27):
            apart = sum(abs(a // levels**c % levels - b // levels**c % levels) for c in range(3))
            assert found[a, b] == apart


def test_a_planted_relation_is_found_exactly() -> None:
    """Intensity as an angle: the cosine of two codes is that of their distance times a step."""
    angle = 0.2 * np.arange(16)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    two_places = np.stack([circle, 3 * circle])
    for row in by_distance(two_places, 16):
        assert row["cosine"] == pytest.approx(cos(0.2 * row["distance"]))
        assert row["pairs"] == 2 * (16 - row["distance"])
        assert row["deviation"] == pytest.approx(0, abs=1e-9)


def test_a_vector_of_zeros_has_nothing_to_do_with_any() -> None:
    assert (cosines(np.array([[[0.0, 0.0], [1.0, 2.0]]]))[0] == pytest.approx(np.array([[0, 0], [0, 1]])))


@pytest.mark.parametrize(("options", "places"), [({"tokens": "pixel"}, 1), ({}, 4)], ids=str)
def test_the_map_behind_one_hot_gives_each_code_of_each_place_its_vector(options: dict, places: int) -> None:
    embed = model("one_hot", **options).embed
    map_PCD = code_vectors(embed)[MAP]
    assert map_PCD.shape == (places, 16, 28)
    bias = embed[-1].bias.detach().double().numpy()
    codes = np.random.default_rng(0).integers(16, size=places)
    token = embed[-1](embed[2](torch.from_numpy(codes)[None, None]))[0, 0].detach().double().numpy()
    assert token == pytest.approx(sum(map_PCD[p, code] for p, code in enumerate(codes)) + bias, abs=1e-6)


def test_the_table_of_lookup_is_read_and_intensities_have_none() -> None:
    lookup = model("lookup", code_dim=5)
    assert code_vectors(lookup.embed).keys() == {LOOKUP}
    assert code_vectors(lookup.embed)[LOOKUP][0] == pytest.approx(lookup.embed[2].table.weight.detach().numpy())
    assert code_vectors(model("linear").embed) == {}


def test_untrained_maps_and_tables_relate_codes_by_chance_only(tmp_path: Path) -> None:
    found = Question("code_relation", {"draws": 32}, tmp_path).measured(lambda _line: None)
    width = {"map behind one-hot, untrained": 64, "lookup table, untrained": 8}
    assert {row["kind"] for row in found.rows} == {ONE_HOT, *width}
    for row in found.rows:
        if row["kind"] == ONE_HOT:
            assert row["cosine"] == 0
        else:  # the cosine of independent vectors of d numbers has a deviation of 1 over the root of d
            assert row["deviation"] == pytest.approx(1 / sqrt(width[row["kind"]]), rel=0.3)
            assert abs(row["cosine"]) < 4 / sqrt(width[row["kind"]] * row["pairs"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    coded = [{"name": "token_transformer", "size": "xs", "embedding": kind, "label": kind}
             for kind in ("one_hot", "lookup")]
    return trained_study(tmp_path_factory.mktemp("codes") / "results" / "tiny", keep=["weights"],
                         models=[*coded, "token_transformer:xs"], recipe={"batch_size": 32, "learning_rate": 0.01})


def measured(folder: StudyFolder, only: str | None = None) -> list[dict[str, Any]]:
    runs, _ = choose("code_relation", Target(folder), only)
    question = Question("code_relation", {"draws": 1}, folder.store.folder.parent, folder, runs)
    return [row for row in question.measured(lambda _line: None).rows if row["run"]]


def test_codes_stay_unrelated_in_training_and_what_is_trained_is_read_from_the_run(folder: StudyFolder) -> None:
    rows = measured(folder)
    kinds = {label: {row["kind"] for row in rows if row["label"] == label} for label in ("one_hot", "lookup")}
    assert kinds == {"one_hot": {ONE_HOT, f"{MAP}, trained"}, "lookup": {f"{LOOKUP}, trained"}}
    assert all(row["cosine"] == 0 for row in rows if row["kind"] == ONE_HOT)
    assert {row["pairs"] for row in rows if row["kind"] == f"{MAP}, trained" and row["distance"] == 1} == {4 * 15}
    runs, _ = choose("code_relation", Target(folder), "model=one_hot")
    weight_DPC = Look(None, 0, folder, runs).trained(runs[0]).module.model.embed[3].weight.detach().view(28, 4, 16)
    for distance in (1, 9):
        alike = [float(torch.cosine_similarity(weight_DPC[:, p, a], weight_DPC[:, p, a + distance], dim=0))
                 for p in range(4) for a in range(16 - distance)]
        row = next(row for row in rows if row["kind"] == f"{MAP}, trained" and row["distance"] == distance)
        assert row["cosine"] == pytest.approx(np.mean(alike), abs=1e-5)
        assert row["deviation"] == pytest.approx(np.std(alike), abs=1e-5)


def test_runs_without_codes_are_refused(folder: StudyFolder) -> None:
    with pytest.raises(ProbeError, match=r"none of these runs sees codes of intensity \(embedding: one_hot or lookup"):
        measured(folder, "model=token_transformer:xs")
