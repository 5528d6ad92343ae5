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
from tests.support.scheduling import TEST_BY_TEST, Scheduling


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


def test_files_that_are_spread_exist() -> None:
    assert [file for file in TEST_BY_TEST if not (ROOT / file).is_file()] == []
