"""Tables beside the summary: rankings, controls, tuning, and the marks that they give its cells."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.report.factory import frame, record, resolved, study
from vitbench.config.tuning import Tuning
from vitbench.expansion import expand
from vitbench.grid import Resolved, Run
from vitbench.record import RunRecord
from vitbench.report import render
from vitbench.report.catalogue import BESIDE, WITHOUT, beside
from vitbench.report.cells import anchor_cells, cells, control_cells
from vitbench.report.controls import controls
from vitbench.report.frame import Frame, build
from vitbench.report.matched_loss import matched_loss
from vitbench.report.ranking import ranking
from vitbench.report.saturation import budget_limited
from vitbench.report.tables import summary
from vitbench.report.tuning import trials, tuning
from vitbench.report.wording import MINUS
from vitbench.search import Search, Trial, on_edge
from vitbench.study.searches import outcomes

TWO_BUDGETS = {"budgets": [{"steps": 300}, {"epochs": 50}], "seeds": 6, "fractions": [1]}
TUNING = {"space": {"learning_rate": {"low": 0.001, "high": 0.1, "log": True}}, "trials": 5}


def crossing(run: Run, facts: Resolved) -> RunRecord:
    """Attention leads under the one budget, convolution under the other."""
    leads = run.spec.model.startswith("conv") == (run.spec.budget.unit == "steps")
    return record(run, facts, test_accuracy=(0.9 if leads else 0.8) + 0.0004 * run.spec.seed)


def column(table: render.Table, key: str) -> list[Any]:
    return [row[key] for row in table.data()]


def test_a_ranking_that_flips_with_the_budget_is_named_with_both_differences() -> None:
    table = ranking(frame(study(**TWO_BUDGETS), crossing), "budget")
    assert table is not None
    assert column(table, "ranking_1") == ["convnet:xs 90.1 > token_transformer:xs 80.1"]
    assert column(table, "ranking_2") == ["token_transformer:xs 90.1 > convnet:xs 80.1"]
    assert column(table, "flips")[0].startswith(
        "token_transformer:xs minus convnet:xs: -10.0 [-10.0, -10.0], then +10.0".replace("-", MINUS))
    assert column(table, "order_changes") == [None]


def test_below_six_seeds_an_order_changes_but_nothing_flips() -> None:
    table = ranking(frame(study(**TWO_BUDGETS | {"seeds": 5}), crossing), "budget")
    assert table is not None
    assert column(table, "flips") == [None]
    assert column(table, "order_changes")[0].startswith("token_transformer:xs minus convnet:xs")


def test_a_ranking_that_stays_is_no_flip() -> None:
    table = ranking(frame(study(**TWO_BUDGETS)), "budget")
    assert table is not None
    assert column(table, "flips") == column(table, "order_changes") == [None]


def test_missing_runs_leave_a_ranking_without_a_word() -> None:
    table = ranking(frame(study(**TWO_BUDGETS), lambda _run, _facts: None), "budget")
    assert table is not None
    assert column(table, "ranking_1") == [None]
    assert column(table, "flips") == [None]


def test_one_model_alone_has_no_comparison_to_correct_for() -> None:
    table = ranking(frame(study(**TWO_BUDGETS, models=["linear"])), "budget")
    assert table is not None
    assert table.footer[0].startswith("No two models stand under two values of the budget")


def test_every_row_names_the_runs_that_it_is_made_from() -> None:
    found = frame(study(**TWO_BUDGETS, controls=[{"name": "c", "recipe": {"warmup": 0}}]), crossing)
    grid, beside_it = ([run.spec.run_id for run in found.runs if bool(run.control) is of] for of in (False, True))
    for name, ids in (("budgets", grid), ("controls", beside_it)):
        table = BESIDE[name](found)
        assert table is not None
        assert sorted(" ".join(column(table, "run_ids")).split()) == sorted(ids)


def test_a_study_of_one_kind_has_no_table_beside() -> None:
    found = frame(study(models=["convnet:xs", "linear"]))
    assert beside(found) == []
    assert {name for name, of in BESIDE.items() if of(found) is not None} == {"curves", "matched_loss"}


def test_at_matched_loss_each_run_counts_at_the_first_point_where_it_has_fitted_its_training_part() -> None:
    def never(run: Run, facts: Resolved) -> RunRecord:
        made = record(run, facts)
        if run.label == "convnet:xs" and run.spec.seed == 0:
            high = made.curves.model_copy(update={"train_loss": tuple(1.0 for _ in made.curves.step)})
            return made.model_copy(update={"curves": high})
        return made

    found = frame(study(fractions=[1]), never)
    table = matched_loss(found)
    assert table is not None
    assert column(table, "reached") == [3, 2]
    for row in found.rows:
        if row.label == "convnet:xs" and row.seed == 0:
            assert row.matched_loss_accuracy is None
            continue
        curves = found.records[row.run_id].curves
        first = min(i for i, loss in enumerate(curves.train_loss) if loss is not None and loss <= 0.05)
        assert (row.matched_loss_step, row.matched_loss_accuracy) == (curves.step[first], curves.test_accuracy[first])


def test_for_every_table_there_is_a_reason_why_a_study_may_not_have_it() -> None:
    assert set(WITHOUT) == set(BESIDE)


def longer(gain: float) -> Frame:
    """A study whose twice and four times longer runs gain so much."""
    def made(run: Run, facts: Resolved) -> RunRecord:
        times = run.spec.budget.amount // 300
        return record(run, facts, test_accuracy=0.8 + gain * (times > 1) + 0.002 * run.spec.seed)

    return frame(study(controls=[{"name": "x2", "budget_factor": 2, "only": "model=convnet:xs"},
                                 {"name": "x4", "budget_factor": 4, "only": "model=convnet:xs"}]), made)


def test_a_cell_that_a_longer_schedule_changes_is_marked_budget_limited() -> None:
    found = longer(0.03)
    limited = budget_limited(found)
    assert {key[0] for key in limited} == {"convnet:xs"}
    assert set(limited.values()) == {"budget-limited: x2 +3.0, x4 +3.0"}
    assert "here x2, x4, in the cells that a control repeats" in summary(found).footer[0]
    notes = dict(zip(column(summary(found), "label"), column(summary(found), "notes"), strict=True))
    assert "budget-limited" in notes["convnet:xs"]
    assert "budget-limited" not in notes["token_transformer:xs"]


def test_a_cell_that_changes_by_less_than_the_margin_is_not() -> None:
    assert budget_limited(longer(0.009)) == {}
    assert set(budget_limited(longer(-0.03)).values()) == {f"budget-limited: x2 {MINUS}3.0, x4 {MINUS}3.0"}


def by_budget(run: Run, facts: Resolved) -> RunRecord:
    """Ten points more from 600 steps on."""
    return record(run, facts, test_accuracy=0.8 + 0.1 * (run.spec.budget.amount >= 600) + 0.002 * run.spec.seed)


def test_a_longer_schedule_is_compared_with_the_one_that_it_lengthens() -> None:
    """Also where it is the grid's next budget: 600 steps are not compared with themselves."""
    table = controls(frame(study(budgets=[{"steps": 300}, {"steps": 600}], fractions=[1],
                                 controls=[{"name": "x2", "budget_factor": 2}]), by_budget))
    assert table is not None
    assert column(table, "budget") == ["steps:600"] * 2 + ["steps:1200"] * 2
    assert column(table, "difference") == pytest.approx([0.1] * 2 + [0] * 2)


