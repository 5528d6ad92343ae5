"""Forwards TCP connections from one address of this machine to another: `HOST PORT TO_HOST TO_PORT`.

API server, PostgreSQL and Redis listen on loopback only; nodes and pods in a network of their own reach them here. A
Service of the node is reached the other way round.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

CHUNK_BYTES = 1 << 16


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.close()


async def forward(host: str, port: int, to_host: str, to_port: int) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(to_host, to_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, upstream_writer), _copy(upstream_reader, writer))

    server = await asyncio.start_server(accept, host, port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(forward(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
