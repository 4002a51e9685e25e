import csv
import io
import json
import random
import re
from dataclasses import replace

import pytest

from tests.report.factory import Found, Resolved, Run, augmented, failure, frame, record, study
from vitbench.record import DamagedRecord, RunRecord
from vitbench.report import notes, render, tables
from vitbench.report.frame import Frame
from vitbench.report.html import page
from vitbench.spec import Duplicates

ONE_CELL = {"models": ["convnet:xs"], "fractions": [0.1]}


def by_seed(*ended: object) -> Frame:
    """One cell; an accuracy, a failure reason in a list, None (missing) or 'nan' (diverged) for each seed."""
    def make(run: Run, facts: Resolved) -> Found:
        value = ended[run.spec.seed]
        if isinstance(value, list):
            return failure(run, value[0])
        if value == "nan":
            return record(run, facts, diverged="loss is not finite at step 150")
        return None if value is None else record(run, facts, test_accuracy=float(str(value)))
    return frame(study(**ONE_CELL, seeds=len(ended)), make)


def only_row(made: Frame) -> dict[str, object]:
    (row,) = tables.summary(made).data()
    return row


def shown(made: Frame) -> dict[str, str]:
    columns, rows = tables.summary(made).shown()
    return {column.key: entry.text for column, entry in zip(columns, rows[0], strict=True)}


def test_mean_and_interval_are_those_worked_out_by_hand() -> None:
    # .8 .9 1.0: mean .9, deviation .1, t(.975, 2) = 4.30265, half = 4.30265 * .1 / sqrt(3) = .248414
    row = only_row(by_seed(0.8, 0.9, 1.0))
    assert row["test_accuracy"] == 0.9
    assert row["test_accuracy_low"] == 0.651586
    assert row["test_accuracy_high"] == 1.14841
    assert shown(by_seed(0.8, 0.9, 1.0))["test_accuracy"] == "90.0 [65.2, 114.8]"
    assert "above 100 %" in render.markdown(tables.summary(by_seed(0.8, 0.9, 1.0)))


def test_one_seed_has_no_interval() -> None:
    row = only_row(by_seed(0.8))
    assert (row["test_accuracy_low"], row["test_accuracy_high"]) == (None, None)
    assert shown(by_seed(0.8))["test_accuracy"] == "80.0"
    assert shown(by_seed(0.8))["notes"] == "one seed"


def test_the_footer_tells_how_the_data_were_parted_and_what_is_in_both_parts() -> None:
    made = by_seed(0.8)
    facts = made.resolved.model_copy(update={"split": "drawn <once>",
                                             "duplicates": Duplicates(test_in_train=7, within_train=1234)})
    line = ("Split: drawn <once>. Of 360 test images 7 are training images, too; of 1,437 training images 1,234 repeat "
            "another, byte for byte.")
    assert line in tables.summary(replace(made, resolved=facts)).footer
    assert line.replace("<once>", "&lt;once&gt;") in page(replace(made, resolved=facts), study(**ONE_CELL, seeds=1))
    assert not any(text.startswith("Split") for text in tables.summary(made).footer)  # results of an earlier version


def test_the_footer_tells_what_each_regime_did_as_the_cards_say() -> None:
    of = study(regimes=["none", "light", "strong"])
    lines = tables.summary(frame(of, augmented)).footer
    assert [line for line in lines if line.startswith("Regime")] == [
        "Regime light: shift; not flip.",
        "Regime strong: mixup; with label smoothing, and stochastic depth where a model has it."]
    assert not any(line.startswith("Regime") for line in tables.summary(frame()).footer)


@pytest.mark.parametrize(("n", "marked"), [(2, True), (5, True), (6, False)])
def test_two_to_five_seeds_are_marked(n: int, marked: bool) -> None:
    assert ("few seeds" in shown(by_seed(*[0.8] * n))["notes"]) is marked


def test_a_diverged_run_counts_as_chance_and_the_mean_without_it_stands_in_a_footnote() -> None:
    made = by_seed(0.8, "nan", 0.9)
    table = tables.summary(made)
    assert only_row(made)["test_accuracy"] == 0.6  # (.8 + .1 + .9) / 3
    assert only_row(made)["test_accuracy_of_done"] == 0.85
    assert shown(made)["notes"] == "few seeds; 1 diverged (note 1)"
    assert shown(made)["runs"] == "3 of 3"
    (note,) = table.footnotes
    assert "seed 1 diverged: loss is not finite" in note
    assert "10.0 %; without: 85.0 [" in note
    assert "(n = 2)" in note


