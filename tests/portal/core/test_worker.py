"""The worker's connections: to the database between tasks, and to Redis while it waits."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

import pytest
from celery.fixups.django import DjangoWorkerFixup
from django.db import connection

from portal.celery import Scheduler, app


@pytest.mark.django_db(transaction=True)
def test_celery_leaves_the_connection_open_between_tasks() -> None:
    """It calls this before and after every task, and closes whatever Django's settings say unless it is told not to."""
    connection.ensure_connection()
    kept = connection.connection

    DjangoWorkerFixup(app).close_database()

    assert connection.connection is kept
    assert not kept.closed


def test_beat_sends_at_once_after_its_clock_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a restart, which reads from its file when each was sent last."""
    sent: list[str] = []
    monkeypatch.setattr(Scheduler, "apply_entry", lambda _self, entry, **_: sent.append(entry.name))
    scheduler = Scheduler(app, schedule_filename=str(tmp_path / "beat"), lazy=True)
    scheduler.setup_schedule()
    for entry in scheduler.schedule.values():
        entry.last_run_at = entry.default_now() + timedelta(hours=1)

    while scheduler.tick() == 0:
        pass

    assert sorted(sent) == sorted(scheduler.schedule)
    assert scheduler.tick() > 0
    scheduler.close()


def test_a_worker_that_waits_sees_that_the_host_of_redis_vanished() -> None:
    """It waits without a time-out, so only the kernel can tell."""
    with app.connection_for_read() as broker:
        pool = broker.default_channel.client.connection_pool
        connection = pool.get_connection()
        ours = connection._sock
        idle, interval, count = (
            ours.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert idle + interval * count < 30
        pool.release(connection)
