"""The minimal ASGI application with event streams: it sends one event and waits until the client disconnects."""

from __future__ import annotations

from typing import Any

HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    is_stream = scope["path"] != "/livez"
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"event: hello\ndata:\n\n", "more_body": is_stream})
    while is_stream and (await receive())["type"] != "http.disconnect":
        pass
