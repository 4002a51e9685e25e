"""From a study's records to evidence: the same whatever the order, and hits from the records alone."""

from dataclasses import replace

import numpy as np
import pytest

from tests.report.factory import frame, record, resolved, study
from tests.report.test_beside import SEARCHES, tuned
from vitbench.claims import judge
from vitbench.config.bands import band_for
from vitbench.expansion import expand
from vitbench.grid import Resolved, Run
from vitbench.measurement import Measurement, records_hash
from vitbench.record import RunRecord, pack_hits
from vitbench.report.evidence import evidence_of
from vitbench.report.frame import build
from vitbench.verdicts import Unmeasured, Verdict
from vitbench.verdicts.evidence import CellOf, Condition

CLAIM = "attention_overtakes_with_enough_data"
MODELS = ["token_transformer:xs", "convnet:xs"]


def with_hits(run: Run, facts: Resolved, attention: float = 0.8, convolution: float = 0.9) -> RunRecord:
    """A record with random hits of this expected accuracy, the same ones for two models of one expected accuracy."""
    expected = attention if run.spec.model.startswith("token") else convolution
    hits = np.random.default_rng([run.spec.seed, round(360 * expected)]).random(360) < expected
    made = record(run, facts, test_accuracy=float(hits.mean()))
    return made.model_copy(update={"test_correct": pack_hits(hits)})


def verdict(models: list[str] = MODELS, seeds: object = 6, make: object = with_hits) -> Verdict:
    return judge(CLAIM, evidence_of(frame(study(seeds=seeds, models=models), make)))  # type: ignore[arg-type]


def test_a_study_is_judged_from_its_records() -> None:
    found = verdict()
    assert (found.outcome, found.n) == ("fails", 6)
    assert found.effect is not None
    assert found.effect.mean == pytest.approx(-0.1, abs=0.03)
    assert len(found.run_ids) == 24


def test_the_order_of_models_and_of_seeds_in_the_file_changes_nothing() -> None:
    assert verdict(MODELS[::-1], [5, 2, 0, 1, 4, 3]) == verdict()


def test_facts_of_the_study_are_those_of_its_grid() -> None:
    found = evidence_of(frame(study(seeds=2)), looks=3)
    assert found.drawn["0.1"] == (14, 15, 14, 15, 15, 15, 15, 14, 14, 14)
    assert found.drawn["1"] == (142, 146, 142, 146, 145, 145, 145, 143, 139, 144)
    assert (found.little, found.full, found.looks) == (("0.1",), "1", 3)
    assert {label: facts.family for label, facts in found.models.items()} == {
        "token_transformer:xs": "attention", "convnet:xs": "convolution"}
    assert evidence_of(frame(study(seeds=2))).looks == 1


def test_controls_and_anchors_are_no_evidence_but_are_told_of() -> None:
    of = study(seeds=6, controls=[{"name": "x2", "budget_factor": 2},
                                  {"name": "later", "data": {"pixels": "shuffled"}}])

    def made(run: Run, facts: Resolved) -> RunRecord | None:
        return None if run.control == "later" else with_hits(run, facts)

    found = evidence_of(frame(of, made))
    assert {row.control for row in found.rows} == {run.control for run in found.planned} == {""}
    assert {run.control for run in found.beside} == {"x2"}
    plain = judge(CLAIM, evidence_of(frame(study(seeds=6), with_hits)))
    assert judge(CLAIM, found) == plain