def test_a_saturation_check_of_some_seeds_marks_its_cells() -> None:
    of = study(controls=[{"name": "x2", "budget_factor": 2, "only": "seed=1,seed=2"}])
    assert set(budget_limited(frame(of, by_budget)).values()) == {"budget-limited: x2 +10.0"}


def test_controls_stand_beside_the_grid_and_never_in_it() -> None:
    of = study(controls=[{"name": "noise", "data": {"label_noise": 0.2}, "only": "fraction=1"}])

    def made(run: Run, facts: Resolved) -> RunRecord:
        return record(run, facts, test_accuracy=0.9 - 0.1 * bool(run.control) + 0.001 * run.spec.seed)

    found = frame(of, made)
    assert len(cells(found)) == 4
    assert [cell.control for cell in control_cells(found)] == ["noise", "noise"]
    assert set(column(summary(found), "test_accuracy")) == {0.901}
    table = controls(found)
    assert table is not None
    assert column(table, "difference") == pytest.approx([-0.1, -0.1])
    assert column(table, "grid_accuracy") == pytest.approx([0.901, 0.901])
    assert "Beside them 6 of 6 runs of controls and anchors" in summary(found).footer[0]


def test_a_lengthened_cell_stands_beside_the_one_that_it_lengthens_where_the_grid_has_its_budget_too() -> None:
    def made(run: Run, facts: Resolved) -> RunRecord:
        return record(run, facts, test_accuracy=run.spec.budget.amount / 2000)

    table = controls(frame(study(fractions=[1], models=["linear"], budgets=[{"steps": 300}, {"steps": 600}],
                                 controls=[{"name": "x2", "budget_factor": 2}]), made))
    assert table is not None
    assert column(table, "budget") == ["steps:600", "steps:1200"]
    assert column(table, "grid_accuracy") == pytest.approx([0.15, 0.3])
    assert column(table, "difference") == pytest.approx([0.15, 0.3])


