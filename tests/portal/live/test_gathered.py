"""Questions of many requests are answered by one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from portal.live import gathered
from portal.live.gathered import Gathered
from tests.portal.live.browser import until


class _Office:
    """`calls`: the questions of each call. It answers when told to."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.may_go_on = asyncio.Event()
        self.is_broken = False

    async def in_thread(self, function: Callable[..., Any], questions: Collection[str]) -> Any:
        self.calls.append(list(questions))
        await self.may_go_on.wait()
        return function(questions)

    def answers(self, questions: Collection[str]) -> Mapping[str, str]:
        if self.is_broken:
            raise RuntimeError("no database")
        return {one: one.upper() for one in questions}


def test_what_is_asked_during_a_call_is_answered_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "AT_ONCE", 3)

    async def scene() -> None:
        office = _Office()
        together = Gathered(office.answers, office.in_thread)
        asked = [asyncio.create_task(together.ask("a"))]
        await until(lambda: office.calls == [["a"]])
        asked += [asyncio.create_task(together.ask(one)) for one in "bcbde"]
        await until(lambda: together.waiting == 4)
        office.may_go_on.set()
        assert await asyncio.gather(*asked) == ["A", "B", "C", "B", "D", "E"]
        assert office.calls == [["a"], ["b", "c", "d"], ["e"]]
        assert await together.ask("a") == "A", "it is asked anew"
        assert office.calls[-1] == ["a"]

    asyncio.run(scene())


def test_who_goes_away_takes_nobody_along() -> None:
    async def scene() -> None:
        office = _Office()
        together = Gathered(office.answers, office.in_thread)
        gone, stays = (asyncio.create_task(together.ask("a")) for _ in range(2))
        await until(lambda: office.calls == [["a"]])
        gone.cancel()
        office.may_go_on.set()
        assert await stays == "A"

    asyncio.run(scene())


def test_a_failed_call_fails_those_who_asked_and_nobody_after_them() -> None:
    async def scene() -> None:
        office = _Office()
        office.may_go_on.set()
        office.is_broken = True
        together = Gathered(office.answers, office.in_thread)
        found = await asyncio.gather(*(together.ask(one) for one in "ab"), return_exceptions=True)
        assert [str(one) for one in found] == ["no database"] * 2
        office.is_broken = False
        assert await together.ask("a") == "A"

    asyncio.run(scene())