@pytest.mark.parametrize(("attention", "convolution", "marks", "blocked"), [
    (0.97, 0.98, (), False), (0.5, 0.98, (), True), (0.97, None, ("unanchored",), False),
])
def test_anchors_are_held_against_their_bands(attention: float, convolution: float | None, marks: tuple[str, ...],
                                              blocked: bool) -> None:
    of = study(seeds=6, anchors=MODELS)
    families = dict(zip(MODELS, ("attention", "convolution"), strict=True))
    bands = {label: band_for("digits@1", family) for label, family in families.items()}
    facts = resolved(of).model_copy(update={"bands": bands})
    runs = expand(of, facts)
    reached = dict(zip(MODELS, (attention, convolution), strict=True))

    def read(run_id: str) -> RunRecord:
        run = next(run for run in runs if run.spec.run_id == run_id)
        if not run.control:
            return with_hits(run, facts)
        accuracy = reached[run.label]
        if accuracy is None:
            raise KeyError(run_id)
        return record(run, facts, test_accuracy=accuracy)

    found = judge(CLAIM, evidence_of(build("quick", runs, read, facts, of.fit)))
    assert found.marks == marks
    assert (found.outcome == "blocked") is blocked
    assert "fails" in (found.outcome if not blocked else found.sentence)


def test_cells_whose_best_trial_lies_on_an_edge_are_known() -> None:
    assert evidence_of(tuned(*SEARCHES)).edges == {CellOf("convnet:xs", "1", Condition("none", "steps:300", "tuned"))}


def test_hits_are_those_of_the_record() -> None:
    found = evidence_of(frame(study(seeds=1), with_hits))
    for row in found.rows:
        hits = found.correct_I(row.run_id)
        assert hits is not None
        assert hits.mean() == row.test_accuracy
    assert found.correct_I("0" * 16) is None


def test_what_a_study_lacks_is_a_named_outcome() -> None:
    def without_one(run: Run, facts: Resolved) -> RunRecord | None:
        return None if (run.label, run.spec.seed) == ("convnet:xs", 3) else with_hits(run, facts)

    missing = verdict(make=without_one)
    assert missing.outcome == "blocked"
    assert "2 of the 24 runs" not in missing.sentence  # the sizes are looked at one by one
    assert "1 of the 12 runs that it rests on are missing (convnet:xs at 0.1, seed 3)" in missing.sentence
    assert verdict(seeds=1).outcome == verdict(seeds=5).outcome == "undecided"
    assert verdict(["linear"]).sentence == "The study has no model of the family attention, so there is no pair"
    assert verdict(make=record).sentence.startswith("Run ")  # no hits
    equal = verdict(make=lambda run, facts: with_hits(run, facts, 0.5, 0.5))
    assert (equal.outcome, equal.effect and equal.effect.mean) == ("fails", 0)


def test_diverged_runs_count_as_chance_and_both_analyses_are_told() -> None:
    def diverges(run: Run, facts: Resolved) -> RunRecord:
        lost = (run.label, run.spec.seed, run.spec.fraction) == ("token_transformer:xs", 2, "1")
        return record(run, facts, diverged="loss became nan") if lost else with_hits(run, facts, 0.3)

    found = verdict(seeds=8, make=diverges)
    assert found.outcome == "fails"
    assert "1 of its runs diverged or failed" in found.sentence


def test_seeds_changed_after_looking_make_it_exploratory() -> None:
    changed = replace(frame(study(seeds=6), with_hits), exploratory="The seeds were changed after the first run.")
    found = judge(CLAIM, evidence_of(changed))
    assert found.outcome == "exploratory"
    assert "Without that: fails." in found.sentence


def test_what_a_probe_found_is_evidence_while_its_records_are_these() -> None:
    of = frame()

    def found(run_ids: list[str], options: dict[str, int]) -> Measurement:
        records = [of.records[run_id] for run_id in run_ids if run_id in of.records]
        return Measurement(probe="made", version=1, statement="s", source="s", options=options, columns=(), rows=(),
                           run_ids=tuple(run_ids), summary="s", figure={}, code_version="0",
                           records_sha256=records_hash(records))

    first, second, *_ = sorted(of.records)
    kept = [found([first], {"a": 1}), found([first, second], {}), found([], {"b": 1})]
    stale = kept[0].model_copy(update={"records_sha256": "0" * 64})
    evidence = evidence_of(of, measured=lambda name: [*kept, stale, found(["f" * 16], {})] if name == "made" else [])
    assert evidence.probe("made") == tuple(kept)
    with pytest.raises(Unmeasured, match="run `vitbench probe other quick`"):
        evidence.probe("other")
