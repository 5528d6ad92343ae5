"""Streams: rendered once for all, only what changed is sent, and closed when the right to watch is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Hashable
from typing import Any

import pytest
import pytest_asyncio
import structlog
from django.conf import settings
from redis.asyncio.client import PubSub

from devcluster.faults.tcp_proxy import TcpProxy
from portal.live import backpressure, broadcaster
from portal.live.broadcaster import Broadcaster
from portal.live.sse import server_sent_event
from portal.live.types import Topic
from portal.live.viewers import Viewer
from tests.portal.live.browser import PATIENCE_S, TEAM_A, TEAM_B, A, B, Browser, Desk, Rendered, event_of, hint, until

pytestmark = pytest.mark.asyncio


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest_asyncio.fixture
async def streams(desk: Desk) -> AsyncIterator[Broadcaster]:
    found = desk.live()
    await found.start()
    async with asyncio.timeout(PATIENCE_S):
        await found.listening.wait()
    yield found
    await found.stop()


async def test_a_viewer_gets_the_state_at_once_and_then_each_change(streams: Broadcaster, desk: Desk) -> None:
    alice = Browser(streams, TEAM_A, "alice")
    assert await alice.next() == event_of("<p>0</p>")
    desk.shown[A] = {"state_runs": b"<p>1</p>", "state_waits": b"<p>none</p>"}
    await hint(A)
    assert await alice.next() == event_of("<p>1</p>") + server_sent_event("state_waits", b"<p>none</p>")
    desk.shown[A] = {"state_runs": b"<p>1</p>", "state_waits": b"<p>one</p>"}
    await hint(A)
    assert await alice.next() == server_sent_event("state_waits", b"<p>one</p>")
    await alice.leave()


async def test_who_waits_for_any_channel_is_woken_by_each(
    streams: Broadcaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    tell = streams._hint

    def of_this_test(channel: str) -> None:
        """Without the hints of other tests on the same Redis, which wake this viewer just as well."""
        if channel in (A, B):
            heard.append(channel)
            tell(channel)

    monkeypatch.setattr(streams, "_hint", of_this_test)
    for channel in (A, B):
        waiting = asyncio.create_task(streams.changed(broadcaster.ANY_CHANNEL, Viewer("feed"), within_s=PATIENCE_S * 2))
        await until(lambda: broadcaster.ANY_CHANNEL in streams._waiting)
        assert not waiting.done()
        await hint(channel)
        async with asyncio.timeout(PATIENCE_S):
            await waiting
    assert heard == [A, B]


async def test_many_viewers_cost_one_rendering(streams: Broadcaster, desk: Desk) -> None:
    everybody = [Browser(streams, TEAM_A, number) for number in range(50)]
    for browser in everybody:
        await browser.next()
    before = desk.rendered
    desk.shown[A] = {"state_runs": b"<p>1</p>"}
    await hint(A)
    assert {await browser.next() for browser in everybody} == {event_of("<p>1</p>")}
    assert desk.rendered - before == 1
    for browser in everybody:
        await browser.leave()


async def test_views_of_a_channel_are_rendered_together_and_shown_as_they_come(
    streams: Broadcaster, desk: Desk
) -> None:
    asked: list[tuple[str, list[str]]] = []
    go_on = threading.Event()

    def render(channel: str, views: Collection[str]) -> Rendered:
        asked.append((channel, list(views)))
        for view in views:
            yield view, {"state_runs": f"<p>{view} runs</p>".encode()}
        go_on.wait(PATIENCE_S)
        for view in views:
            yield view, {"state_late": b"<p>late</p>"}
        return 2

    home, run = Browser(streams, TEAM_A, "alice"), Browser(streams, Topic(A, "one"), "bob")
    assert {await home.next(), await run.next()} == {event_of("<p>0</p>")}
    streams._render = render
    await hint(A)
    assert (await home.next(), await run.next()) == (event_of("<p> runs</p>"), event_of("<p>one runs</p>"))
    go_on.set()
    assert {await home.next(), await run.next()} == {server_sent_event("state_late", b"<p>late</p>")}
    assert asked == [(A, ["", "one"])]
    await home.leave()
    await run.leave()


async def test_nobody_gets_another_teams_bytes(streams: Broadcaster, desk: Desk) -> None:
    alice, charlie = Browser(streams, TEAM_A, "alice"), Browser(streams, TEAM_B, "charlie")
    assert await alice.next() == event_of("<p>0</p>")
    assert await charlie.next() == event_of("<p>b</p>")
    desk.shown[A] = {"state_runs": b"<p>canary</p>"}
    await hint(A)
    assert await alice.next() == event_of("<p>canary</p>")
    desk.shown[B] = {"state_runs": b"<p>b2</p>"}
    await hint(B)
    assert await charlie.next() == event_of("<p>b2</p>")
    await alice.leave()
    await charlie.leave()


async def test_who_loses_the_right_is_closed_by_the_next_check(streams: Broadcaster, desk: Desk) -> None:
    alice, bob = Browser(streams, TEAM_A, "alice"), Browser(streams, TEAM_A, "bob")
    await alice.next()
    await bob.next()
    desk.barred = {"bob"}
    await streams.check_access()
    async with asyncio.timeout(PATIENCE_S):
        await bob.task
    assert not alice.task.done()
    await alice.leave()


async def test_a_lost_right_ends_a_stream_within_five_seconds() -> None:
    """The check itself takes a moment, and so does cutting off a client that does not read."""
    assert broadcaster.ACCESS_CHECK_S + backpressure.FAREWELL_S <= 4


async def test_the_check_does_not_wait_for_renderings(streams: Broadcaster, desk: Desk) -> None:
    release = threading.Event()

    def render(channel: str, views: Collection[str]) -> Rendered:
        release.wait(PATIENCE_S)
        return (yield from desk.render(channel, views))

    alice, bob = Browser(streams, TEAM_A, "alice"), Browser(streams, TEAM_A, "bob")
    await alice.next()
    await bob.next()
    streams._render = render
    others = [Browser(streams, Topic(f"team-{number}"), number) for number in range(20)]
    try:
        desk.barred = {"bob"}
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S / 2):
            await streams.check_access()
            await bob.task
        assert not alice.task.done()
    finally:
        release.set()
    for browser in (alice, *others):
        await browser.leave()


async def test_who_loses_the_right_is_cut_off_even_if_it_does_not_read(
    streams: Broadcaster, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backpressure, "FAREWELL_S", 0.05)
    started = asyncio.Event()

    async def never_taken(message: dict[str, Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    async def stays() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    task = asyncio.create_task(streams.stream(stays, never_taken, topics=[TEAM_A], credential="bob"))  # type: ignore[arg-type]
    await started.wait()
    desk.barred = {"bob"}
    await streams.check_access()
    async with asyncio.timeout(PATIENCE_S):
        await task
    assert (streams._topics, streams._viewers) == ({}, set())


async def test_when_nobody_can_say_who_may_watch_streams_end(streams: Broadcaster, desk: Desk) -> None:
    def away(credentials: Collection[Hashable]) -> set[Hashable]:
        raise ConnectionError("the database is away")

    alice = Browser(streams, TEAM_A, "alice")
    await alice.next()
    streams._allowed = away
    for _ in range(broadcaster.UNCHECKED_LIMIT - 1):
        await streams.check_access()
    assert not alice.task.done()
    await streams.check_access()
    async with asyncio.timeout(PATIENCE_S):
        await alice.task


async def test_what_is_gone_ends_the_stream(streams: Broadcaster, desk: Desk) -> None:
    alice = Browser(streams, TEAM_A, "alice")
    await alice.next()
    del desk.shown[A]
    await hint(A)
    async with asyncio.timeout(PATIENCE_S):
        await alice.task


async def test_a_rendering_that_fails_is_tried_again(
    streams: Broadcaster, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcaster, "RETRY_S", 0.01)
    failures = iter([ConnectionError("the database is away")])

    def render(channel: str, views: Collection[str]) -> Rendered:
        for error in failures:
            raise error
        return (yield from desk.render(channel, views))

    streams._render = render
    alice = Browser(streams, TEAM_A, "alice")
    assert await alice.next() == event_of("<p>0</p>")
    await alice.leave()


async def test_abandoned_connections_leave_nothing_behind(streams: Broadcaster) -> None:
    browsers = [Browser(streams, TEAM_A, number) for number in range(20)]
    for browser in browsers:
        await browser.next()
    for browser in browsers:
        await browser.leave()
    assert (streams._topics, streams._viewers) == ({}, set())


async def test_waiting_returns_at_a_hint_or_when_the_time_is_over(streams: Broadcaster) -> None:
    viewer = Viewer("alice")
    waiting = asyncio.create_task(streams.changed(A, viewer, within_s=2 * PATIENCE_S))
    await until(lambda: A in streams._waiting)
    await hint(A)
    async with asyncio.timeout(PATIENCE_S):
        await waiting
    async with asyncio.timeout(PATIENCE_S):
        await streams.changed(A, viewer, within_s=0.05)
    assert streams._waiting == {}


async def test_who_has_to_go_waits_no_longer(streams: Broadcaster) -> None:
    viewer = Viewer("alice")
    waiting = asyncio.create_task(streams.changed(A, viewer, within_s=2 * PATIENCE_S))
    await until(lambda: A in streams._waiting)
    viewer.close()
    async with asyncio.timeout(PATIENCE_S):
        await waiting
        await streams.changed(A, viewer, within_s=2 * PATIENCE_S)
    assert streams._waiting == {}


async def test_every_line_of_a_fragment_is_a_line_of_data() -> None:
    assert server_sent_event("state_runs", b"<p>\n1\n</p>") == b"event: state_runs\ndata: <p>\ndata: 1\ndata: </p>\n\n"


async def test_what_a_thread_logs_names_the_request_that_it_is_for(streams: Broadcaster) -> None:
    """And nothing of it stays in the thread for the next."""

    def in_thread() -> dict[str, Any]:
        found = structlog.contextvars.get_contextvars()
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(user_id=7)
        return found

    for request_id in ("request-0001", "request-0002"):
        structlog.contextvars.bind_contextvars(request_id=request_id)
        told = await asyncio.gather(*(streams.in_thread(in_thread) for _ in range(8)))
        assert told == [{"request_id": request_id}] * 8
    structlog.contextvars.clear_contextvars()
    assert await streams.in_thread(in_thread) == {}


async def test_a_redis_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel still answers. A subscription without news looks alike, so it is tested."""
    monkeypatch.setattr(broadcaster, "KEEPALIVE_S", 0.2)
    monkeypatch.setattr(broadcaster, "ANSWER_S", 0.2)
    tests = 0

    async def ping(subscription: PubSub) -> None:
        nonlocal tests
        tests += 1
        await subscription.execute_command("PING")

    monkeypatch.setattr(PubSub, "ping", ping)
    desk = Desk()
    with TcpProxy.of(settings.REDIS_URL) as proxy:
        streams = Broadcaster(redis_url=proxy.url, render=desk.render, allowed=desk.allowed, versions=desk.versions_of)
        await streams.start()
        try:
            await until(streams.listening.is_set)
            await until(lambda: tests > 2)
            assert streams.listening.is_set(), "one that answers is kept"
            proxy.pause()
            await until(lambda: not streams.listening.is_set())
        finally:
            await streams.stop()