def test_a_crossed_design_has_a_mean_and_no_interval() -> None:
    of = study(controls=[{"name": "crossed", "crossed": {"subset": 2, "init": 2, "order": 1},
                          "only": "model=convnet:xs,fraction=1"}])
    table = controls(frame(of))
    assert table is not None
    (row,) = table.data()
    assert row["difference"] is None
    assert "no interval" in str(row["notes"])
    assert "[" not in table.rows[0][6].text


def test_hidden_controls_change_no_number_of_the_grid() -> None:
    plain, more = frame(), frame(study(controls=[{"name": "x2", "budget_factor": 2}]))
    keys = ("label", "share", "test_accuracy", "test_accuracy_low", "gap", "time_harm", "fit_state")
    for key in keys:
        assert column(summary(plain), key) == column(summary(more), key)
    assert anchor_cells(more) == ()


def search(label: str, *accuracies: float | None, **changes: Any) -> Search:
    tuning_ = Tuning.model_validate(TUNING | {"trials": len(accuracies) or 5})
    made = tuple(Trial(number=i, params={"learning_rate": 0.001 * 3**i}, state="done" if a is not None else "diverged",
                       val_accuracy=a, val_loss=None if a is None else 1 - a, seconds=1.0)
                 for i, a in enumerate(accuracies))
    return Search(**{"setting": "tuned", "label": label, "share": "1", "regime": "none", "budget": "steps:300",
                     "tuning": tuning_, "validation": "holdout", "validation_images": 280, "trials": made, **changes})


def tuned(*searches: Search) -> Frame:
    of = study(fractions=[1], tuning=TUNING, seeds=6)
    facts = resolved(of)
    runs = expand(of, facts, outcomes(searches))
    found = {run.spec.run_id: record(run, facts, test_accuracy=0.8 + 0.05 * (run.setting == "tuned")
                                     + 0.001 * run.spec.seed) for run in runs if not run.pending}
    return replace(build("s", runs, found.__getitem__, facts, of.fit), searches=searches)


SEARCHES = (search("token_transformer:xs", 0.5, 0.7, 0.6, None, 0.4), search("convnet:xs", 0.5, 0.6, 0.7, 0.8, 0.9))


