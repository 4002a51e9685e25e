import json
import os
from pathlib import Path

import pytest

from vitbench import live
from vitbench.live import LiveFile, clear, running


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(live, "time", made)
    return made


def test_progress_is_there_until_it_is_removed(tmp_path: Path) -> None:
    file = LiveFile(tmp_path / "live", "a" * 16)
    file.update(10, 300, train_loss=1.5)
    (found,) = running(tmp_path / "live")
    assert (found.run_id, found.step, found.steps, found.train_loss, found.val_loss) == ("a" * 16, 10, 300, 1.5, None)
    assert found.pid == os.getpid()
    file.remove()
    assert running(tmp_path / "live") == []
    file.remove()


def test_the_file_is_rewritten_every_two_seconds_at_most(tmp_path: Path, clock: Clock) -> None:
    file = LiveFile(tmp_path, "a" * 16)
    seen = []
    for tenth in range(60):
        clock.now = 1000 + tenth / 10
        file.update(tenth, 60)
        seen.append(running(tmp_path)[0].step)
    assert sorted(set(seen)) == [0, 20, 40]


def test_each_run_has_a_pace_of_its_own(tmp_path: Path, clock: Clock) -> None:
    LiveFile(tmp_path, "a" * 16).update(1, 2)
    LiveFile(tmp_path, "b" * 16).update(1, 2)
    assert [p.run_id for p in running(tmp_path)] == ["a" * 16, "b" * 16]


@pytest.mark.parametrize(("age", "lost"), [(0, False), (59.9, False), (60.1, True), (3600, True)])
def test_a_run_not_heard_of_for_a_minute_is_lost(tmp_path: Path, clock: Clock, age: float, lost: bool) -> None:
    LiveFile(tmp_path, "a" * 16).update(1, 2)
    clock.now += age
    assert running(tmp_path)[0].lost is lost


@pytest.mark.parametrize("text", [b"", b"{", b'{"run_id": "a"}', b"[1]", b"3", b"\xff\xfe", b"null",
                                  b'{"run_id": "a", "later": 1}', b"[" * 100_000])
def test_a_file_that_is_not_whole_is_passed_over(tmp_path: Path, text: bytes) -> None:
    LiveFile(tmp_path, "b" * 16).update(1, 2)
    (tmp_path / f"{'a' * 16}.json").write_bytes(text)
    assert [p.run_id for p in running(tmp_path)] == ["b" * 16]


def test_a_file_half_written_by_a_killed_worker_is_not_read(tmp_path: Path) -> None:
    (tmp_path / f"{'a' * 16}.tmp").write_text('{"run')
    assert running(tmp_path) == []


@pytest.mark.parametrize("change", [{"time": "noon"}, {"step": None}, {"run_id": 3}, {"time": None}], ids=str)
def test_a_file_with_a_value_of_another_kind_is_passed_over(tmp_path: Path, change: dict[str, object]) -> None:
    LiveFile(tmp_path, "a" * 16).update(1, 2)
    path = tmp_path / f"{'a' * 16}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert running(tmp_path) == []


def test_a_loss_that_is_no_number_is_shown_as_such(tmp_path: Path) -> None:
    LiveFile(tmp_path, "a" * 16).update(1, 2, train_loss=float("nan"), test_loss=float("inf"))
    (found,) = running(tmp_path)
    assert found.train_loss != found.train_loss
    assert found.test_loss == float("inf")


def test_no_folder_is_no_run(tmp_path: Path) -> None:
    assert running(tmp_path / "live") == []
    clear(tmp_path / "live")


def test_a_folder_that_cannot_be_written_never_stops_training(tmp_path: Path) -> None:
    (tmp_path / "live").write_text("a file in the folder's place")
    file = LiveFile(tmp_path / "live", "a" * 16)
    file.update(1, 2)
    file.remove()


def test_a_full_disk_never_stops_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    LiveFile(tmp_path, "a" * 16).update(1, 2)


def test_what_a_killed_driver_left_is_cleared(tmp_path: Path) -> None:
    LiveFile(tmp_path, "a" * 16).update(1, 2)
    (tmp_path / "x.tmp").write_text("{")
    clear(tmp_path)
    assert list(tmp_path.iterdir()) == []
