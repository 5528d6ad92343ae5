"""Sends to one client with a time-out: a slow client is waited for, a client that accepts no data is disconnected.

An ASGI server writes into buffers until they are full and then waits, for ever if the client does not read. The stream
of a client that lost access, or of a machine that was switched off, would never end. This module imports no app.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import MutableMapping
from typing import Any

from portal.live.types import Send

# Long, because a client may pause on purpose: `curl … | less` reads nothing until the user scrolls.
STALL_LIMIT_S = 60.0
# When a stream is to end: time for the client to read the data already sent.
FAREWELL_S = 1.0


class ClientStalled(Exception):
    """The client did not read the data that was sent; its connection has been closed."""


class SendWithTimeout:
    """`send` of an ASGI server with a time-out. Raises ClientStalled."""

    # Slots save memory: each open stream has one instance.
    __slots__ = ("_limit", "_patience_s", "_send", "_transport")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._patience_s = STALL_LIMIT_S
        self._limit: asyncio.Timeout | None = None
        # uvicorn passes a bound method of an object that has the transport. With another server, there is none.
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
        """The stream is to end: the current send and each later one get only FAREWELL_S."""
        self._patience_s = FAREWELL_S
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + FAREWELL_S)

    async def _cut(self) -> None:
        """Aborts the connection instead of closing it: close() would wait until all buffers are written."""
        if self._transport is not None:
            self._transport.abort()
            # The server sees the abort in the next iteration of the event loop, and then does not report that the
            # response was not completed.
            await asyncio.sleep(0)

    def _notice_silence(self) -> None:
        """Sets TCP_USER_TIMEOUT: if a machine disappears and no longer acknowledges data, the kernel closes the
        connection after STALL_LIMIT_S, not after 15 minutes of retransmissions.
        """
        found = self._transport.get_extra_info("socket") if self._transport is not None else None
        if found is not None:
            with contextlib.suppress(OSError, AttributeError):  # a Unix socket; a system without it
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALL_LIMIT_S * 1000))