def test_all_failed_is_chance_not_missing() -> None:
    made = by_seed(["out of memory"], ["killed\nby | signal"])
    assert only_row(made)["test_accuracy"] == 0.1
    assert only_row(made)["failed"] == 2
    assert only_row(made)["gap"] is None
    assert "no run is left without them" in tables.summary(made).footnotes[0]
    assert "killed by \\| signal" in render.markdown(tables.summary(made))


def test_missing_cells_are_rows_and_missing_runs_are_counted() -> None:
    assert shown(by_seed(None, None))["test_accuracy"] == "missing"
    assert shown(by_seed(None, None))["runs"] == "0 of 2"
    assert shown(by_seed(None, 0.5))["notes"] == "1 missing; one seed"
    assert only_row(by_seed(None, None))["test_accuracy"] is None
    assert only_row(by_seed(None, None))["train_images"] == 120


def test_a_damaged_record_is_named_and_counts_as_missing() -> None:
    made = frame(study(**ONE_CELL, seeds=1), lambda run, facts: DamagedRecord("not a whole record"))
    (note,) = tables.summary(made).footnotes
    assert note == f"Run {made.missing[0].spec.run_id} counts as missing: its record is damaged: not a whole record."


def test_a_gap_with_no_train_error_is_marked_as_the_test_error() -> None:
    perfect = frame(study(**ONE_CELL), lambda run, facts: record(run, facts, test_accuracy=0.75, train_accuracy=1.0))
    assert shown(perfect)["gap"] == "+25.0‡"
    assert "the gap is the test error" in render.markdown(tables.summary(perfect))
    partly = frame(study(**ONE_CELL), lambda run, facts: record(
        run, facts, test_accuracy=0.75, train_accuracy=1.0 if run.spec.seed else 0.5))
    assert "‡" not in render.markdown(tables.summary(partly))


def test_without_validation_time_harm_is_missing_not_zero() -> None:
    made = frame(study(models=["convnet:xs"], fractions=[0.02]))
    assert shown(made)["time_harm"] == "—"
    assert only_row(made)["time_harm"] is None


@pytest.mark.parametrize(("states", "expected"), [
    (("fit", "fit", "overfit"), "fit"), (("fit", "overfit"), "mixed"), ((None, None, "fit"), "mixed"),
    ((None, None), None), (("underfit",), "underfit")])
def test_a_cell_has_the_state_of_two_thirds_of_its_runs(states: tuple[str | None, ...], expected: str | None) -> None:
    made = by_seed(*[0.5] * len(states))
    rows = tuple(replace(row, fit_state=state) for row, state in zip(made.rows, states, strict=True))
    assert only_row(replace(made, rows=rows))["fit_state"] == expected


def test_devices_are_never_mixed_unless_asked() -> None:
    made = frame(study(), lambda run, facts: record(run, facts, device=("cpu", "gpu")[run.spec.seed % 2]))
    with pytest.raises(tables.MixedDevices, match="2 devices: cpu, gpu"):
        tables.summary(made)
    assert "Devices: cpu, gpu" in render.markdown(tables.summary(made, mixed_devices=True))


def test_times_beside_other_runs_are_marked() -> None:
    made = frame(study(**ONE_CELL), lambda run, facts: record(run, facts, shared=run.spec.seed == 1))
    assert shown(made)["seconds"] == "12†"
    assert "† Seconds were taken with other runs" in render.markdown(tables.summary(made))


@pytest.mark.parametrize(("attention", "words"), [
    (20000, "differ by 0.8 % at most."), (22800, "differ by 15.0 % at most."),
    (25000, "differ by 26.0 % at most, more than 15.0 %: not matched."),
])
def test_sizes_of_both_families_tell_how_well_they_match(attention: int, words: str) -> None:
    def make(run: Run, facts: Resolved) -> Found:
        made = record(run, facts)
        if run.spec.model.startswith("convnet"):
            return made
        return made.model_copy(update={"cost": made.cost.model_copy(update={"params": attention})})

    (line,) = [line for line in tables.summary(frame(make=make)).footer if line.startswith("Size ")]
    assert line == (f"Size xs, parameters at this study's image size: token_transformer:xs {attention:,}, "
                    f"convnet:xs 19,834; attention and convolution {words}")


@pytest.mark.parametrize("models", [["convnet:xs", "token_transformer:s"], ["convnet:xs", "mlp:xs"], ["linear"]])
def test_a_size_that_only_one_family_has_is_not_compared(models: list[str]) -> None:
    assert not [line for line in tables.summary(frame(study(models=models))).footer if line.startswith("Size ")]


