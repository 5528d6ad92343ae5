"""An event that exactly one coroutine waits for."""

from __future__ import annotations

import asyncio


class SingleWaiterEvent:
    """An asyncio.Event for one waiting coroutine. asyncio.Event keeps a queue of waiters, which would be most of the
    memory of an idle stream.
    """

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> None:
        if self._is_set:
            return
        assert self._waiter is None, "somebody else waits"
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
