"""What a regime does to a dataset's images, and what the labels forbid."""

import pytest

from tests.report import factory
from vitbench import expansion, regimes
from vitbench.datasets import DATASETS
from vitbench.regimes import (
    LIGHT,
    WORDS,
    ForbiddenRegime,
    UnknownWord,
    applied,
    augmentation_text,
    check_words,
    regularisers_of,
)
from vitbench.spec import ImageSpec

GREY, RGB, SEVEN = ImageSpec(28, 1), ImageSpec(28, 3), ImageSpec(28, 7)


def test_none_does_nothing_even_where_everything_is_allowed() -> None:
    assert applied("none", WORDS, GREY) == ()
    assert applied("none", (), GREY) == ()
    assert augmentation_text("none", (), GREY) == "none"


def test_light_moves_and_mirrors_and_strong_does_all_that_light_does() -> None:
    assert applied("light", WORDS, GREY) == LIGHT
    assert set(LIGHT) < set(applied("strong", WORDS, GREY))


@pytest.mark.parametrize(("image", "impossible"), [
    (RGB, set()), (GREY, {"colour"}), (SEVEN, {"colour", "intensity", "contrast", "sharpness", "invert"}),
])
def test_strong_does_every_word_that_images_of_so_many_channels_have(image: ImageSpec, impossible: set[str]) -> None:
    assert set(applied("strong", WORDS, image)) == WORDS.keys() - impossible


def test_what_labels_forbid_is_left_out_and_told() -> None:
    assert applied("strong", ("mixup", "shift"), GREY) == ("shift", "mixup")
    assert augmentation_text("light", ("shift", "mixup"), GREY) == "shift; not flip"
    assert augmentation_text("light", ("shift", "flip"), GREY) == "shift, flip"


@pytest.mark.parametrize(("regime", "keeps", "image", "words"), [
    ("light", (), GREY,
     "'light' is forbidden by this dataset: it would shift, flip, .* under no augmentation; allowed: none$"),
    ("light", ("rotate", "mixup"), GREY, "labels stay true only under mixup, rotate; allowed: none, strong$"),
    ("strong", (), GREY, "'strong' is forbidden"), ("strong", ("colour",), GREY, "only under colour"),
])
def test_a_regime_of_which_nothing_is_allowed_is_forbidden(regime: str, keeps: tuple[str, ...], image: ImageSpec,
                                                           words: str) -> None:
    with pytest.raises(ForbiddenRegime, match=words):
        applied(regime, keeps, image)  # type: ignore[arg-type]


def test_a_word_that_names_no_augmentation_is_refused_with_the_nearest() -> None:
    check_words(WORDS)
    with pytest.raises(UnknownWord, match=r"found 'rotation'\. Did you mean 'rotate'"):
        check_words(["shift", "rotation"])


def test_the_card_tells_smoothing_and_depth_of_strong_alone() -> None:
    assert regularisers_of("none", 0.0) == regularisers_of("light", 0.0) == []
    assert regularisers_of("strong", 0.1) == ["label smoothing 0.1", "stochastic depth 0.1"]
    assert regularisers_of("strong", 0.0) == ["label smoothing 0.1", "no stochastic depth"]


def test_a_regimes_version_renames_its_runs_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    study = factory.study(regimes=["none", "light", "strong"])
    ids = [run.spec.run_id for run in expansion.expand(study, factory.resolved(study))]
    monkeypatch.setitem(regimes.REGIME_VERSIONS, "strong", 2)
    runs = expansion.expand(study, factory.resolved(study))
    for before, run in zip(ids, runs, strict=True):
        assert (run.spec.run_id == before) == (run.spec.regime != "strong")
    assert len(ids) == 3 * 12


@pytest.mark.parametrize(("name", "version", "words"), [
    ("digits", 1, "shift rotate shear intensity contrast sharpness mixup"),
    ("fashion_mnist", 1, "shift flip rotate shear intensity contrast sharpness invert erase mixup cutmix"),
    ("far_pairs", 1, "flip intensity contrast"), ("near_pairs", 1, "flip intensity contrast"),
    ("textures", 1, "shift intensity contrast erase mixup cutmix"), ("shapes_where", 1, "intensity contrast sharpness"),
])
def test_what_a_version_of_a_dataset_allows_is_frozen(name: str, version: int, words: str) -> None:
    """It decides the numbers of runs under a regime: another list is another version (protocol rule 29)."""
    meta = DATASETS.get(name).meta
    assert meta.version > version or set(meta.keeps_labels) == set(words.split())
