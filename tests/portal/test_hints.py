"""Hints to a Redis that is away: lost, and nobody waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from devcluster.faults import TcpProxy
from portal import hints


@pytest.fixture
def proxy(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[TcpProxy]:
    """In front of Redis, for a process that has sent nothing yet."""
    with TcpProxy.of(settings.REDIS_URL) as proxy:
        settings.REDIS_URL = settings.CELERY_BROKER_URL = proxy.url
        sender, connection = hints.sender.__wrapped__(), hints.connection.__wrapped__()
        monkeypatch.setattr(hints, "sender", lambda: sender)
        monkeypatch.setattr(hints, "connection", lambda: connection)
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
