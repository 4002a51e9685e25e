import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.made_records import LOGITS_IC, a_failure, a_record
from vitbench import store as store_module
from vitbench.record import DamagedRecord, Failure, RunRecord
from vitbench.store import FAILURE, LOGITS, RECORD, ResultStore, StoreError, write_atomically


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    made = ResultStore(tmp_path / "results" / "trial")
    made.prepare()
    return made


def a_hash(found: Any) -> str:
    assert isinstance(found, RunRecord)
    return found.sha256


def in_a_process(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter that knows this repository."""
    root = str(Path(__file__).parents[1])
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60,
                          check=False, env={**os.environ, "PYTHONPATH": root}, **options)


def test_a_run_comes_back_with_its_logits(store: ResultStore) -> None:
    written = a_record()
    store.write(written, LOGITS_IC)
    found = store.read(written.run_id)
    assert found.model_copy(update={"sha256": ""}) == written
    logits = store.logits_IC(written)
    assert logits.dtype == np.float16
    assert np.array_equal(logits, LOGITS_IC)
    assert store.ids() == {written.run_id}
    assert store.failed(store.ids()) == set()


def test_a_run_without_logits_has_none(store: ResultStore) -> None:
    store.write(a_record(), None)
    with pytest.raises(FileNotFoundError):
        store.logits_IC(a_record())


@pytest.mark.parametrize("change", ["another value", "cut off", "no array", "another shape", "another type",
                                    "a shape of petabytes", "a torn header"])
def test_logits_that_the_record_does_not_name_are_not_read(store: ResultStore, change: str) -> None:
    store.write(a_record(), LOGITS_IC)
    path = store.runs / a_record().run_id / LOGITS
    whole = path.read_bytes()
    path.write_bytes({"another value": whole[:-1] + bytes([whole[-1] ^ 1]), "cut off": whole[:-8],
                      "no array": b"logits", "another shape": whole.replace(b"(10, 10)", b"(5, 20 )"),
                      "another type": whole.replace(b"<f2", b"<i2"),
                      "a shape of petabytes": whole.replace(b"(10, 10), }" + b" " * 12, b"(99999999, 99999999), }"),
                      "a torn header": whole.replace(b"'shape'", b"'shape(")}[change])
    with pytest.raises(DamagedRecord, match="logits"):
        store.logits_IC(a_record())


def test_a_run_that_is_not_there_is_a_key_error(store: ResultStore) -> None:
    with pytest.raises(KeyError):
        store.read("0" * 16)
    assert ResultStore(store.folder / "elsewhere").ids() == set()


def test_a_failure_comes_back(store: ResultStore) -> None:
    store.write_failure(a_failure(reason="out of memory"))
    found = store.read(a_failure().run_id)
    assert isinstance(found, Failure)
    assert found.model_copy(update={"sha256": ""}) == a_failure(reason="out of memory")
    assert store.failed(store.ids()) == {a_failure().run_id}


def test_a_failure_may_quote_a_file_name_that_is_not_utf_8(store: ResultStore) -> None:
    store.write_failure(a_failure(reason="no file caf\udce9.npy"))
    found = store.read(a_failure().run_id)
    assert isinstance(found, Failure)
    assert found.reason == r"no file caf\udce9.npy"


def test_a_run_written_twice_stays_as_it_was(store: ResultStore) -> None:
    store.write(a_record(), LOGITS_IC)
    first = store.read(a_record().run_id)
    store.write(a_record(finished="2026-01-02T00:00:00Z"), None)
    store.write_failure(a_failure())
    assert store.read(a_record().run_id) == first
    assert np.array_equal(store.logits_IC(a_record()), LOGITS_IC)
    assert list(store.runs.iterdir()) == [store.runs / a_record().run_id]


class Stopped(BaseException):
    """Ends a write at a chosen step, like a signal would."""


def stops_at(monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException) -> list[str]:
    """From now on the `step`-th call of anything that reaches the disk raises `error`. Returns the calls made."""
    calls: list[str] = []

    def counting(name: str, real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            if len(calls) == step + 1:
                raise error
            return real(*arguments, **options)
        return call

    monkeypatch.setattr(os, "fsync", counting("fsync", os.fsync))
    monkeypatch.setattr(np, "save", counting("save", np.save))
    for name in ("mkdir", "open", "replace", "rename"):
        monkeypatch.setattr(Path, name, counting(name, getattr(Path, name)))
    return calls


STEPS = 11  # mkdir, open, save, fsync, open, fsync, replace, fsync, rename, fsync; see the test below


def test_every_step_of_a_write_is_tried_below(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stops_at(monkeypatch, 10**6, Stopped())
    store.write(a_record(), LOGITS_IC)
    assert 8 <= len(calls) <= STEPS, calls


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize("error", [Stopped(), OSError(28, "No space left on device"), MemoryError()],
                         ids=["stopped", "full disk", "no memory"])
def test_a_write_that_is_broken_off_leaves_a_whole_run_or_none(store: ResultStore, step: int,
                                                               error: BaseException) -> None:
    with pytest.MonkeyPatch.context() as patch:
        calls = stops_at(patch, step, error)
        try:
            store.write(a_record(), LOGITS_IC)
        except type(error):
            assert len(calls) > step
        else:
            assert len(calls) <= step or (store.runs / a_record().run_id).exists()
    assert store.ids() <= {a_record().run_id}
    for run_id in store.ids():
        assert a_hash(store.read(run_id))
        assert np.array_equal(store.logits_IC(a_record()), LOGITS_IC)
    assert not list(store.runs.glob(".*"))
    store.write(a_record(), LOGITS_IC)
    assert np.array_equal(store.logits_IC(a_record()), LOGITS_IC)


def test_a_write_in_place_would_leave_half_a_run(store: ResultStore) -> None:
    # The proof that the test above can fail.
    folder = store.runs / a_record().run_id
    folder.mkdir()
    (folder / RECORD).write_text(a_record().to_json()[:100])
    assert store.ids() == {a_record().run_id}
    with pytest.raises(DamagedRecord):
        store.read(a_record().run_id)


KILLED = """
    import itertools, os, signal, sys
    from pathlib import Path
    import numpy as np
    from tests.made_records import a_record
    from vitbench.store import ResultStore

    calls = itertools.count()
    real = os.fsync
    def fsync(descriptor):
        if next(calls) == {step}:
            os.kill(os.getpid(), signal.SIGKILL)
        real(descriptor)
    os.fsync = fsync
    ResultStore(Path({folder!r})).write(a_record(), np.zeros((10, 10), np.float16))
"""


@pytest.mark.parametrize(("step", "there"), [(0, False), (1, False), (2, False), (3, True)])
def test_a_killed_worker_leaves_a_whole_run_or_none(store: ResultStore, step: int, there: bool) -> None:
    done = in_a_process(KILLED.format(step=step, folder=str(store.folder)))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (store.ids() == {a_record().run_id}) is there
    if there:
        assert a_hash(store.read(a_record().run_id))
    else:
        assert list(store.runs.glob(".*"))  # half-written, and not taken for a run
    with store.locked():
        store.clean()
    assert not list(store.runs.glob(".*"))
    store.write(a_record(), LOGITS_IC)
    assert a_hash(store.read(a_record().run_id))


def test_a_disk_that_is_full_leaves_no_run_and_says_so(store: ResultStore) -> None:
    done = in_a_process(f"""
        import resource, signal
        from pathlib import Path
        import numpy as np
        from tests.made_records import a_record
        from vitbench.store import ResultStore

        store = ResultStore(Path({str(store.folder)!r}))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            store.write(a_record(), np.zeros((10_000, 10), np.float16))
        except OSError:
            print("OSError")
        print(sorted(p.name for p in store.runs.iterdir()))
    """)
    assert done.stdout.splitlines() == ["OSError", "[]"], done.stderr


def test_a_leftover_of_an_earlier_process_with_the_same_number_is_no_obstacle(store: ResultStore) -> None:
    # In a container each worker may get the number that a killed one had.
    (store.runs / f".{a_record().run_id}.{os.getpid()}").mkdir()
    (store.runs / f".{a_record().run_id}.{os.getpid()}" / RECORD).write_text("{")
    store.write(a_record(), LOGITS_IC)
    assert a_hash(store.read(a_record().run_id))
    assert not list(store.runs.glob(".*"))


def test_a_driver_that_is_turned_away_leaves_the_others_half_written_runs(store: ResultStore) -> None:
    half = store.runs / f".{'a' * 16}.1"
    with store.locked():
        half.mkdir()
        second = ResultStore(store.folder)
        second.prepare()
        with pytest.raises(StoreError), second.locked():
            pass
        assert half.exists()
    with store.locked():
        store.clean()
    assert not half.exists()


def test_only_the_holder_of_the_lock_goes_on(store: ResultStore) -> None:
    with store.locked():
        with pytest.raises(StoreError, match=rf"in use by another driver \(pid {os.getpid()} on "), \
                ResultStore(store.folder).locked():
            pytest.fail("two drivers")
        other = in_a_process(f"""
            from pathlib import Path
            from vitbench.store import ResultStore, StoreError
            try:
                with ResultStore(Path({str(store.folder)!r})).locked(): print("in")
            except StoreError as error:
                print(error)
        """)
        assert f"pid {os.getpid()} on" in other.stdout, other.stderr
        assert "wait for it to end, or stop it" in other.stdout


@pytest.mark.parametrize("left", [b"", b"{", b"[]", b'{"pid": 3}', b"\xff", b"null"])
def test_a_lock_file_that_says_nothing_still_locks(store: ResultStore, left: bytes) -> None:
    with store.locked():
        (store.folder / ".lock").write_bytes(left)
        with pytest.raises(StoreError, match="in use by another driver;"), ResultStore(store.folder).locked():
            pytest.fail("two drivers")


def test_the_lock_is_free_after_an_error_and_after_a_kill(store: ResultStore) -> None:
    with pytest.raises(RuntimeError), store.locked():
        raise RuntimeError
    done = in_a_process(f"""
        import os, signal
        from pathlib import Path
        from vitbench.store import ResultStore
        with ResultStore(Path({str(store.folder)!r})).locked():
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with store.locked():
        pass


@pytest.mark.parametrize("shelf", ["damaged", "replaced"])
def test_what_is_set_aside_is_kept_and_can_be_done_again(store: ResultStore, shelf: str) -> None:
    for _ in range(3):
        store.write(a_record(), LOGITS_IC)
        place = store.set_aside(a_record().run_id, shelf)
        assert place.parent == store.folder / shelf
        assert (place / RECORD).read_text() == a_record().to_json()
        assert store.ids() == set()
    assert len(list((store.folder / shelf).iterdir())) == 3


def test_a_damaged_record_is_named_as_such_and_left_in_place(store: ResultStore) -> None:
    store.write(a_record(), None)
    path = store.runs / a_record().run_id / RECORD
    path.write_bytes(path.read_bytes().replace(b'"test_loss":0.95', b'"test_loss":0.59'))
    with pytest.raises(DamagedRecord, match="content hash"):
        store.read(a_record().run_id)
    assert path.exists()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b'{"reason": "x"}'])
