"""Hints to an unreachable Redis are lost, and no caller waits for them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import LazySettings, settings

from devcluster.faults.tcp_proxy import TcpProxy
from portal.core import hints


@pytest.fixture
def proxy(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[TcpProxy]:
    """In front of Redis, for a process that has sent nothing yet."""
    with TcpProxy.of(settings.REDIS_URL) as proxy:
        settings.REDIS_URL = settings.CELERY_BROKER_URL = proxy.url
        sender, connection = hints.celery_sender.__wrapped__(), hints.redis_connection.__wrapped__()
        monkeypatch.setattr(hints, "celery_sender", lambda: sender)
        monkeypatch.setattr(hints, "redis_connection", lambda: connection)
        yield proxy


@pytest.mark.parametrize("how", ["refuse", "pause"])
def test_a_hint_that_cannot_be_sent_costs_a_second_at_most(proxy: TcpProxy, how: str) -> None:
    """A person's click waits for it: a broker's library tries for seconds to connect unless it is told not to."""
    getattr(proxy, how)()
    costs = []

    for send in (
        lambda: hints._send_worker_hint("workloads.workload", hints.PEOPLE),
        lambda: hints._send_page_hint("a"),
    ):
        started = time.monotonic()
        send()
        costs.append(time.monotonic() - started)

    assert max(costs) < 2


def test_a_hint_that_nobody_takes_ends(unique: str) -> None:
    """A worker that was away does not begin with the hints of a night."""
    hints._send_worker_hint("workloads.workload", unique)
    [message] = hints.redis_connection().lrange(unique, 0, -1)
    hints.redis_connection().delete(unique)
    ends = datetime.fromisoformat(json.loads(message)["headers"]["expires"])
    assert timedelta(seconds=50) < ends - datetime.now(UTC) < timedelta(seconds=70)
    assert [name for name, one in settings.CELERY_BEAT_SCHEDULE.items() if not one["options"].get("expires")] == []


def test_threads_that_come_together_get_the_same_one() -> None:
    """A web process that has just begun is asked by several at once: a client of their own would close under them."""
    threads = 8
    together, inside, made = threading.Barrier(threads), threading.Barrier(2), []

    @hints.per_process
    def one() -> object:
        with suppress(threading.BrokenBarrierError):
            inside.wait(0.5)  # for another one that comes in; none does
        made.append(object())
        return made[-1]

    def ask(_number: int) -> object:
        together.wait()
        return one()

    with ThreadPoolExecutor(threads) as executor:
        got = set(executor.map(ask, range(threads)))

    assert got == set(made)
    assert len(made) == 1
