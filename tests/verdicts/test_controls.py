from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitbench.spec import RunSpec
from vitbench.verdicts import Evidence, Expected, Planted
from vitbench.verdicts.controls import controls_run
from vitbench.verdicts.simulated import simulate

RATES = [{"recipe": {"learning_rate": rate, "weight_decay": decay}} for rate in (1e-3, 3e-3, 1e-2)
         for decay in (0.0, 0.05, 0.1)]


def evidence(models: list[Any], **study: Any) -> Evidence:
    values = {"models": models, "images_per_class": [5, 20, 80], "seeds": 1, **study}
    return simulate(Planted("none", lambda cell: Expected(0.8), 0.5, values), np.random.default_rng(0))


def both(*entries: dict[str, Any], size: str = "s") -> list[Any]:
    return [{"name": family, "size": size, "label": f"{family} {i}", **entry}
            for family in ("attention", "convolution") for i, entry in enumerate(entries)]


SIZES = [entry for size in ("xs", "s", "m", "l") for entry in both({}, size=size)]
for number, model in enumerate(SIZES):
    model["label"] = str(number)
WARM = both({"recipe": {"warmup": 0}}, {"recipe": {"warmup": 0.1}})
STEPS = [{"steps": 100}, {"steps": 200}, {"steps": 400}]


@pytest.mark.parametrize(("name", "ran", "lacks"), [
    ("saturation", evidence(WARM, budgets=STEPS), evidence(WARM, budgets=STEPS[:2])),
    ("saturation", evidence(WARM, budgets=STEPS), evidence(both({}), budgets=STEPS)),
    ("learning rate x weight decay", evidence(both(*RATES)), evidence(both(*RATES[:-1]))),
    ("learning rate x weight decay", evidence(both(*RATES)), evidence(both(*RATES)[:-1])),
    ("four sizes", evidence(SIZES), evidence(SIZES[:-2])),
    ("four sizes", evidence(SIZES), evidence(SIZES, images_per_class=[20, 80])),
    ("matched MACs", evidence(both({})), evidence([{"name": "attention", "size": "s"}, {"name": "convolution",
                                                                                         "size": "m"}])),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_control_counts_where_all_its_runs_are_there(name: str, ran: Evidence, lacks: Evidence) -> None:
    assert name in controls_run(ran)
    assert name not in controls_run(lacks)


def test_a_control_beside_the_grid_counts_as_one_in_it() -> None:
    controls = [{"name": "x2", "budget_factor": 2}, {"name": "x4", "budget_factor": 4},
                {"name": "no warm-up", "recipe": {"warmup": 0}},
                {"name": "lr", "grid": {"learning_rate": [1e-4, 1e-2, 1e-1], "weight_decay": [0.0, 0.01, 0.1]}}]
    found = controls_run(evidence(both({}), controls=controls))
    assert {"saturation", "learning rate x weight decay"} <= found
    for lacking in (controls[1:], controls[:1] + controls[2:], controls[:2] + controls[3:]):
        assert "saturation" not in controls_run(evidence(both({}), controls=lacking))
    assert "learning rate x weight decay" not in controls_run(evidence(both({}), controls=controls[:3]))


def test_two_models_a_family_are_told_by_their_names() -> None:
    found = evidence(both({}, {}))
    assert "two models a family" not in controls_run(found)
    planned = tuple(replace(run, spec=RunSpec.model_validate(run.spec.model_dump() | {"model": "other@1"}))
                    if run.label.endswith("1") else run for run in found.planned)
    assert "two models a family" in controls_run(replace(found, planned=planned))


def test_a_study_without_runs_has_no_control() -> None:
    found = evidence(both({}))
    assert controls_run(Evidence(study="x", rows=(), planned=found.planned, models=found.models, drawn={},
                                 correct_I=found.correct_I, sha256="0" * 64)) <= {"matched MACs"}