def test_a_damaged_failure_is_named_as_such(store: ResultStore, text: bytes) -> None:
    store.write_failure(a_failure())
    (store.runs / a_failure().run_id / FAILURE).write_bytes(text)
    with pytest.raises(DamagedRecord, match="not whole"):
        store.read(a_failure().run_id)


def test_a_failure_that_was_changed_is_damaged(store: ResultStore) -> None:
    store.write_failure(a_failure())
    path = store.runs / a_failure().run_id / FAILURE
    path.write_bytes(path.read_bytes().replace(b'"crash":false', b'"crash":true'))
    with pytest.raises(DamagedRecord, match="content hash"):
        store.read(a_failure().run_id)


def test_a_failure_from_before_it_had_a_hash_is_readable_and_its_seed_still_guarded(store: ResultStore) -> None:
    store.write_failure(a_failure())
    path = store.runs / a_failure().run_id / FAILURE
    old = {k: v for k, v in json.loads(path.read_text()).items() if k != "sha256"}
    path.write_text(json.dumps(old))
    assert store.read(a_failure().run_id) == a_failure()
    old["spec"]["seed"] += 1
    path.write_text(json.dumps(old))
    with pytest.raises(DamagedRecord, match="does not follow from its configuration"):
        store.read(a_failure().run_id)


