"""A worker that takes no messages and a beat that sends none are seen; a Redis that is away restarts nobody."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devcluster.processes.ports import free_port
from portal.celery import app
from portal.ops import liveness as module
from portal.ops.liveness import SILENT_S, Liveness
from tests.plugin import process_environment
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def test_a_process_without_signs_is_alive(clock: Clock) -> None:
    found = Liveness()
    clock.now += 10 * SILENT_S
    assert found.probe() == (200, "alive\n")


def test_signs_keep_it_alive_and_silence_does_not(clock: Clock) -> None:
    found = Liveness()
    found.expect_signs(lambda: None)
    for _ in range(20):
        assert found.probe()[0] == 200
        clock.now += SILENT_S - 1
        found.sign()
    assert found.probe()[0] == 200
    clock.now += SILENT_S + 1
    assert found.probe() == (503, f"No message for {SILENT_S + 1:.0f} s, although Redis answers.\n")
    found.sign()
    assert found.probe()[0] == 200


def test_nobody_asked_for_long_is_not_silence(clock: Clock) -> None:
    found = Liveness()
    found.expect_signs(lambda: None)
    clock.now += 10 * SILENT_S
    assert found.probe()[0] == 200


def test_a_redis_that_is_away_restarts_nobody_and_the_count_begins_again(clock: Clock) -> None:
    found = Liveness()
    is_away = False

    def ask() -> None:
        if is_away:
            raise OSError("refused")

    found.expect_signs(ask)
    found.probe()
    clock.now += SILENT_S - 1
    is_away = True
    for _ in range(5):
        assert found.probe()[0] == 200
        clock.now += SILENT_S
    is_away = False
    assert found.probe()[0] == 200
    clock.now += SILENT_S + 1
    assert found.probe()[0] == 503


@contextmanager
def running(*arguments: str, silent_s: int, directory: Path, before: str = "", **variables: str) -> Iterator[Running]:
    """Celery, as in deploy/, with less patience and after the code `before`."""
    port = free_port()
    env = {**process_environment(), "INTERNAL_PORT": str(port), **variables}
    start = f"""
from celery.__main__ import main
from portal.ops import liveness
liveness.SILENT_S = {silent_s}
{before}
main()
"""
    log_path = directory / "log"
    with log_path.open("wb") as log:
        argv = [sys.executable, "-c", start, "-A", "portal", *arguments]
        process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=log, stderr=log)
        try:
            yield Running(port, process.pid, log_path)
        finally:
            process.terminate()
            process.wait(60)


@dataclass
class Running:
    port: int
    pid: int
    log: Path

    def livez(self) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/livez", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def comes_to(self, status: int) -> None:
        wait_until(lambda: self.livez() == status, within_s=60, what=f"/livez {status}", story=self.log.read_text)

    def stays_alive(self, for_s: float) -> None:
        until = time.monotonic() + for_s
        wait_until(lambda: self.livez() != 200 or time.monotonic() > until, within_s=60)
        assert self.livez() == 200, self.log.read_text()


def test_a_worker_that_no_longer_consumes(services: dict[str, Any], tmp_path: Path, unique: str) -> None:
    name = f"w-{unique}@here"
    arguments = ["worker", "-P", "prefork", "-c", "1", "-Q", f"none-{unique}", "-n", name]
    arguments += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    kubeconfig = services["kubeconfigs"]["worker"]
    with running(*arguments, silent_s=10, directory=tmp_path, PORTAL_KUBECONFIG=kubeconfig) as worker:
        worker.comes_to(200)
        worker.stays_alive(12)
        own_queue = f"{name}.{worker.pid}"
        app.control.cancel_consumer(own_queue, destination=[name])
        worker.comes_to(503)
        app.control.add_consumer(own_queue, destination=[name])
        worker.comes_to(200)


def test_a_beat_that_sends(tmp_path: Path) -> None:
    with running("beat", silent_s=15, directory=tmp_path, BEAT_SCHEDULE_FILE=str(tmp_path / "beat")) as beat:
        beat.comes_to(200)
        beat.stays_alive(17)


def test_a_beat_that_hangs(tmp_path: Path) -> None:
    hangs = (
        "import celery.beat, threading; celery.beat.Scheduler.apply_entry = lambda *_, **__: threading.Event().wait()"
    )
    file = str(tmp_path / "beat")
    with running("beat", silent_s=2, directory=tmp_path, before=hangs, BEAT_SCHEDULE_FILE=file) as beat:
        beat.comes_to(503)
