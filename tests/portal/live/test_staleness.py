"""Which fragments the comparison of versions renders again: those whose hint was lost, and no others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Hashable

import pytest
import pytest_asyncio

from portal.live import broadcaster
from portal.live.broadcaster import Broadcaster
from portal.live.types import Topic
from tests.portal.live.browser import PATIENCE_S, TEAM_A, TEAM_B, A, B, Browser, Desk, Rendered, event_of, hint, until

pytestmark = pytest.mark.asyncio
ONE = Topic(A, "one")


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


async def compared(streams: Broadcaster, desk: Desk) -> int:
    """How often the comparison had something rendered."""
    await rest(streams)
    before = desk.rendered
    await streams.compare()
    await rest(streams)
    return desk.rendered - before


async def rest(streams: Broadcaster) -> None:
    await until(lambda: not streams._rendering)


def change(desk: Desk, number: int) -> None:
    desk.shown[A] = {"state_runs": f"<p>{number}</p>".encode()}
    desk.versions[A] = number


async def opened(streams: Broadcaster, desk: Desk, *topics: Topic) -> list[Browser]:
    """And compared once: several pages of one team may have been rendered one by one."""
    found = [Browser(streams, topic, number) for number, topic in enumerate(topics)]
    for browser in found:
        await browser.next()
    await compared(streams, desk)
    return found


async def leave(browsers: Collection[Browser]) -> None:
    for browser in browsers:
        await browser.leave()


async def test_a_lost_hint_is_found(streams: Broadcaster, desk: Desk) -> None:
    [alice] = await opened(streams, desk, TEAM_A)
    change(desk, 2)
    assert await compared(streams, desk) == 1
    assert await alice.next() == event_of("<p>2</p>")
    assert await compared(streams, desk) == 0
    await alice.leave()


async def test_what_was_hinted_and_rendered_is_left_alone(streams: Broadcaster, desk: Desk) -> None:
    browsers = await opened(streams, desk, TEAM_A, ONE)
    change(desk, 2)
    await hint(A)
    for browser in browsers:
        assert await browser.next() == event_of("<p>2</p>")
    assert await compared(streams, desk) == 0
    await leave(browsers)


async def test_what_no_hint_tells_is_found_beside_what_was_hinted(streams: Broadcaster, desk: Desk) -> None:
    browsers = await opened(streams, desk, TEAM_A, TEAM_B)
    change(desk, 2)
    await hint(A)
    assert await browsers[0].next() == event_of("<p>2</p>")
    desk.around[B] = "others borrow"
    assert await compared(streams, desk) == 1
    assert await compared(streams, desk) == 0
    await leave(browsers)


async def test_what_came_and_went_between_two_comparisons_is_found(streams: Broadcaster, desk: Desk) -> None:
    """The page was rendered while it was otherwise."""
    desk.around[A] = "nobody watches the cluster"
    [alice] = await opened(streams, desk, TEAM_A)
    desk.around[A] = "all is well"
    change(desk, 2)
    await hint(A)
    assert await alice.next() == event_of("<p>2</p>")
    await rest(streams)
    desk.around[A] = "nobody watches the cluster"
    assert await compared(streams, desk) == 1
    await alice.leave()


async def test_a_change_while_it_is_rendered_is_found(streams: Broadcaster, desk: Desk) -> None:
    """The change comes after the page was read, and its hint is lost."""
    [alice] = await opened(streams, desk, TEAM_A)
    ordinary = streams._render

    def render(channel: str, views: Collection[str]) -> Rendered:
        version = yield from ordinary(channel, views)
        change(desk, 3)
        return version

    streams._render = render
    change(desk, 2)
    await hint(A)
    assert await alice.next() == event_of("<p>2</p>")
    streams._render = ordinary
    assert await compared(streams, desk) == 1
    assert await alice.next() == event_of("<p>3</p>")
    assert await compared(streams, desk) == 0
    await alice.leave()


async def test_a_rendering_of_some_of_it_does_not_count(streams: Broadcaster, desk: Desk) -> None:
    """Somebody opens another page of it after a lost hint: theirs is new, the others' are not."""
    [alice] = await opened(streams, desk, TEAM_A)
    change(desk, 2)
    bob = Browser(streams, ONE, "bob")
    assert await bob.next() == event_of("<p>2</p>")
    assert await compared(streams, desk) == 1
    assert await alice.next() == event_of("<p>2</p>")
    await leave([alice, bob])