def test_an_empty_run_folder_is_a_damaged_record(store: ResultStore) -> None:
    (store.runs / ("a" * 16)).mkdir()
    with pytest.raises(DamagedRecord, match="No such file"):
        store.read("a" * 16)


def test_a_record_in_anothers_folder_is_damaged(store: ResultStore) -> None:
    store.write(a_record(), None)
    (store.runs / a_record().run_id).rename(store.runs / ("a" * 16))
    with pytest.raises(DamagedRecord, match=f"belongs to run {a_record().run_id}"):
        store.read("a" * 16)


def test_a_record_too_large_to_be_one_is_not_read(store: ResultStore) -> None:
    folder = store.runs / ("a" * 16)
    folder.mkdir()
    with (folder / RECORD).open("wb") as file:
        file.truncate(2**34)  # sparse: 16 GB by its size, nothing on the disk
    with pytest.raises(DamagedRecord, match="larger than"):
        store.read("a" * 16)


def test_listing_what_ended_and_what_failed_opens_no_file(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(5):
        store.write(a_record(seed), None)
        store.write_failure(a_failure(seed + 5))

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("opened a file")

    monkeypatch.setattr("builtins.open", opened)
    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(Path, "read_bytes", opened)
    monkeypatch.setattr(Path, "read_text", opened)
    monkeypatch.setattr(os, "open", opened)
    assert len(store.ids()) == 10
    assert len(store.failed(store.ids())) == 5
    with pytest.raises(AssertionError):  # the proof that opening would have been seen
        store.read(a_record().run_id)


def test_a_results_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(StoreError, match="Choose another folder with --results DIR"):
        ResultStore(tmp_path / "results" / "trial").prepare()


def test_a_results_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refused)
    with pytest.raises(StoreError, match=r"Permission denied. Choose another folder with --results DIR"):
        ResultStore(tmp_path / "trial").prepare()


