"""The format of a server-sent event."""

from __future__ import annotations

from portal.core.plain_text import visible_html

STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]


def server_sent_event(name: str, html: bytes) -> bytes:
    """One server-sent event. Each line of the HTML becomes one `data:` line."""
    data = b"".join(b"data: " + line + b"\n" for line in visible_html(html).splitlines())
    return b"event: " + name.encode() + b"\n" + (data or b"data:\n") + b"\n"