async def test_a_rendering_that_failed_does_not_count(
    streams: Broadcaster, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made of it, is made before it fails."""
    monkeypatch.setattr(broadcaster, "RETRY_S", 0.01)
    [alice] = await opened(streams, desk, TEAM_A)
    ordinary, failures = streams._render, iter([ConnectionError("the database is away")])

    def render(channel: str, views: Collection[str]) -> Rendered:
        for error in failures:
            change(desk, 2)
            raise error
        return (yield from ordinary(channel, views))

    streams._render = render
    await hint(A)
    assert await alice.next() == event_of("<p>2</p>")
    assert await compared(streams, desk) == 0
    await alice.leave()


def held(streams: Broadcaster, which: str) -> tuple[threading.Event, threading.Event]:
    """The next rendering of this channel: has begun, may go on."""
    began, go_on, ordinary = threading.Event(), threading.Event(), streams._render

    def render(channel: str, views: Collection[str]) -> Rendered:
        if channel == which and not began.is_set():
            began.set()
            go_on.wait(PATIENCE_S)
        return (yield from ordinary(channel, views))

    streams._render = render
    return began, go_on


async def test_what_is_being_rendered_is_waited_for(streams: Broadcaster, desk: Desk) -> None:
    """Its hint was not lost, and it began before the comparison did."""
    [alice] = await opened(streams, desk, TEAM_A)
    began, go_on = held(streams, A)
    change(desk, 2)
    await hint(A)
    await asyncio.to_thread(began.wait, PATIENCE_S)
    before, asked, found = desk.rendered, [], streams._versions

    def versions(channels: Collection[str]) -> dict[str, Hashable]:
        asked.append(sorted(channels))
        return dict(found(channels))

    streams._versions = versions
    comparing = asyncio.create_task(streams.compare())
    await until(lambda: asked == [[A]])
    await asyncio.sleep(0.05)
    assert not comparing.done()
    go_on.set()
    async with asyncio.timeout(PATIENCE_S):
        await comparing
    await rest(streams)
    assert desk.rendered - before == 1
    assert await alice.next() == event_of("<p>2</p>")
    await alice.leave()


async def test_what_is_rendered_after_it_was_found_is_left_alone(streams: Broadcaster, desk: Desk) -> None:
    """It has seen everything that the comparison found, and something newer."""
    browsers = await opened(streams, desk, TEAM_B, TEAM_A)
    began, go_on = held(streams, B)
    streams._versions = lambda channels: desk.versions_of(sorted(channels, reverse=True))
    before = desk.rendered
    desk.versions[B] = 2
    change(desk, 2)
    comparing = asyncio.create_task(streams.compare())
    await asyncio.to_thread(began.wait, PATIENCE_S)
    change(desk, 3)
    await hint(A)
    assert await browsers[1].next() == event_of("<p>3</p>")
    go_on.set()
    async with asyncio.timeout(PATIENCE_S):
        await comparing
    await rest(streams)
    assert desk.rendered - before == 2
    assert await compared(streams, desk) == 0
    await leave(browsers)


async def test_what_it_found_is_rendered_one_after_the_other(
    streams: Broadcaster, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much that is: hints find threads that are free."""
    monkeypatch.setattr(broadcaster, "PAUSE_S", 0.0)
    channels = [f"team-{number}" for number in range(20)]
    for channel in channels:
        desk.shown[channel], desk.versions[channel] = {"state_runs": b"<p>0</p>"}, 1
    browsers = await opened(streams, desk, *map(Topic, channels))
    most, ordinary = 0, streams._render

    def render(channel: str, views: Collection[str]) -> Rendered:
        nonlocal most
        most = max(most, len(streams._rendering))
        return (yield from ordinary(channel, views))

    streams._render = render
    desk.versions |= dict.fromkeys(channels, 2)
    assert await compared(streams, desk) == len(channels)
    assert most == 1
    await leave(browsers)


async def test_what_nobody_watches_is_forgotten(streams: Broadcaster, desk: Desk) -> None:
    alice, charlie = await opened(streams, desk, TEAM_A, TEAM_B)
    await charlie.leave()
    assert await compared(streams, desk) == 0
    assert streams._compared._read.keys() == {A}
    await alice.leave()
