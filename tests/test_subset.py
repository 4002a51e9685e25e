import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.known_answers import known
from tests.test_spec import spec
from vitbench.datasets import load
from vitbench.datasets.digits import META
from vitbench.spec import exact_decimal
from vitbench.streams import Streams
from vitbench.subset import Counts, EmptyClass, Subset, counts, draw, stratified_sample

CLASS_COUNTS = st.lists(st.integers(20, 120), min_size=2, max_size=6).map(tuple)
FRACTIONS = st.decimals("0.05", "1", places=3).map(str)
SEEDS = st.integers(0, 2**32 - 1)


def labels_of(class_counts: tuple[int, ...], shuffle: int = 0) -> np.ndarray:
    labels = np.repeat(np.arange(len(class_counts)), class_counts).astype(np.uint8)
    return np.random.default_rng(shuffle).permutation(labels)


def subset_of(class_counts: tuple[int, ...], seed: int, **share: Any) -> Subset:
    rng = Streams.of(spec(seed=seed)).subset_rng()
    return draw(labels_of(class_counts), counts(class_counts, **share), rng)


@pytest.mark.parametrize("vector", known("stratified_counts"))
def test_counts_are_the_known_ones(vector: dict[str, Any]) -> None:
    class_counts, fraction = tuple(vector["inputs"]["class_counts"]), vector["inputs"]["fraction"]
    expected = vector["expected"]
    if expected.get("error"):
        with pytest.raises(EmptyClass):
            counts(class_counts, fraction=fraction)
        return
    found = counts(class_counts, fraction=fraction)
    assert found == Counts(*(tuple(expected[part]) for part in ("drawn", "train", "validation")))
    assert found.has_validation is expected["has_validation"]


@given(CLASS_COUNTS, FRACTIONS, FRACTIONS, SEEDS)
def test_a_smaller_fraction_lies_inside_a_larger_one(class_counts: tuple[int, ...], one: str, other: str,
                                                     seed: int) -> None:
    smaller, larger = (subset_of(class_counts, seed, fraction=f) for f in sorted((one, other), key=Decimal))
    assert set(smaller.drawn) <= set(larger.drawn)
    if len(smaller.validation):
        assert set(smaller.train) <= set(larger.train)
        assert set(smaller.validation) <= set(larger.validation)


@given(CLASS_COUNTS, st.integers(1, 20), st.integers(1, 20), SEEDS)
def test_numbers_a_class_nest_too(class_counts: tuple[int, ...], one: int, other: int, seed: int) -> None:
    smaller, larger = (subset_of(class_counts, seed, images_per_class=k) for k in sorted((one, other)))
    assert set(smaller.drawn) <= set(larger.drawn)


def test_largest_remainder_would_not_nest() -> None:
    # The proof that the nesting tests can fail: with shares that add up exactly a class loses an image at .51.
    class_counts = (127, 19, 178, 171)

    def largest_remainder(fraction: float) -> np.ndarray:
        exact = fraction * np.array(class_counts)
        share = np.floor(exact).astype(int)
        share[np.argsort(share - exact)[: int(exact.sum() + 0.5) - share.sum()]] += 1
        return share

    assert (largest_remainder(0.51) < largest_remainder(0.50)).any()
    ours = [counts(class_counts, fraction=f).drawn for f in ("0.50", "0.51")]
    assert all(a <= b for a, b in zip(*ours, strict=True))


@given(CLASS_COUNTS, FRACTIONS, SEEDS)
def test_a_subset_holds_each_class_in_its_share(class_counts: tuple[int, ...], fraction: str, seed: int) -> None:
    labels, wanted = labels_of(class_counts), counts(class_counts, fraction=fraction)
    found = subset_of(class_counts, seed, fraction=fraction)
    for part, expected in ((found.drawn, wanted.drawn), (found.train, wanted.train),
                           (found.validation, wanted.validation)):
        assert tuple(np.bincount(labels[part], minlength=len(class_counts))) == expected
    assert all(abs(k - Decimal(fraction) * n) <= Decimal("0.5")
               for k, n in zip(wanted.drawn, class_counts, strict=True))


@given(CLASS_COUNTS, FRACTIONS, SEEDS)
def test_train_and_validation_are_disjoint_sorted_and_make_up_the_draw(class_counts: tuple[int, ...], fraction: str,
                                                                       seed: int) -> None:
    found = subset_of(class_counts, seed, fraction=fraction)
    assert not set(found.train) & set(found.validation)
    assert sorted({*found.train, *found.validation}) == found.drawn.tolist()
    assert all((np.diff(part) > 0).all() for part in (found.train, found.validation, found.drawn))


@given(CLASS_COUNTS, SEEDS)
def test_the_full_fraction_draws_everything(class_counts: tuple[int, ...], seed: int) -> None:
    assert subset_of(class_counts, seed, fraction="1").drawn.tolist() == list(range(sum(class_counts)))


