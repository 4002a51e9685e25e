import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.report.factory import frame, study
from vitbench.report import verdicts
from vitbench.report.frame import Frame
from vitbench.report.notes import identity
from vitbench.report.render import markdown_text
from vitbench.report.verdicts import Judged
from vitbench.stats import Interval
from vitbench.verdicts import Leg, Verdict, with_legs
from vitbench.verdicts.verdict import Part

CLAIM = "attention_overtakes_with_enough_data"
EFFECT = Interval(0.0123456789, -0.01, 0.03, 0.02, 8, "seeds x images")
PARTS = (Part("none, steps:300, default: a against b", EFFECT, "holds"),
         Part("none, steps:300, default: c|d", EFFECT, "neither"))
WHOLE = Verdict(
    outcome="undecided", sentence="The sign-flip p is 0.2", effect=EFFECT, level=0.95, p=0.21, parts=PARTS,
    run_ids=("a" * 16, "b" * 16), controls_run=("saturation",), controls_missing=("four sizes", "matched MACs"))
BARE = Verdict(outcome="blocked", sentence="No run")


def on(of: Frame, claim: str, verdict: Verdict) -> Judged:
    return Judged(of.study, claim, verdict, identity(of))


def judged() -> list[Judged]:
    of = frame(study())
    return [on(of, CLAIM, WHOLE), on(of, "gone", BARE)]


def test_json_has_every_part_and_null_for_what_there_is_not() -> None:
    whole, bare = json.loads(verdicts.json(judged()))
    assert list(whole) == list(bare)
    assert (whole["verdict"], whole["marks"], whole["effect"], whole["over"]) == (
        "undecided", ["unanchored"], 0.0123457, "seeds x images")
    assert (whole["n"], whole["level"], whole["strata_level"], whole["margin"]) == (8, 0.95, 0.975, 0.01)
    assert whole["strata"][0] == {"name": "none, steps:300, default: a against b", "shows": "holds", "mean": 0.0123457,
                                  "low": -0.01, "high": 0.03}
    assert (whole["controls_missing"], whole["run_ids"]) == (["four sizes", "matched MACs"], ["a" * 16, "b" * 16])
    assert len(whole["content_sha256"]) == 64
    empty = ("sentence", "effect", "low", "high", "level", "over", "sign_flip_p", "margin", "unit", "strata_level")
    assert {bare[key] for key in empty} == {None}
    assert (bare["claim"], bare["n"], bare["run_ids"]) == ("gone", 0, [])


def test_csv_holds_the_same_one_line_a_claim() -> None:
    rows = list(csv.DictReader(io.StringIO(verdicts.csv(judged()))))
    assert [row["verdict"] for row in rows] == ["undecided", "blocked"]
    assert json.loads(rows[0]["run_ids"]) == ["a" * 16, "b" * 16]
    assert rows[1]["effect"] == ""
    assert verdicts.csv([]).count("\n") == 1


def test_markdown_says_verdict_reason_and_what_it_rests_on() -> None:
    text = verdicts.markdown(judged())
    first, second = text.split("## ")[1:]
    assert first.startswith(f"quick: {CLAIM}\n\nWith little data")
    for line in ("**undecided** (unanchored): The sign-flip p is 0.2.",
                 "- effect: +0.0123 [-0.01, +0.03], 95 % interval over seeds x images, n = 8; margin 0.01; sign-flip p "
                 "0.21; test accuracy, as a share of images",
                 "- stratum: none, steps:300, default: a against b: +0.0123 [-0.01, +0.03], 97.5 %, alone holds",
                 "- stratum: none, steps:300, default: c\\|d: +0.0123 [-0.01, +0.03], 97.5 %, alone neither holds nor "
                 "fails",
                 "- controls run: saturation", "- controls missing: four sizes, matched MACs",
                 f"- runs: {'a' * 16} {'b' * 16}"):
        assert line in first.splitlines(), line
    assert "**blocked** (unanchored): No run." in second.splitlines()
    assert "- runs: none" in second.splitlines()
    assert "effect" not in second
    assert verdicts.markdown([]) == ""
    assert "**blocked**: No run." in verdicts.markdown([replace(judged()[1], verdict=replace(BARE, marks=()))])


def test_one_seed_has_a_mean_and_no_interval() -> None:
    alone = Interval(0.02, None, None, None, 1)
    one = Verdict(outcome="undecided", sentence="1 seed", effect=alone, level=0.95, parts=(Part("a against b", alone),))
    lines = verdicts.markdown([on(frame(study()), CLAIM, one)]).splitlines()
    assert "- effect: +0.02, n = 1; margin 0.01; test accuracy, as a share of images" in lines
    assert "- stratum: a against b" in lines


def test_legs_stand_with_their_own_numbers_and_described_ones_without_an_outcome() -> None:
    leg = Leg.of("first leg", replace(WHOLE, outcome="holds", sentence="It does"))
    beside = Leg(name="beside", sentence="decides nothing", effect=EFFECT, level=0.95)
    [found] = json.loads(verdicts.json([on(frame(study()), CLAIM, with_legs(WHOLE, leg, beside))]))
    assert [(each["name"], each["verdict"], each["effect"], each["n"]) for each in found["legs"]] == [
        ("first leg", "holds", 0.0123457, 8), ("beside", None, 0.0123457, 8)]
    text = verdicts.markdown([on(frame(study()), CLAIM, with_legs(WHOLE, leg, beside))])
    assert "- first leg: +0.0123 [-0.01, +0.03], n = 8; holds: It does\n" in text
    assert "- beside: +0.0123 [-0.01, +0.03], n = 8; decides nothing\n" in text


def test_holm_is_over_all_that_were_tested_and_says_what_survives() -> None:
    of = frame(study())
    tested = [on(of, name, replace(WHOLE, outcome=outcome, t_p=p)) for name, outcome, p in (
        (CLAIM, "holds", 0.01), ("family_not_size", "holds", 0.03), (CLAIM, "undecided", 0.4))]
    whole = [*tested, on(of, "four", BARE)]
    assert [each["holm_p"] for each in json.loads(verdicts.json(whole))] == [0.03, 0.06, 0.4, None]
    text = verdicts.markdown(whole)
    assert ("3 of these verdicts rest on a test over seeds. If none of their claims were true, 0.05 of them at most, "
            "0.15 in all, would be expected") in text
    assert markdown_text(f"Of the 2 that hold, 1 survive Holm over all 3 by their t p: quick: {CLAIM}.") in text
    assert "All together" not in verdicts.markdown(whole[:1])


@pytest.mark.parametrize(("claim", "outcome", "words"), [
    (CLAIM, "holds", "an interval that reaches 0 or a mean below the margin, over more seeds or in another stratum; a "
                     "control that is missing: four sizes, matched MACs; an anchor below its band"),
    ("small_cnn_resists_overfitting", "holds", "an interval that reaches the margin, over more seeds"),
    (CLAIM, "fails", "an interval that reaches the margin, over more seeds"),
    ("small_cnn_resists_overfitting", "fails", "an interval that ends below the margin"),
    (CLAIM, "depends", "no number of seeds"), (CLAIM, "undecided", "what the reason names"),
    (CLAIM, "exploratory", "a study of its own"),
    ("convolution_is_restricted_attention", "holds", "another result of the probe"),
])
def test_every_verdict_says_what_would_change_it(claim: str, outcome: Any, words: str) -> None:
    one = on(frame(study()), claim, replace(WHOLE, outcome=outcome))
    [found] = json.loads(verdicts.json([one]))
    assert found["would_change_it"].startswith(words)
    assert f"- would change it: {words[:20]}" in verdicts.markdown([one])
