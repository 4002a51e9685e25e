import getpass
import json
import os
import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from vitbench import environment
from vitbench.environment import SWITCHES, describe, environment_id, set_switches


def test_a_description_names_no_person_host_or_folder() -> None:
    text = json.dumps(describe("some device"))
    for private in (socket.gethostname(), str(Path.home()), getpass.getuser() + "@", os.getcwd()):
        if len(private) > 3:
            assert private not in text


def test_a_description_says_what_numbers_depend_on() -> None:
    found = describe("some device")
    packages = found["packages"]
    assert isinstance(packages, dict)
    assert {"torch", "numpy", "scipy"} <= set(packages)
    assert all(packages.values())
    assert found["device_name"] == "some device"
    assert found["cores"] == os.cpu_count()


def test_a_package_that_is_not_there_is_missing_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(environment, "version", absent)
    packages = describe("")["packages"]
    assert isinstance(packages, dict)
    assert set(packages.values()) == {"missing"}


def test_one_description_has_one_id() -> None:
    assert environment_id(describe("")) == environment_id(describe(""))
    assert environment_id(describe("")) != environment_id(describe("other"))
    assert len(environment_id({})) == 16


def test_switches_are_set_and_the_users_own_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"WANDB_MODE": "online", "OMP_NUM_THREADS": "8"})
    set_switches(threads=1)
    assert os.environ["WANDB_MODE"] == "online"
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert set(SWITCHES) <= set(os.environ)
    assert os.environ["OMP_NUM_THREADS"] == "1"  # part of how a run is computed, not a preference


def test_the_code_version_is_the_package_version_and_in_a_clone_the_commit() -> None:
    assert environment.code_version().startswith(environment.vitbench.__version__)