def test_preparing_twice_keeps_what_is_there(store: ResultStore) -> None:
    store.write(a_record(), LOGITS_IC)
    store.prepare()
    assert store.ids() == {a_record().run_id}
    assert sorted(p.name for p in (store.runs / a_record().run_id).iterdir()) == sorted([LOGITS, RECORD])
    assert sorted(p.name for p in store.folder.iterdir()) == ["runs"]


def test_an_atomic_write_replaces_whole_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    write_atomically(path, "old")
    for step in range(3):
        with pytest.MonkeyPatch.context() as patch:
            stops_at(patch, step, OSError(28, "No space left on device"))
            with pytest.raises(OSError, match="No space left"):
                write_atomically(path, "new")
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, "new")
    assert path.read_text() == "new"


def test_a_record_is_written_as_one_line_of_json(store: ResultStore) -> None:
    store.write(a_record(), None)
    text = (store.runs / a_record().run_id / RECORD).read_text()
    assert text.count("\n") == 1
    assert json.loads(text)["run_id"] == a_record().run_id
    assert 100 * len(text) < store_module.MAX_RECORD_BYTES


PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50 + b"\0\0\0\0IEND\xaeB`\x82"


def test_a_picture_comes_back_and_the_last_one_counts(store: ResultStore) -> None:
    assert store.picture("strong") is None
    store.write_picture("strong", b"another")
    store.write_picture("strong", PNG)
    assert store.picture("strong") == PNG
    assert store.picture("light") is None
    assert [path.name for path in (store.folder / "augmented").iterdir()] == ["strong.png"]


@pytest.mark.parametrize("damaged", [b"", PNG[:-3], PNG[1:], b"<svg/>", PNG + b"<script>"])
def test_a_picture_that_is_not_whole_is_none(store: ResultStore, damaged: bytes) -> None:
    store.write_picture("light", PNG)
    (store.folder / "augmented" / "light.png").write_bytes(damaged)
    assert store.picture("light") is None


def test_a_picture_that_is_too_large_is_none(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write_picture("light", PNG)
    monkeypatch.setattr(store_module, "MAX_PICTURE_BYTES", len(PNG) - 1)
    assert store.picture("light") is None
