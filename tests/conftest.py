"""What every test shares: a cache of its own, and hypothesis without a clock (the cores are shared)."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # In the background of a shell without job control, where what the tests start would not hear Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("vitbench", deadline=None, derandomize=True, max_examples=40,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.load_profile("vitbench")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the datasets that the user keeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def study_file(tmp_path: Path):
    """Writes text or bytes as a study file and gives its path."""

    def write(text: str | bytes, name: str = "trial.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write
