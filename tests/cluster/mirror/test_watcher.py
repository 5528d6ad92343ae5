"""Parts of the watcher that need neither a cluster nor a separate process."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
import pytest
import redis
from django.db import connection

from cluster.mirror import tables
from cluster.mirror.records.kinds import KINDS
from cluster.mirror.watch import NoteType, WatchLimits, WatchNote
from cluster.mirror.watcher import BATCH, PageHints, Watcher, _item, _Run
from cluster.models import Cluster
from portal.core import hints
from tests.cluster.mirror.scripted_api import pod
from tests.plugin import process_environment
from tests.support.threads import in_threads
from tests.support.waiting import wait_until


def test_an_object_that_cannot_be_read_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    good = _item(WatchNote(KINDS["Pod"], NoteType.SEEN, "3", pod("a", 3)))
    assert good is not None
    note, seen = good
    assert seen is not None
    assert (note.raw, seen.name) == (None, "a")

    odd: dict[str, Any] = pod("odd", 4)
    odd["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "a few"}}
    assert _item(WatchNote(KINDS["Pod"], NoteType.SEEN, "4", odd)) is None
    assert "record_failed" in caplog.text


def test_what_carries_no_object_is_passed_on() -> None:
    note = WatchNote(KINDS["Pod"], NoteType.HEARD, "7")
    assert _item(note) == (note, None)


class Silent:
    """A source that cannot be reached."""

    def __getattr__(self, _name: str) -> Any:
        raise OSError("nobody there")


def test_what_follows_a_batch_soon_is_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    run, is_over = _Run(Silent(), WatchLimits(), []), threading.Event()
    item = _item(WatchNote(KINDS["Pod"], NoteType.SEEN, "3", pod("a", 3)))
    waited_s: list[float] = []

    def meanwhile(seconds: float) -> bool:
        waited_s.append(seconds)
        return seconds > 0 and run._put(item)

    run.end()
    # The other threads of the run wait for the one that it had.
    monkeypatch.setattr(is_over, "wait", meanwhile)
    monkeypatch.setattr(run, "_is_over", is_over)
    run._put(item)
    assert len(run.take(1, not_before=time.monotonic())) == 1
    run._put(item)
    assert len(run.take(1, not_before=time.monotonic() + 50)) == 2
    assert [round(seconds / 50) for seconds in waited_s] == [0, 1]
    for _ in range(BATCH + 1):
        run._put(item)
    assert len(run.take(1, not_before=time.monotonic() + 50)) == BATCH
    assert len(waited_s) == 2


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_broke_while_news_were_told_is_not_replaced_unseen(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The lock is lost with the connection: a watcher that continued would write beside another watcher."""
    watcher = Watcher(cluster, Silent())

    def breaks(_cluster_id: int) -> None:
        watcher.stop()
        with connection.cursor() as cursor, psycopg.connect(process_environment()["DATABASE_URL"]) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
            cursor.execute("SELECT 1")

    monkeypatch.setattr(tables, "take_news", breaks)
    in_threads(1, watcher.run)
    assert "news_delayed" in caplog.text
    assert "database_lost" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_watcher_that_hung_in_a_transaction_begins_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """PostgreSQL ends its session with another class of error than that of a lost connection."""
    watcher = Watcher(cluster, Silent())

    def hangs(_cluster_id: int) -> None:
        watcher.stop()
        url, pid = process_environment()["DATABASE_URL"], connection.connection.info.backend_pid
        with connection.cursor() as cursor, psycopg.connect(url, autocommit=True) as other:
            cursor.execute("SET idle_in_transaction_session_timeout = '10ms'")
            wait_until(lambda: not other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchall())
            cursor.execute("SELECT 1")

    monkeypatch.setattr(tables, "take_news", hangs)
    in_threads(1, watcher.run)
    assert "database_lost" in caplog.text


def test_pages_are_hinted_once_a_batch_however_many_rows_changed(unique: str) -> None:
    """The channels are unique: unlike keys, Redis does not separate subscriptions by database."""
    one, other = f"team-{unique}", f"cluster-{unique}"
    with hints.redis_connection().pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(hints.channel_name(one), hints.channel_name(other))
        pages = PageHints()
        pages.send({one})
        pages.send({one, other})
        pages.start()
        heard = []
        deadline = time.monotonic() + 10
        while len(heard) < 2 and time.monotonic() < deadline:
            message = listener.get_message(timeout=0.5)
            if message:
                heard.append(message["channel"].decode())
        pages.stop()
    assert sorted(heard) == [hints.channel_name(other), hints.channel_name(one)]


def test_a_redis_that_was_gone_costs_one_hint_and_not_the_thread(monkeypatch: pytest.MonkeyPatch, unique: str) -> None:
    lost, received = f"lost-{unique}", f"received-{unique}"
    working = hints.redis_connection()
    tried = threading.Event()

    def nobody() -> redis.Redis:
        tried.set()
        monkeypatch.setattr(hints, "redis_connection", lambda: working)
        raise redis.ConnectionError("nobody there")

    with working.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(hints.channel_name(received))
        monkeypatch.setattr(hints, "redis_connection", nobody)
        pages = PageHints()
        pages.start()
        pages.send({lost})
        assert tried.wait(10)
        pages.send({received})
        deadline = time.monotonic() + 10
        heard = None
        while heard is None and time.monotonic() < deadline:
            heard = listener.get_message(timeout=0.5)
        pages.stop()
    assert heard is not None
    assert heard["channel"].decode() == hints.channel_name(received)
