"""Searches go on after any kill with the same trials, and a damaged journal is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from vitbench.config.tuning import Params, Tuning
from vitbench.search import Trial
from vitbench.study.sampler import Asker, DamagedJournal, open_journal

SPACE = {"learning_rate": {"low": 1e-4, "high": 1e-1, "log": True}, "batch_size": {"low": 16, "high": 64},
         "weight_decay": [0, 0.05]}


def tuning(**changes: Any) -> Tuning:
    return Tuning.model_validate_json(json.dumps({"space": SPACE, "trials": 12, **changes}))


def asker(path: Path, of: Tuning, name: str = "s") -> Asker:
    return Asker(name, of, open_journal(path))


def judged(number: int, params: Params, state: Any = "done") -> Trial:
    rate = float(str(params["learning_rate"]))
    return Trial(number=number, params=params, state=state, val_accuracy=1 - rate if state == "done" else None,
                 val_loss=rate if state == "done" else None, seconds=1.0)


def asked(path: Path, of: Tuning, *, name: str = "s", anew: bool = False) -> list[Params]:
    """All params of a search; with `anew` every trial by a driver of its own."""
    found: list[Params] = []
    one = asker(path, of, name)
    while (trial := one.ask()) is not None:
        number, params = trial
        found.append(params)
        one.tell(judged(number, params))
        if anew:
            one = asker(path, of, name)
    return found


def asked_for(path: Path, of: Tuning) -> list[dict[str, Any]]:
    """The same of a space without a learning rate."""
    one, found = asker(path, of), list[dict[str, Any]]()
    while (trial := one.ask()) is not None:
        found.append(dict(trial[1]))
        one.tell(Trial(number=trial[0], params=trial[1], state="failed", seconds=1.0))
    return found


@pytest.mark.parametrize("sampler", ["random", "tpe", "qmc"])
def test_a_search_cut_at_every_trial_is_the_one_that_was_not(tmp_path: Path, sampler: str) -> None:
    of = tuning(sampler=sampler)
    whole = asked(tmp_path / "a", of)
    assert asked(tmp_path / "b", of, anew=True) == whole
    assert len(whole) == 12
    assert len({json.dumps(params) for params in whole}) > 8
    for params in whole:
        assert 1e-4 <= float(str(params["learning_rate"])) <= 1e-1
        assert params["batch_size"] in range(16, 65)
        assert params["weight_decay"] in (0, 0.05)


def test_ends_that_are_whole_numbers_hold_what_lies_between_where_the_recipe_takes_it(tmp_path: Path) -> None:
    of = tuning(space={"weight_decay": {"low": 0, "high": 1}, "learning_rate": SPACE["learning_rate"]})
    decays = {params["weight_decay"] for params in asked(tmp_path / "a", of)}
    assert len(decays) == 12
    assert not decays <= {0, 1}


def test_searches_of_two_names_are_others(tmp_path: Path) -> None:
    assert asked(tmp_path / "a", tuning(), name="a") != asked(tmp_path / "a", tuning(), name="b")


def test_more_trials_continue_a_search(tmp_path: Path) -> None:
    first = asked(tmp_path / "a", tuning(trials=5))
    assert first + asked(tmp_path / "a", tuning(trials=9)) == asked(tmp_path / "b", tuning(trials=9))


def test_a_trial_that_was_running_when_the_driver_died_is_asked_again(tmp_path: Path) -> None:
    one = asker(tmp_path / "a", tuning())
    first = one.ask()
    assert first is not None
    again = asker(tmp_path / "a", tuning())
    assert again.ask() == first
    again.tell(judged(*first))
    second = again.ask()
    assert second is not None
    assert second[0] == 1
    assert [trial.number for trial in again.trials()] == [0]


def test_a_driver_killed_while_telling_neither_repeats_nor_drops_the_trial(tmp_path: Path) -> None:
    one = asker(tmp_path / "a", tuning())
    first = one.ask()
    assert first is not None
    one._finish = lambda _trial: None  # type: ignore[method-assign]  # killed between its two writes
    one.tell(judged(*first))
    again = asker(tmp_path / "a", tuning())
    second = again.ask()
    assert second is not None
    assert second[0] == 1
    assert [trial.number for trial in again.trials()] == [0]


def test_a_journal_cut_at_any_byte_is_read_and_goes_on(tmp_path: Path) -> None:
    of = tuning(trials=3)
    whole = asked(tmp_path / "a", of)
    content = (tmp_path / "a").read_bytes()
    for cut in {*range(0, len(content), 97), len(content) - 1}:
        path = tmp_path / f"cut{cut}"
        path.write_bytes(content[:cut])
        one = asker(path, of)
        kept = [trial.params for trial in one.trials()]
        assert kept + [p for p in asked(path, of) if p not in kept] == whole, cut


def test_a_journal_damaged_in_its_middle_is_named_with_the_line(tmp_path: Path) -> None:
    asked(tmp_path / "a", tuning(trials=3))
    lines = (tmp_path / "a").read_bytes().splitlines(keepends=True)
    lines[4] = lines[4][: len(lines[4]) // 2] + b"\n"
    (tmp_path / "a").write_bytes(b"".join(lines))
    with pytest.raises(DamagedJournal, match="line 5: damaged"):
        open_journal(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"".join(lines)  # nothing is lost by looking


@pytest.mark.parametrize("line", ["5", "[1, 2]", "{}", '{"op_code": 99, "worker_id": "x"}'])
def test_lines_that_are_json_and_no_entries_are_a_damaged_journal(tmp_path: Path, line: str) -> None:
    asked(tmp_path / "a", tuning(trials=3))
    with (tmp_path / "a").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DamagedJournal, match="damaged, its lines are not those that were written"):
        open_journal(tmp_path / "a")


def test_what_a_lost_or_cut_journal_held_is_told_again_and_not_tried_again(tmp_path: Path) -> None:
    of = tuning(trials=5)
    whole = asked(tmp_path / "a", of)
    trials, lines = asker(tmp_path / "a", of).trials(), (tmp_path / "a").read_bytes().splitlines(keepends=True)
    for kept in (0, 4, 9):
        path = tmp_path / f"kept{kept}"
        path.write_bytes(b"".join(lines[:kept]))
        one = asker(path, of)
        one.restore(trials[:4])
        assert one.trials() == trials[:4]
        assert one.ask() == (4, whole[4])


def test_trials_that_the_search_would_not_ask_for_are_not_taken_into_its_journal(tmp_path: Path) -> None:
    one = asker(tmp_path / "a", tuning())
    with pytest.raises(DamagedJournal, match="would have asked for another; put the journal back"):
        one.restore([judged(0, {"learning_rate": 0.05, "batch_size": 16, "weight_decay": 0})])
    assert one.trials() == ()


def test_a_range_of_a_key_that_is_no_whole_number_is_searched_between_whole_ends(tmp_path: Path) -> None:
    of = tuning(space={"weight_decay": {"low": 0, "high": 1}, "batch_size": {"low": 1, "high": 64, "log": True}})
    found = [(params["weight_decay"], params["batch_size"]) for params in asked_for(tmp_path / "a", of)]
    assert sum(0 < decay < 1 for decay, _ in found) == 12
    assert all(isinstance(batch, int) for _, batch in found)


def test_failed_diverged_and_pruned_trials_count_and_are_kept(tmp_path: Path) -> None:
    of, states = tuning(trials=4, sampler="tpe"), iter(["failed", "diverged", "pruned", "done"])
    one = asker(tmp_path / "a", of)
    while (trial := one.ask()) is not None:
        one.tell(judged(*trial, next(states)))
    assert [trial.state for trial in one.trials()] == ["failed", "diverged", "pruned", "done"]


def test_a_sampler_that_learns_looks_where_it_was_good(tmp_path: Path) -> None:
    """Accuracy falls with the learning rate: TPE's late trials are lower than random ones."""
    of = tuning(trials=40, sampler="tpe", space={"learning_rate": SPACE["learning_rate"]})
    rates = [float(str(params["learning_rate"])) for params in asked(tmp_path / "a", of)]
    assert sorted(rates[20:])[10] < sorted(rates[:10])[5]