@given(CLASS_COUNTS, st.integers(1, 20))
def test_validation_is_all_classes_or_none(class_counts: tuple[int, ...], k: int) -> None:
    found = counts(class_counts, images_per_class=k)
    assert found.has_validation is (k >= 5)
    assert set(found.validation) == {k // 5}


@pytest.mark.parametrize("change", [
    {"model": "other@3"}, {"size": "xl"}, {"options": {"heads": 1}}, {"regime": "strong"},
    {"budget": {"unit": "epochs", "amount": 5}}, {"recipe": {"batch_size": 7}},
    {"streams": {"init": 9, "order": 9, "augment": 9}}, {"plugins": {"x": "0" * 64}}, {"numerics": 2},
], ids=str)
def test_a_subset_is_the_same_for_every_model_regime_and_budget(change: dict[str, Any]) -> None:
    labels, wanted = labels_of(META.train_counts), counts(META.train_counts, fraction="0.1")
    pair = [draw(labels, wanted, Streams.of(s).subset_rng()).sha256 for s in (spec(), spec(**change))]
    assert pair[0] == pair[1]


@pytest.mark.parametrize("change", [{"seed": 4}, {"streams": {"subset": 4}}], ids=str)
def test_another_seed_is_another_subset(change: dict[str, Any]) -> None:
    labels, wanted = labels_of(META.train_counts), counts(META.train_counts, fraction="0.1")
    pair = [draw(labels, wanted, Streams.of(s).subset_rng()).sha256 for s in (spec(), spec(**change))]
    assert pair[0] != pair[1]


@pytest.mark.parametrize(("fraction", "seed", "sha256"), [
    ("0.02", 0, "653c00b5755d00abb1f79412e1f4c24453bc05b9456399b1d6e67908fa0e4d23"),
    ("0.02", 1, "d3555660a3e5f5f9b04249d15d946f6c6bc0d78419ac74089d88ef464fc12808"),
    ("0.02", 2, "6e5b8bde1fbdc73e7bd1c8276e60221512dae5a4605ae47df723bf69fe59592d"),
    ("0.1", 0, "b91b03c557981da362ec77fae05db0b8ae686cd449b65b92b6d7ac01f7dd470a"),
    ("0.1", 1, "880786599b8ffb8109ab946610d1ca253df3ce9745fa788c617732826d10bdcd"),
    ("0.1", 2, "13b625d152a2e1b8144599b2cd19cbf6bc06b2fc412c3578ec95a680edf380b8"),
    ("0.3", 0, "177f3ac0362e4664b5a2a3d4f88735c4ef706b01ed05f3bf390b07c4ed4a0203"),
    ("0.3", 1, "b64db313f946f18b16d4e50b57d6828c715eb3e2872e8206c563b63325098064"),
    ("0.3", 2, "a86ddb6f4b066996c2a27d57bcb64691b3b41d116126da2752a372439e049a05"),
])
def test_the_subsets_of_digits_are_those_of_every_result_made_so_far(fraction: str, seed: int, sha256: str) -> None:
    # A change here changes what a seed means in all stored results: take it back.
    rng = Streams.of(spec(seed=seed)).subset_rng()
    assert draw(load("digits").train_labels, counts(META.train_counts, fraction=fraction), rng).sha256 == sha256


def test_the_hash_names_the_drawn_images_and_not_their_order_or_parts() -> None:
    whole = Subset(np.array([1, 5, 9]), np.array([], dtype=np.int64))
    parted = Subset(np.array([1, 9]), np.array([5]))
    assert whole.sha256 == parted.sha256
    assert whole.sha256 != Subset(np.array([1, 5]), np.array([8])).sha256
    assert Subset(np.array([1, 23]), np.array([4])).sha256 != Subset(np.array([12, 3]), np.array([4])).sha256


def test_more_images_a_class_than_there_are_is_an_error_that_names_the_most() -> None:
    with pytest.raises(EmptyClass, match=r"class 1 has 30 training images; at most 30 .*; found 31"):
        counts((40, 30, 50), images_per_class=31)
    assert counts((40, 30, 50), images_per_class=30).drawn == (30, 30, 30)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20).map(tuple))
def test_a_fraction_too_small_names_one_that_does_for_every_class(class_counts: tuple[int, ...]) -> None:
    too_small = exact_decimal(f"{0.49 / min(class_counts):.12f}")
    with pytest.raises(EmptyClass) as caught:
        counts(class_counts, fraction=too_small)
    named = re.search(r"class (\d+) with (\d+) training images .* at least (\S+) is needed", str(caught.value))
    assert named is not None
    assert class_counts[int(named[1])] == int(named[2])
    assert min(counts(class_counts, fraction=named[3]).drawn) == 1
    assert Decimal(named[3]) < Decimal("1.001") / (2 * min(class_counts))


def test_a_class_without_images_is_an_error_at_every_fraction() -> None:
    with pytest.raises(EmptyClass, match="class 1 with 0 training images gets none; no share helps"):
        counts((5, 0), fraction="1")


@given(st.lists(st.integers(1, 500), min_size=5, max_size=300), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_a_sample_is_sorted_of_the_size_asked_and_in_proportion(sizes: list[int], limit: int, seed: int) -> None:
    labels = labels_of(tuple(s % 5 + 1 for s in sizes), shuffle=seed % 1000)
    found = stratified_sample(labels, limit, np.random.default_rng(seed))
    assert len(found) == min(limit, len(labels))
    assert (np.diff(found) > 0).all()
    exact = np.bincount(labels) * min(1, limit / len(labels))
    assert (np.abs(np.bincount(labels[found], minlength=len(sizes)) - exact) < 1).all()


def test_a_sample_of_everything_draws_nothing() -> None:
    rng = np.random.default_rng(0)
    assert stratified_sample(labels_of((3, 4)), 7, rng).tolist() == list(range(7))
    assert rng.random() == np.random.default_rng(0).random()
