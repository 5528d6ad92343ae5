"""`run.py test`: how many processes, and what each of them has to itself."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection

from devcluster.cli import testing
from devcluster.processes.supervisor import Supervisor
from tests import plugin


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