@pytest.mark.parametrize(("macs", "told"), [
    (1_300_000, "Matched on MACs within 15.0 %, of attention and convolution: token_transformer:xs and convnet:xs."),
    (1_500_000, "Matched on MACs within 15.0 %, of attention and convolution: none."),
])
def test_a_pair_that_matches_on_macs_is_named(macs: int, told: str) -> None:
    def made(run: Run, facts: Resolved) -> RunRecord:
        found = record(run, facts)
        changed = found.cost.model_copy(update={"macs": macs}) if run.label == "convnet:xs" else found.cost
        return found.model_copy(update={"cost": changed})

    assert told in tables.summary(frame(make=made)).footer
    assert not any("MACs" in line for line in tables.summary(frame(study(models=["convnet:xs", "linear"]))).footer)


def test_two_labels_of_one_specification_are_two_cells() -> None:
    made = frame(study(models=["convnet:xs", {"name": "convnet", "size": "xs", "label": "again"}], fractions=[0.1]))
    assert [row["label"] for row in tables.summary(made).data()] == ["convnet:xs", "again"]
    assert [row["runs"] for row in tables.summary(made).data()] == [3, 3]


def test_order_of_rows_and_missing_runs_changes_nothing() -> None:
    made = frame(study(seeds=7), lambda run, facts: None if run.spec.seed == 3 else record(run, facts))
    mixed = replace(made, rows=tuple(random.Random(0).sample(made.rows, len(made.rows))),
                    missing=made.missing[::-1], records=dict(reversed(made.records.items())))
    for form in (render.markdown, render.csv, render.json, render.html):
        assert form(tables.summary(made)) == form(tables.summary(mixed))


def test_the_hash_follows_the_records() -> None:
    one, other = by_seed(0.8, 0.9), by_seed(0.8, 0.95)
    assert only_row(one)["content_sha256"] != only_row(other)["content_sha256"]
    assert only_row(one)["content_sha256"] == only_row(by_seed(0.8, 0.9))["content_sha256"]


def test_nothing_is_bold_and_no_word_promises_a_test() -> None:
    made = render.markdown(tables.summary(frame()))
    assert "significant" not in made.lower()
    assert "**" not in made.split("\n", 1)[1]


HOSTILE = 'a|b <script>alert("1")</script> `x` *y* 100 % & _z_ [l](u) ' + "w" * 130


def test_labels_are_escaped_in_every_form() -> None:
    made = frame(study(models=[{"name": "convnet", "size": "xs", "label": HOSTILE}], fractions=[0.1]), name="st<udy|")
    table = tables.summary(made)
    line = next(line for line in render.markdown(table).splitlines() if "script" in line)
    assert len(re.findall(r"(?<!\\)\|", line)) == len(table.shown()[0]) + 1
    assert "<script" not in re.sub(r"\\<", "", line)
    assert "<script" not in render.html(table)
    assert "<udy" not in render.html(table)
    assert next(csv.DictReader(io.StringIO(render.csv(table))))["label"] == HOSTILE
    assert json.loads(render.json(table))[0]["label"] == HOSTILE


def test_underscores_inside_words_stay_readable() -> None:
    assert "| token_transformer:xs |" in render.markdown(tables.summary(frame()))


def test_json_and_csv_hold_the_same_numbers_with_six_digits() -> None:
    table = tables.summary(frame())
    loaded = json.loads(render.json(table))
    lines = list(csv.DictReader(io.StringIO(render.csv(table))))
    assert len(loaded) == len(lines) == 4
    for one, line in zip(loaded, lines, strict=True):
        assert list(one) == list(line)
        assert float(line["test_accuracy"]) == one["test_accuracy"] == float(f"{one['test_accuracy']:.6g}")
        assert line["few_seeds"] == "true"


def test_constant_conditions_stand_in_the_caption_and_varying_ones_in_a_column() -> None:
    same = tables.summary(frame())
    assert "budget steps:300" in same.caption
    varied = tables.summary(frame(study(budgets=[{"steps": 300}, {"epochs": 9}])))
    assert "budget" in [column.key for column in varied.shown()[0]]
    assert len(varied.rows) == 8


def test_a_table_hashes_its_records_no_oftener_where_it_has_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand records one hash takes as long as all else."""
    hashed: list[Frame] = []
    own = notes.content_sha256
    monkeypatch.setattr(notes, "content_sha256", lambda of: hashed.append(of) or own(of))
    counts = []
    for fractions in ([1], [0.1, 0.3, 0.5, 1]):
        tables.summary(frame(study(fractions=fractions)))
        counts.append(len(hashed))
        hashed.clear()
    assert counts[0] == counts[1] <= 2


def test_added_seeds_are_told_below_the_table() -> None:
    made = replace(frame(), exploratory="Seeds were added.")
    assert "Seeds were added." in render.markdown(tables.summary(made))
    assert "Seeds were added." in render.html(tables.summary(made))
