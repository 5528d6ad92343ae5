"""Thousands of people who connect at once are rendered together."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable
from threading import Event

import pytest

from portal.live import together
from portal.live.broadcaster import Broadcaster
from portal.live.types import Fragments, Topic
from tests.portal.live.browser import Browser, Desk, until

PEOPLE = [f"person-{number}" for number in range(50)]


class _Office(Desk):
    """A desk that also knows people. `calls`: the channels of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[set[str]] = []
        self.fails = 0
        self.may_go_on = Event()

    def people(self, channels: Collection[str]) -> dict[str, tuple[Fragments, Hashable]]:
        self.calls.append(set(channels))
        self.may_go_on.wait(10)
        if self.fails:
            self.fails -= 1
            raise RuntimeError("no database")
        return {channel: ({"unread": channel.encode()}, self.version_of(channel)) for channel in channels}

    def live(self) -> Broadcaster:
        return Broadcaster(
            redis_url="redis://unused",
            render=self.render,
            allowed=self.allowed,
            versions=self.versions_of,
            render_together=self.people,
            is_together=lambda channel: channel.startswith("person-"),
        )


def test_who_connects_during_a_rendering_is_in_the_next_one() -> None:
    asyncio.run(_everybody_connects(_Office()))


async def _everybody_connects(office: _Office) -> None:
    streams = office.live()
    first = Browser(streams, Topic(PEOPLE[0]), PEOPLE[0])
    await until(lambda: office.calls == [{PEOPLE[0]}])
    others = [Browser(streams, Topic(one), one) for one in PEOPLE[1:]]
    await asyncio.sleep(0)
    office.may_go_on.set()
    for name, browser in zip(PEOPLE, [first, *others], strict=True):
        assert name.encode() in await browser.next()
    assert office.calls == [{PEOPLE[0]}, set(PEOPLE[1:])]
    assert office.rendered == 0
    # All were rendered in the version of now.
    await streams.compare()
    assert len(office.calls) == 2
    office.versions[PEOPLE[7]] = 2
    await streams.compare()
    await until(lambda: office.calls[2:] == [{PEOPLE[7]}])
    for browser in [first, *others]:
        await browser.leave()
    await streams.stop()


def test_a_failure_is_repeated_for_those_who_still_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "RETRY_S", 0.01)
    asyncio.run(_database_away(_Office()))


async def _database_away(office: _Office) -> None:
    streams = office.live()
    office.fails = 1
    stays, goes = (Browser(streams, Topic(one), one) for one in PEOPLE[:2])
    await until(lambda: bool(office.calls))
    await goes.leave()
    office.may_go_on.set()
    assert PEOPLE[0].encode() in await stays.next()
    assert office.calls[-1] == {PEOPLE[0]}
    await stays.leave()
    await streams.stop()