def test_a_tuned_cell_stands_below_the_default_one_with_its_marks() -> None:
    table = summary(tuned(*SEARCHES))
    assert column(table, "setting") == ["default", "tuned"] * 2
    assert [note for note in column(table, "notes") if note] == ["best of 5 trials", "best of 5 trials, edge"]


def test_the_tuning_table_tells_best_spread_and_difference() -> None:
    table = tuning(tuned(*SEARCHES))
    assert table is not None
    attention, convolution = table.data()
    assert attention["best"] == "learning_rate 0.003"
    assert attention["val_accuracy"] == 0.7
    assert attention["best_of_1"] == pytest.approx((0.5 + 0.7 + 0.6 + 0.1 + 0.4) / 5)  # the diverged one is chance
    assert attention["quartiles"] == "40.0 / 50.0 / 60.0"
    assert attention["difference"] == pytest.approx(0.05)
    assert (attention["edge"], convolution["edge"]) == (None, "learning_rate")
    assert attention["notes"] == "1 diverged"


def test_a_search_that_has_not_ended_leaves_its_cell_missing() -> None:
    short = search("convnet:xs", 0.5, 0.6).model_copy(update={"tuning": Tuning.model_validate(TUNING)})
    found = tuned(short)
    rows = {(row["label"], row["setting"]): row for row in summary(found).data()}
    assert rows["convnet:xs", "tuned"]["runs"] == 0
    assert rows["convnet:xs", "default"]["runs"] == 6
    assert "2 of 5 trials done" in str(rows["convnet:xs", "tuned"]["notes"])


def test_where_no_trial_gave_a_number_nothing_is_chosen() -> None:
    one = search("convnet:xs", None, None)
    assert one.ended
    assert one.best is None
    rows = {(row["label"], row["setting"]): row for row in summary(tuned(one)).data()}
    assert "no trial gave a number" in str(rows["convnet:xs", "tuned"]["notes"])


def test_ties_go_to_the_lower_loss_and_then_to_the_earlier_trial() -> None:
    one = search("convnet:xs", 0.9, 0.9, 0.9)
    losses = (0.3, 0.2, 0.2)
    trials_ = tuple(t.model_copy(update={"val_loss": v}) for t, v in zip(one.trials, losses, strict=True))
    best = one.model_copy(update={"trials": trials_}).best
    assert best is not None
    assert best.number == 1


def test_every_trial_is_listed() -> None:
    table = trials(tuned(search("token_transformer:xs", 0.5, 0.7, 0.6, None, 0.4)))
    assert table is not None
    assert column(table, "state") == ["done", "done", "done", "diverged", "done"]
    assert column(table, "best") == [False, True, False, False, False]


@pytest.mark.parametrize(("key", "dimension", "value", "edge"), [
    ("learning_rate", {"low": 0.001, "high": 0.1, "log": True}, 0.0012, True),
    ("learning_rate", {"low": 0.001, "high": 0.1, "log": True}, 0.0013, False),
    ("learning_rate", {"low": 0.001, "high": 0.1, "log": True}, 0.09, True),
    ("learning_rate", {"low": 0.001, "high": 0.1}, 0.09, False),
    ("weight_decay", {"low": 0, "high": 0.1}, 0.001, False),  # it cannot be negative
    ("weight_decay", [0, 0.05, 0.1], 0, False),
    ("weight_decay", [0, 0.05, 0.1], 0.05, False),
    ("weight_decay", [0, 0.05, 0.1], 0.1, True),
    ("weight_decay", [0.01, 0.05, 0.1], 0.01, True),
    ("optimizer", ["adamw", "sgd"], "sgd", False),
])
def test_an_edge_is_where_a_wider_search_might_find_more(key: str, dimension: Any, value: Any, edge: bool) -> None:
    of = Tuning.model_validate_json(json.dumps({"space": {key: dimension}}))
    assert on_edge(key, of.space[key], value) is edge
