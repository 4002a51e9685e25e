import pytest

from tests.requirements import require_dataset, require_program


def test_a_missing_program_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VITBENCH_REQUIRE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        require_program("no-such-program")


def test_a_missing_program_that_is_required_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITBENCH_REQUIRE", "other, no-such-program")
    with pytest.raises(pytest.fail.Exception):
        require_program("no-such-program")


def test_a_missing_dataset_skips_or_fails_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VITBENCH_REQUIRE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-data is not installed"):
        require_dataset("no-such-data")
    monkeypatch.setenv("VITBENCH_REQUIRE", "no-such-data")
    with pytest.raises(pytest.fail.Exception):
        require_dataset("no-such-data")
