"""The tables of crossovers, data efficiency and learning curves: what they say, and of studies that have less."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.report.factory import Found, failure, frame, record, study
from vitbench.grid import Resolved, Run, counts_of
from vitbench.report import render
from vitbench.report.catalogue import BESIDE, beside
from vitbench.report.frame import Frame
from vitbench.report.seed_curves import curves_of
from vitbench.row import Row

SHARES = [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1]
TABLES = ("crossovers", "efficiency", "curves")
CONDITION = "none, steps:300, default"


def law(attention: bool, images: int) -> float:
    """Errors that are equal at 237 training images, those of share .2."""
    cnn = 0.03 + 1.2 * images**-0.45
    return cnn * (images / 237) ** -0.3 if attention else cnn


def planted(run: Run, facts: Resolved) -> Found:
    attention, images = run.label.startswith("token"), sum(counts_of(run, facts).train)
    luck = np.random.default_rng([run.spec.seed, images, attention]).normal(0, 0.005)
    return record(run, facts, test_accuracy=round(360 * (1 - law(attention, images) - luck)) / 360)


def made(make: Callable[[Run, Resolved], Found] = planted, **values: Any) -> Frame:
    return frame(study(**{"fractions": SHARES, "seeds": 6, **values}), make)


def rows(name: str, of: Frame) -> list[dict[str, Any]]:
    table = BESIDE[name](of)
    assert table is not None
    for form in (render.markdown, render.csv, render.html):
        assert form(table)
    return json.loads(render.json(table))  # type: ignore[no-any-return]


def with_rows(of: Frame, change: Callable[[Row], dict[str, Any]]) -> Frame:
    return replace(of, rows=tuple(replace(row, **change(row)) for row in of.rows))


def losing(*lost: tuple[str, str, int]) -> Callable[[Run, Resolved], Found]:
    """The planted study, with runs of (label, share, seed) diverged."""
    return lambda run, facts: (record(run, facts, diverged="loss is not finite")
                               if (run.label, run.spec.share, run.spec.seed) in lost else planted(run, facts))


def test_a_planted_crossover_is_found_named_and_told() -> None:
    (row,) = rows("crossovers", made())
    assert (row["attention"], row["convolution"]) == ("token_transformer:xs", "convnet:xs")
    assert row["outcome"] == "overtakes"
    assert row["n_star_low"] <= 237 <= row["n_star_high"]
    assert row["n_star"] == pytest.approx(237, rel=0.3)
    assert row["sentence"].startswith(f"attention overtakes the CNN at about {row['n_star']:,.0f} images [")
    assert (row["n"], row["few_seeds"], row["sizes"], row["notes"]) == (6, False, 7, None)
    assert (row["open_left"], row["open_right"]) == (False, False)
    assert len(row["run_ids"].split()) == 2 * 6 * 7
    assert len(row["content_sha256"]) == 64


def test_the_factor_is_above_1_before_the_crossover_and_below_1_behind_it() -> None:
    found = rows("efficiency", made())
    assert [row["train_images"] for row in found] == [30, 60, 120, 237, 465, 809, 1153]
    assert found[0]["factor_low"] > 1
    assert found[4]["factor_high"] < 1
    assert found[3]["factor_low"] < 1 < found[3]["factor_high"]
    for row in found[:5]:
        assert row["sign"] == "="
        assert row["images_needed"] == pytest.approx(row["factor"] * row["train_images"], rel=1e-4)
        assert row["sentence"].startswith(f"for the error that the CNN has with {row['train_images']} images attention")


def test_fits_follow_the_law_and_say_what_they_are() -> None:
    of = made(models=["convnet:xs"])
    found = rows("curves", of)
    for row in found:
        assert row["outcome"] == "fitted"
        assert row["fitted"] == pytest.approx(law(False, row["train_images"]), abs=0.015)
        assert row["fitted_low"] < row["fitted"] < row["fitted_high"]
        assert row["error_low"] < row["error"] < row["error_high"]
        assert set(json.loads(row["parameters"])) >= {"a", "c"}
    table = BESIDE["curves"](of)
    assert table is not None
    assert len(table.footnotes) == 1
    assert "of 100 resamples" in table.footnotes[0]


@pytest.mark.parametrize("name", TABLES)
def test_the_order_of_records_changes_nothing(name: str) -> None:
    of = made(fractions=SHARES[::2])
    assert rows(name, of) == rows(name, replace(of, rows=of.rows[::-1]))


def test_other_records_draw_other_bands() -> None:
    of = made(models=["convnet:xs"])
    other = replace(of, margin=0.011)  # part of what the content hash covers
    one, two = rows("curves", of), rows("curves", other)
    assert [row["fitted"] for row in one] == [row["fitted"] for row in two]
    assert [row["fitted_low"] for row in one] != [row["fitted_low"] for row in two]


def test_runs_that_diverged_count_as_chance_and_what_holds_without_them_is_told() -> None:
    (row,) = rows("crossovers", made(losing(("token_transformer:xs", "1", 0), ("token_transformer:xs", "0.7", 0))))
    assert (row["outcome"], row["n"]) == ("several_crossings", 6)
    assert row["n_star"] is None
    assert len(row["crossings"].split()) > 1
    assert row["without_lost"].startswith("attention overtakes the CNN at about")
    assert row["without_lost"].endswith("(few seeds: 5)")
    assert row["notes"].startswith("2 diverged or failed; without them: attention overtakes")
    found = rows("efficiency", made(losing(("token_transformer:xs", "0.05", 0))))
    assert found[0]["notes"] == f"1 diverged or failed; without them {found[0]['without_lost']}"
    assert found[0]["without_lost"].startswith("2.6 [")
    assert found[0]["factor"] > 2.9


def test_where_everything_diverged_all_are_tied() -> None:
    def lost(run: Run, facts: Resolved) -> Found:
        return record(run, facts, diverged="loss is not finite")

    (row,) = rows("crossovers", made(lost))
    assert (row["outcome"], row["without_lost"]) == ("tied_everywhere", None)
    assert {row["sign"] for row in rows("efficiency", made(lost))} == {"="}
    assert {row["error"] for row in rows("curves", made(lost))} == {0.9}


def test_one_seed_has_a_name_and_no_interval() -> None:
    (row,) = rows("crossovers", made(seeds=1))
    assert row["outcome"] == "overtakes"
    assert row["sentence"].endswith("(one seed: no interval)")
    assert (row["n_star_set"], row["few_seeds"], row["notes"]) == (None, True, "one seed")
    assert {row["interval"] for row in rows("efficiency", made(seeds=1))} == {None}
    assert {row["fitted_low"] for row in rows("curves", made(seeds=1))} == {None}


def test_few_seeds_are_marked() -> None:
    for name in TABLES:
        for row in rows(name, made(seeds=3)):
            assert row["few_seeds"]
            assert row["notes"] == "few seeds"
    assert rows("crossovers", made(seeds=3))[0]["sentence"].endswith("(few seeds: 3)")


def test_one_size_has_a_name_and_no_curve() -> None:
    (row,) = rows("crossovers", made(fractions=[0.1]))
    assert row["outcome"] == "no_crossover_up_to_N"
    assert row["notes"] == "one size"
    assert rows("efficiency", made(fractions=[0.1]))[0]["sign"] == ">"
    assert {row["outcome"] for row in rows("curves", made(fractions=[0.1]))} == {"too few sizes"}


def test_a_size_without_runs_is_named_and_the_others_are_used() -> None:
    (row,) = rows("crossovers", made(lambda run, facts: None if run.spec.share == "0.1" else planted(run, facts)))
    assert (row["outcome"], row["sizes"], row["notes"]) == ("overtakes", 6, "missing at share 0.1")


def test_a_seed_that_lacks_a_run_is_left_out_and_counted() -> None:
    def lacking(run: Run, facts: Resolved) -> Found:
        return None if (run.spec.seed, run.spec.share, run.label) == (2, "0.1", "convnet:xs") else planted(run, facts)

    (row,) = rows("crossovers", made(lacking))
    assert (row["n"], row["notes"]) == (5, "few seeds; 1 of 6 seeds left out: a run is missing")
    curves = curves_of(made(lacking), "token_transformer:xs", "convnet:xs", condition=CONDITION)
    assert curves is not None
    assert curves.seeds == (0, 1, 3, 4, 5)


def test_no_seed_in_common_is_missing() -> None:
    def apart(run: Run, facts: Resolved) -> Found:
        return planted(run, facts) if (run.spec.seed < 3) == run.label.startswith("token") else None

    (row,) = rows("crossovers", made(apart))
    assert (row["outcome"], row["n"], row["n_star"]) == ("missing", 0, None)
    assert row["sentence"].startswith("no seed has ended for both")
    assert rows("efficiency", made(apart))[0]["sentence"].startswith("no seed has ended for both")


def test_without_a_run_nothing_is_compared_and_the_reason_is_told() -> None:
    of = made(lambda _run, _facts: None)
    for name in ("crossovers", "efficiency"):
        table = BESIDE[name](of)
        assert table is not None
        assert table.rows == ()
        assert table.footer[0] == ("No run of convnet:xs, token_transformer:xs tells its parameters: nobody knows what "
                                   "matches it.")
    assert [(row["outcome"], row["n"]) for row in rows("curves", of)] == [("missing", 0)] * 2
    assert all(table.rows for table in beside(of))


def test_a_model_that_always_failed_keeps_no_other_pair_from_being_compared() -> None:
    def failing(run: Run, facts: Resolved) -> Found:
        return failure(run) if run.label == "big" else planted(run, facts)

    of = made(failing, models=["token_transformer:xs", "convnet:xs", {"name": "convnet", "size": "l", "label": "big"}])
    (row,) = rows("crossovers", of)
    assert row["convolution"] == "convnet:xs"


def test_a_pair_that_does_not_match_is_not_compared() -> None:
    of = with_rows(made(), lambda row: {"params": 25_000} if row.label == "convnet:xs" else {})
    table = BESIDE["crossovers"](of)
    assert table is not None
    assert table.rows == ()
    assert "the closest, token_transformer:xs and convnet:xs, differ by 26%" in table.footer[0]
    assert all("where attention overtakes" not in one.caption for one in beside(of))


def test_a_study_without_attention_or_without_a_cnn_has_no_such_table() -> None:
    for models in (["convnet:xs"], ["token_transformer:xs", "linear"]):
        assert BESIDE["crossovers"](made(models=models)) is None
        assert BESIDE["efficiency"](made(models=models)) is None


def test_every_pair_and_condition_has_its_row() -> None:
    of = made(models=["token_transformer:xs", {"name": "token_transformer", "size": "xs", "label": "token_2"},
                      "convnet:xs"], budgets=[{"steps": 300}, {"epochs": 9}], fractions=[0.1, 1])
    found = [(row["attention"], row["budget"]) for row in rows("crossovers", of)]
    assert sorted(found) == sorted((label, budget) for label in ("token_transformer:xs", "token_2")
                                   for budget in ("steps:300", "epochs:9"))
    table = BESIDE["crossovers"](of)
    assert table is not None
    shown = [column.key for column in table.columns if column.shown]
    assert "budget" in shown
    assert "regime" not in shown


def test_an_accuracy_that_is_no_number_leaves_its_seed_out() -> None:
    of = with_rows(made(), lambda row: {"test_accuracy": math.nan} if (row.seed, row.share) == (1, "1") else {})
    for name in TABLES:
        assert {row["n"] for row in rows(name, of)} == {5}


def test_two_shares_of_as_many_images_are_one_size() -> None:
    of = made(fractions=[0.1, 0.1001, 1])
    (row,) = rows("crossovers", of)
    assert row["sizes"] == 2


def test_a_curve_that_rises_is_ill_behaved_and_not_fitted() -> None:
    def rising(run: Run, facts: Resolved) -> Found:
        higher = 0.2 * (run.spec.share == "0.4")
        found = planted(run, facts)
        return record(run, facts, test_accuracy=found.final.test_accuracy - higher)  # type: ignore[union-attr,operator]

    of = made(rising, models=["convnet:xs"])
    found = rows("curves", of)
    assert {(row["outcome"], row["fitted"], row["family"]) for row in found} == {("ill-behaved", None, None)}
    assert found[0]["reason"].startswith("the error rises from 237 to 465 images by")
    assert found[3]["falling"] == found[4]["falling"]
    table = BESIDE["curves"](of)
    assert table is not None
    assert "ill-behaved: the error rises" in table.footnotes[0]
