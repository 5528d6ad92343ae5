"""The way out to one client. Whoever reads slowly is waited for; who takes nothing at all for a while is cut off.

A server writes into buffers until they are full and then waits, for ever if nobody reads at the other end: neither a
client that lost its right nor a machine that was switched off would leave. A leaf: it knows sockets, no app.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import MutableMapping
from typing import Any

from portal.live.types import Send

# A pager that nobody scrolls reads nothing either.
STALL_LIMIT_S = 60.0
# Of a client that is to go: time for what it was sent already.
FAREWELL_S = 1.0


class ClientStalled(Exception):
    """The client did not take what it was sent; its connection is gone."""


class SendWithTimeout:
    """`send` of an ASGI server, with an end to its patience. Raises Stalled."""

    # There is one for every open stream.
    __slots__ = ("_limit", "_patience_s", "_send", "_transport")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._patience_s = STALL_LIMIT_S
        self._limit: asyncio.Timeout | None = None
        # uvicorn hands over a method of the answer, which knows its connection; of another server we know nothing.
        self._transport: asyncio.Transport | None = getattr(getattr(send, "__self__", None), "transport", None)
        self._notice_silence()

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(self._patience_s) as self._limit:
                await self._send(message)
        except TimeoutError as error:
            await self._cut()
            raise ClientStalled from error
        finally:
            self._limit = None

    def hurry(self) -> None:
        """It is to go: what is under way and what follows has only a moment left."""
        self._patience_s = FAREWELL_S
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + FAREWELL_S)

    async def _cut(self) -> None:
        """Not closed: that would wait until everything is written."""
        if self._transport is not None:
            self._transport.abort()
            # The server hears of it in the next round, and does not miss the end of the answer then.
            await asyncio.sleep(0)

    def _notice_silence(self) -> None:
        """A machine that is gone without a word confirms nothing: the kernel ends the connection then, not after 15
        minutes of trying again.
        """
        found = self._transport.get_extra_info("socket") if self._transport is not None else None
        if found is not None:
            with contextlib.suppress(OSError, AttributeError):  # a Unix socket; a system without it
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALL_LIMIT_S * 1000))
