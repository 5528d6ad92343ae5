"""`run.py test`: how many processes, and what each of them has to itself."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection

from devcluster.cli import testing
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Supervisor
from tests import plugin
from tests.support.scheduling import LONG, TEST_BY_TEST, Scheduling, in_turn


@pytest.mark.parametrize(("rest", "processes"), [([], ["-n", "4"]), (["-k", "quota"], [])])
def test_all_tests_run_in_several_processes_and_a_few_in_one(
    monkeypatch: pytest.MonkeyPatch, rest: list[str], processes: list[str]
) -> None:
    asked: list[str] = []

    def run(supervisor: Supervisor, argv: list[str], services: Path, browser: str) -> int:
        asked.extend(argv)
        return 0

    monkeypatch.setattr(testing, "reusable", Path)
    monkeypatch.setattr(testing, "_pytest", run)
    assert testing.test(Namespace(reuse=True, changed=None), rest) == 0
    at = asked.index("-n") if "-n" in asked else len(asked)
    assert asked[at : at + 2] == processes
    assert asked[1:5] == ["-m", "pytest", "-p", "tests.plugin"]


def test_a_soak_is_a_module_or_a_folder_of_modules() -> None:
    found = testing.soak_modules()
    assert found["chaos"] == [ROOT / "tests/soak/chaos.py"]
    assert {path.parent.name for path in found["usage"]} == {"usage"}
    assert {path.stem for path in found["usage"]} >= {"alerts", "idle_runs"}
    assert "conftest" not in {path.stem for paths in found.values() for path in paths}


@pytest.mark.django_db
def test_a_process_has_a_database_of_its_own_and_those_it_starts_have_the_same() -> None:
    name = urlsplit(plugin.process_environment()["DATABASE_URL"]).path.removeprefix("/")
    assert name == connection.settings_dict["NAME"] == f"test_portal_{os.getpid()}"


def test_processes_of_one_run_have_redis_databases_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = []
    for worker in range(15):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{worker}")
        numbers.append(plugin.redis_number())
    assert sorted(numbers) == list(range(1, 16))


class Process:
    """Stands for a process of xdist and collects what it is told to run."""

    gateway = SimpleNamespace(id="its name")
    shutting_down = False

    def __init__(self) -> None:
        self.told: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.told += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def test_long_tests_of_a_file_are_spread_and_no_file_waits_behind_two_tests() -> None:
    values: dict[str, Any] = {"tx": ["popen", "popen"], "loadscopereorder": False, "debug": False}
    config = SimpleNamespace(getvalue=values.__getitem__, option=SimpleNamespace(**values))
    scheduling = Scheduling(config)  # type: ignore[arg-type]
    pages = [f"{file}::test[{part}]" for file in sorted(TEST_BY_TEST) for part in "xy"]
    collection = ["a.py::one", "a.py::two", "b.py::one", "c.py::one", *pages]
    first, second = processes = [Process(), Process()]
    for one in processes:
        scheduling.add_node(one)  # type: ignore[arg-type]
        scheduling.add_node_collection(one, collection)  # type: ignore[arg-type]
    scheduling.schedule()
    assert (first.told, second.told) == ([0, 1], [2, 3])
    scheduling.mark_test_complete(first, 0)  # type: ignore[arg-type]
    scheduling.mark_test_complete(second, 2)  # type: ignore[arg-type]
    assert (first.told, second.told) == ([0, 1, 4], [2, 3, 5])


def test_files_that_wait_are_spread_among_those_that_compute_and_browsers_come_last() -> None:
    uses = {
        "a/test_one": ("db",), "a/test_two": ("db",), "a/test_three": (), "a/test_four": (),
        "b/test_live": ("services",), "devcluster/controlplane/test_hardware": ("services",),
        "faults/test_drift": ("services",),
        "e2e/desk/test_home": ("browser_type_launch_args", "services"), "matrix/test_admin": ("db",),
        "e2e/journeys/test_walk": ("browser_type_launch_args",),
    }  # fmt: skip
    items = [
        SimpleNamespace(path=ROOT / "tests" / f"{name}.py", fixturenames=fixtures)
        for name, fixtures in [*uses.items(), *reversed(uses.items())]
    ]
    ordered = [str(one.path.relative_to(ROOT / "tests")).removesuffix(".py") for one in in_turn(items)]  # type: ignore[arg-type]
    assert ordered[::2] == ordered[1::2], "the tests of a file stay together"
    assert ordered[::2] == [
        "a/test_one", "faults/test_drift", "a/test_two", "b/test_live", "a/test_three",
        "devcluster/controlplane/test_hardware", "a/test_four", "e2e/journeys/test_walk", "matrix/test_admin",
        "e2e/desk/test_home",
    ]  # fmt: skip


def test_files_that_are_spread_exist() -> None:
    names = {f"{path.parent.name}/{path.stem}" for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(LONG) - names == set()
    assert [file for file in TEST_BY_TEST if not (ROOT / file).is_file()] == []
