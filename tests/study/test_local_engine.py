"""The fork server and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.cli.driver import until
from vitbench.cli.errors import explained
from vitbench.config import DatasetEntry
from vitbench.study.engines.local import LocalEngine, WorkerDied, visible_devices

DRIVER = """
import time
from vitbench.config import DatasetEntry
from vitbench.study.engines.local import LocalEngine
try:
    with LocalEngine() as engine:
        print("begun", flush=True)
        engine.inspect(DatasetEntry(name="digits"), ())
        time.sleep(60)
except KeyboardInterrupt:
    pass
"""


def test_ctrl_c_while_the_server_imports_leaves_no_traceback() -> None:
    with subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "begun\n"
        time.sleep(0.3)
        os.killpg(driver.pid, signal.SIGINT)
        _, errors = driver.communicate(timeout=60)
    assert "Traceback" not in errors


def test_a_worker_that_dies_before_the_first_run_is_a_message(tmp_path: Path) -> None:
    plugin = tmp_path / "fatal.py"
    plugin.write_text("import os\nos._exit(7)\n")
    with LocalEngine() as engine, pytest.raises(WorkerDied, match="exit status 7") as caught:
        engine.inspect(DatasetEntry(name="digits"), (plugin,))
    assert explained(caught.value) is not None


SLOW_READER = """
import tempfile, time
from pathlib import Path
with tempfile.TemporaryDirectory(dir=Path(__file__).parent):
    Path(__file__).with_name("begun").touch()
    time.sleep(100)
"""


def test_ctrl_c_while_the_dataset_is_being_had_ends_at_once_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_READER)
    code = DRIVER.replace('"digits"), ()', f'"digits"), (__import__("pathlib").Path({str(tmp_path / "slow.py")!r}),)')
    with subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as driver:
        until((tmp_path / "begun").exists)
        os.killpg(driver.pid, signal.SIGINT)
        _, errors = driver.communicate(timeout=60)
    assert "Traceback" not in errors
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == ["begun", "slow.py"]


PRELOADING = """
from tests.study.test_local_engine import tell_loaded
from vitbench.study.engines.local import LocalEngine
with LocalEngine(["json.tool"]) as engine:
    for module in ("json.tool", "tabnanny"):
        connection, process = engine._start(tell_loaded, module)
        print(connection.recv(), flush=True)
"""


def tell_loaded(module: str, answer: Connection) -> None:
    answer.send(module in sys.modules)


def test_what_is_preloaded_is_there_in_each_worker() -> None:
    done = subprocess.run([sys.executable, "-c", PRELOADING], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["True", "False"]


@pytest.mark.parametrize(("device", "slot", "devices", "allowed", "visible"), [
    ("cpu", 0, 4, None, ""), ("cuda", 0, 1, None, None), ("cuda", 1, 2, None, "1"), ("cuda", 2, 2, None, "0"),
    ("cuda", 1, 2, "5,7", "7"),
])
def test_a_worker_sees_one_cuda_device_in_turn(monkeypatch: pytest.MonkeyPatch, device: str, slot: int, devices: int,
                                               allowed: str | None, visible: str | None) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if allowed:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert visible_devices(device, slot, devices) == visible
