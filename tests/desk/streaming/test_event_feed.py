"""The stream of events, in this process: order, rights, and what an idle stream costs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from accounts.core.actor import Actor
from accounts.events import stream
from accounts.events.actions import record
from accounts.models import Event, Role, User
from desk.streaming import event_feed
from desk.streaming.event_feed import EventFeed, Watch
from portal.core.errors import Refused
from portal.live.broadcaster import Broadcaster
from portal.live.viewers import Viewer
from tenants.models import Membership, Tenant
from tests.support.rows import make
from workloads.gateway.followers import OF_PERSON_MAX

PATIENCE_S = 20.0


def happens(by: User, team: str) -> Event:
    with transaction.atomic():
        return record(Actor(by, "page"), "member.added", by, tenant=team)


def live() -> Broadcaster:
    """Not started: only its threads are used."""
    unused: Any = None
    return Broadcaster(redis_url="redis://unused", render=unused, allowed=unused, versions=unused)


class Program:
    """Reads a stream of the feed."""

    def __init__(self, feed: EventFeed, watch: Watch) -> None:
        self.sent: list[bytes] = []
        self._gone = asyncio.Event()
        follow = feed.follow(self._receive, self._send, watch=watch, credential="program", headers=[])
        self.task = asyncio.create_task(follow)

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message.get("body", b""))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.sleep(0.01)

    async def leave(self) -> None:
        self._gone.set()
        await self.task


# ---- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_an_event_waits_for_those_before_it_that_are_not_committed(alice: User) -> None:
    """Otherwise a program that has the later one would resume after it, and never get the earlier one."""
    has_id, commits = threading.Event(), threading.Event()

    def slow() -> None:
        try:
            with transaction.atomic():
                record(Actor(alice, "page"), "member.added", alice, tenant="team-a")
                has_id.set()
                commits.wait(PATIENCE_S)
        finally:
            connection.close()

    writer = threading.Thread(target=slow)
    writer.start()
    assert has_id.wait(PATIENCE_S)
    later = happens(alice, "team-a")

    async def look() -> tuple[int | None, int | None]:
        feed = EventFeed(live())
        feed._viewers[Viewer("program")] = ""
        looking = asyncio.create_task(feed._look())
        for _ in range(3):
            await feed._live.in_thread(stream.unfinished_writers)
        unsettled = feed._settled
        commits.set()
        await asyncio.wait_for(looking, PATIENCE_S)
        return unsettled, feed._settled

    try:
        unsettled, settled = asyncio.run(look())
    finally:
        commits.set()
        writer.join()
    assert (unsettled, settled) == (None, later.pk)
    found = stream.EventReader(Actor(alice, "page"), ["team-a"]).page(after=0, until=later.pk)
    assert found.text.count(b"id: ") == 2


@pytest.mark.django_db
def test_pages_are_bounded_and_go_on_where_the_last_one_ended(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PAGE", 2)
    found = [happens(alice, "team-a"), happens(bob, "team-b"), happens(alice, "team-a"), happens(alice, "team-a")]
    reader = stream.EventReader(Actor(alice, "page"), ["team-a"])
    until = happens(bob, "team-b").pk
    one = reader.page(after=0, until=until)
    two = reader.page(after=one.last, until=until)
    assert (one.last, one.is_full, two.last, two.is_full) == (found[2].pk, True, until, False)
    assert [part.count(b"event: event") for part in (one.text, two.text)] == [2, 1]
    # A process that is behind the one before never goes back.
    assert reader.page(after=until, until=until - 3).last == until


# ---- rights ----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_is_sent_is_what_may_be_seen_when_it_is_read(team_a: Tenant, alice: User) -> None:
    nora = make.user("Nora", roles=[Role.OPERATOR])
    by = Actor(User.objects.get(pk=nora.pk), "token x")
    before = stream.newest_id()
    newest = happens(alice, "team-a").pk

    def read(watch: Watch) -> stream.EventPage | None:
        return event_feed._read(watch, before, newest)

    everything, team = Watch(by, "", None), Watch(by, "team-a", None)
    for watch in (everything, team):
        page = read(watch)
        assert page is not None
        assert b'"verb":"member.added"' in page.text
    # The role is gone while the stream is open: nothing of the team is sent, and the stream of the team ends.
    User.objects.filter(pk=nora.pk).update(roles=[])
    assert read(everything) == stream.EventPage(b"", newest)
    assert read(team) is None
    make.member(team_a, nora, Membership.Role.MEMBER)
    assert read(team) is not None
    User.objects.filter(pk=nora.pk).update(is_active=False)
    assert read(everything) is None


@pytest.mark.django_db
def test_a_teams_token_shows_its_team_alone(team_a: Tenant, alice: User) -> None:
    before = stream.newest_id()
    own, other = happens(alice, "team-a"), happens(alice, "team-b")
    by = Actor(alice, "token x", confined_to="team-a")
    page = event_feed._read(Watch(by, "", None), before, other.pk)
    assert page is not None
    assert page.text.count(b"event: event") == 1
    assert b"id: %d\n" % own.pk in page.text


# ---- limits, and the cost of nothing ---------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_an_idle_stream_sends_heartbeats_and_reads_nothing(
    team_a: Tenant, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 15 <= event_feed.KEEPALIVE_S <= 20
    monkeypatch.setattr(event_feed, "KEEPALIVE_S", 0.02)
    monkeypatch.setattr(event_feed, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(event_feed, "LOOK_PAUSE_S", 0.0)
    reads: list[str] = []
    read = event_feed._read
    monkeypatch.setattr(event_feed, "_read", lambda watch, *ids: reads.append(watch.team) or read(watch, *ids))

    async def idle() -> None:
        feed = EventFeed(live())
        program = Program(feed, Watch(Actor(alice, "token x"), "team-a", None))
        await program.until(lambda: len(reads) == 1)
        begun = program.sent.count(b":\n\n")
        await program.until(lambda: program.sent.count(b":\n\n") >= begun + 3)
        await asyncio.to_thread(in_thread, happens, bob, "team-b")
        await program.until(lambda: feed._settled == newest())
        beats = program.sent.count(b":\n\n")
        await program.until(lambda: program.sent.count(b":\n\n") >= beats + 3)
        assert len(reads) == 1
        await asyncio.to_thread(in_thread, happens, bob, "team-a")
        await program.until(lambda: b"event: event" in b"".join(program.sent))
        assert len(reads) == 2
        await program.leave()
        # The one task of the process ends with the last stream.
        await program.until(lambda: feed._looking is None)

    known = [0]

    def newest() -> int:
        return known[0]

    def in_thread(act: Callable[..., Event], *arguments: Any) -> None:
        try:
            known[0] = act(*arguments).pk
        finally:
            connection.close()

    asyncio.run(idle())


@pytest.mark.django_db(transaction=True)
def test_a_person_has_a_limit(team_a: Tenant, alice: User, bob: User) -> None:
    async def open_many() -> None:
        feed = EventFeed(live())
        programs = [Program(feed, Watch(Actor(alice, "token x"), "", None)) for _ in range(OF_PERSON_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refused:
            await Program(feed, Watch(Actor(alice, "token y"), "", None)).task
        assert (refused.value.code, refused.value.refusal.status) == ("too_many_open", 429)
        assert "event streams" in refused.value.refusal.message
        programs.append(Program(feed, Watch(Actor(bob, "token z"), "", None)))
        for program in programs:
            await program.until(lambda program=program: b"retry: " in b"".join(program.sent))  # type: ignore[misc]
            await program.leave()

    asyncio.run(open_many())
