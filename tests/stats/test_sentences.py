import numpy as np
import pytest

from vitbench.stats import sentences
from vitbench.stats.crossover import Crossing, SizeSet, crossing, crossover_set
from vitbench.stats.efficiency import Factor

SIZES = [14, 57, 230, 1437]
INSIDE = SizeSet(((210.4, 320.0),), open_left=False, open_right=False)
NONE = SizeSet((), open_left=False, open_right=False)


@pytest.mark.parametrize(("means", "left_open", "sentence"), [
    ([-0.1, -0.05, 0.001, 0.1], INSIDE, "attention overtakes the CNN at about 224 images [210, 320]"),
    ([-0.1, -0.1, -0.1, 0.1], SizeSet(((400, 1437),), open_left=False, open_right=True),
     "attention overtakes the CNN at about 575 images [400, 1,437 or more]"),
    ([0.1, 0.1, -0.1, -0.1], INSIDE, "attention is overtaken by the CNN at about 114 images [210, 320]"),
    ([0.1, 0.1, 0.1, 0.1], NONE, "attention is ahead everywhere, from 14 to 1,437 images"),
    ([0.1, 0.1, 0.1, 0.1], SizeSet(((14, 30), (900, 1000)), open_left=True, open_right=False),
     "attention is ahead everywhere, from 14 to 1,437 images; seeds leave open which of them leads at "
     "[14 or fewer, 30] and [900, 1,000] images"),
    ([-0.1] * 4, NONE, "no crossover up to 1,437 images: the CNN is ahead"),
    ([-0.1, -0.1, -0.1, 0], SizeSet(((1437, 1437),), open_left=False, open_right=True),
     "no crossover up to 1,437 images: the CNN is ahead; seeds leave open which of them leads at "
     "[1,437, 1,437 or more] images"),
    ([-0.1, 0.1, -0.1, 0.1], INSIDE, "several crossings, at about 28, 114 and 575 images [210, 320]"),
    ([0, 0, 0, 0], SizeSet(((14, 1437),), open_left=True, open_right=True),
     "tied everywhere, from 14 to 1,437 images"),
])
def test_every_outcome_has_a_sentence(means: list[float], left_open: SizeSet, sentence: str) -> None:
    assert sentences.of_crossing(crossing(SIZES, means), left_open, SIZES, seeds=6) == sentence


@pytest.mark.parametrize(("seeds", "mark"), [(1, " (one seed: no interval)"), (2, " (few seeds: 2)"),
                                             (5, " (few seeds: 5)"), (6, "")])
def test_fewer_than_six_seeds_are_marked(seeds: int, mark: str) -> None:
    left_open = NONE if seeds > 1 else None
    told = sentences.of_crossing(Crossing("overtakes", (240.0,)), left_open, SIZES, seeds=seeds)
    assert told == f"attention overtakes the CNN at about 240 images{mark}"
    assert sentences.of_factor(Factor(100, "=", 4, 3, 5, seeds)).endswith(mark)


def test_one_size_is_called_the_only_one() -> None:
    told = sentences.of_crossing(crossing([144], [0.1]), NONE, [144], seeds=6)
    assert told == "attention is ahead everywhere, at 144 images, the only size"


@pytest.mark.parametrize(("factor", "sentence"), [
    (Factor(100, "=", 4.04, 2.9, 5.51, 6), "4.0 times as many [2.9, 5.5]"),
    (Factor(100, ">", 10, 7, None, 6), "more than 10 times as many [7.0 or more]"),
    (Factor(100, "<=", 0.5, None, 0.9, 6), "at most 0.50 times as many [0.90 or less]"),
    (Factor(100, "=", 1234.5, None, None, 6), "1,234 times as many [any number]"),
    (Factor(100, "=", 9.96, 0.0414, None, 6), "10 times as many [0.041 or more]"),
])
def test_a_factor_has_a_sentence_with_its_open_ends(factor: Factor, sentence: str) -> None:
    assert sentences.of_factor(factor) == f"for the error that the CNN has with 100 images attention needs {sentence}"


def test_a_sentence_is_made_from_seeds_alone() -> None:
    difference = np.array([[-0.1, 0.1], [-0.12, 0.1], [-0.1, 0.13]])
    told = sentences.of_crossing(crossing([10, 1000], difference.mean(axis=0)), crossover_set([10, 1000], difference),
                                 [10, 1000], seeds=3)
    assert told == "attention overtakes the CNN at about 97 images [52, 199] (few seeds: 3)"
