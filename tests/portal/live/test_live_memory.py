"""Memory of open streams: a page is in memory once for all who watch it, and each stream waits with a
SingleWaiterEvent.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from portal.live.broadcaster import Broadcaster
from portal.live.waiter import SingleWaiterEvent
from tests.portal.live.browser import PATIENCE_S, TEAM_A, A, Browser, Desk

pytestmark = pytest.mark.asyncio
MIB = 1 << 20


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest_asyncio.fixture
async def streams(desk: Desk) -> AsyncIterator[Broadcaster]:
    found = desk.live()
    yield found
    await found.stop()


async def test_a_page_is_held_once_however_many_watch_it(streams: Broadcaster, desk: Desk) -> None:
    """20 streams of a page with two fragments of 1 MiB each use less than 6 MiB together."""
    desk.shown[A] = {"state_runs": b"r" * MIB, "state_waits": b"w" * MIB}
    tracemalloc.start()
    try:
        browsers = [Browser(streams, TEAM_A, number) for number in range(20)]
        for browser in browsers:
            assert len(await browser.next()) > 2 * MIB
        await asyncio.sleep(0)
        held, _most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for browser in browsers:
        await browser.leave()
    assert held < 6 * MIB


async def test_a_flag_is_seen_by_who_waits_and_by_who_comes_later() -> None:
    flag = SingleWaiterEvent()
    waiting = asyncio.create_task(flag.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    flag.set()
    flag.set()
    # Cleared before the waiting coroutine has run.
    flag.clear()
    async with asyncio.timeout(PATIENCE_S):
        await waiting
    assert not flag.is_set()
    flag.set()
    async with asyncio.timeout(PATIENCE_S):
        await flag.wait()


async def test_who_gives_up_waiting_leaves_room_for_the_next() -> None:
    flag = SingleWaiterEvent()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await flag.wait()
    flag.set()
    async with asyncio.timeout(PATIENCE_S):
        await flag.wait()
