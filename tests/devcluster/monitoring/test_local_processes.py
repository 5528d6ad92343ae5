"""The processor time of notebooks, read from processes of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from devcluster.monitoring import local_processes
from devcluster.monitoring.local_processes import ProcessorUse
from devcluster.notebooks.container import MARK
from tests.support.waiting import wait_until

COMPUTES, WAITS = "while True: pass", "import time; time.sleep(600)"


@pytest.fixture
def processes(unique: str) -> Iterator[str]:
    """One that computes and one that waits, marked as the runner does with `UNIQUE-busy` and `UNIQUE-idle`."""
    started = [
        subprocess.Popen([sys.executable, "-c", code], env={**os.environ, MARK: f"/data|{unique}-{kind}"})
        for kind, code in (("busy", COMPUTES), ("idle", WAITS))
    ]
    yield unique
    for process in started:
        process.kill()
        process.wait()


def test_who_computes_uses_a_core_and_who_waits_uses_none(processes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "LEAST_S", 0.5)
    use = ProcessorUse()
    # On a busy machine a process gets only a part of a core.
    busy = wait_until(lambda: use.cores().get(f"{processes}-busy", 0.0))
    assert 0.05 < busy < 1.2
    assert use.cores()[f"{processes}-idle"] < 0.05
    assert ProcessorUse().cores()[f"{processes}-busy"] == 0.0, "the first sample does not know since when"


def test_two_looks_at_once_are_one(processes: str) -> None:
    use = ProcessorUse()
    assert use.cores() is use.cores()
