"""What probes measured, run by run and on a mechanism, as claims get it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitbench.measurement import Measurement, Value
from vitbench.verdicts import Blocked, Evidence, Expected, Planted, Unmeasured, beside, by_run, number, of_mechanism
from vitbench.verdicts.simulated import simulate


def measurement(*rows: Mapping[str, Any], runs: tuple[str, ...] = (), **options: Any) -> Measurement:
    return Measurement(probe="entropy", version=1, statement="", source="", options=options, run_ids=runs, columns=(),
                       rows=tuple(map(dict, rows)), summary="", figure={}, code_version="")


def evidence(*found: Measurement) -> Evidence:
    planted = Planted("", lambda _: Expected(0.9), 0.9, {"models": ["attention:s"], "images_per_class": [20],
                                                         "seeds": 2})
    return replace(simulate(planted, np.random.default_rng(0)),
                   measured=lambda name: found if name == "entropy" else ())


A, B = (row.run_id for row in evidence().rows)


def test_of_a_run_the_measurement_of_most_runs_counts() -> None:
    of = evidence(measurement({"run": A, "x": 1}, runs=(A,)), measurement({"run": A, "x": 2}, {"run": B, "x": 3},
                                                                          {"run": B, "x": 4}, runs=(A, B)))
    looked = by_run(of, "entropy")
    assert [[row["x"] for row in looked(row)] for row in of.rows] == [[2], [3, 4]]


def test_a_run_that_was_not_looked_at_is_named_with_what_to_run() -> None:
    of = evidence(measurement({"run": A, "x": 1}, runs=(A,), images=4))
    assert by_run(of, "entropy")(of.rows[0])[0]["x"] == 1
    words = (r"what the probe entropy measures on its runs, and attention:s at 20 a class, seed 1, was not looked at "
             r"as it stands on record: run `vitbench probe entropy simulated`$")
    with pytest.raises(Unmeasured, match=words):
        by_run(of, "entropy")(of.rows[1])
    with pytest.raises(Unmeasured, match="seed 0, was not looked at"):
        by_run(of, "entropy", which=lambda one: one.options["images"] > 4)(of.rows[0])
    with pytest.raises(Unmeasured, match="run `vitbench probe other simulated`"):
        by_run(of, "other")(of.rows[0])


def test_of_a_mechanism_the_rows_without_a_run_count_of_every_measurement() -> None:
    of = evidence(measurement({"run": None, "x": 1}, {"run": A, "x": 2}, runs=(A,)), measurement({"x": 3}, few=True))
    assert [row["x"] for row in of_mechanism(of, "entropy")] == [1, 3]
    assert [row["x"] for row in of_mechanism(of, "entropy", which=lambda one: not one.options)] == [1]
    with pytest.raises(Unmeasured, match=r"on the mechanism alone, .*: run `vitbench probe entropy`$"):
        of_mechanism(evidence(measurement({"run": A, "x": 2}, runs=(A,))), "entropy")


def test_a_number_is_one_or_blocks_by_name() -> None:
    row: dict[str, Value] = {"label": "vit", "share": "0.1", "seed": 3, "x": 0.5, "n": 2, "none": None, "word": "even"}
    assert (number(row, "x"), number(row, "n")) == (0.5, 2)
    for column in ("none", "word"):
        with pytest.raises(Blocked, match=f"There is no {column} of vit at 0.1, seed 3"):
            number(row, column)
    with pytest.raises(Blocked, match=r"There is no x of the mechanism$"):
        number({"x": None}, "x")


@pytest.mark.parametrize("why", [Blocked("No pair"), Unmeasured("Run it")])
def test_what_stands_beside_says_what_it_lacks(why: Exception) -> None:
    def lacks() -> Any:
        raise why

    leg = beside("slope", "a doubling", lacks)
    assert (leg.name, leg.sentence, leg.effect, leg.outcome) == ("slope", str(why), None, None)
