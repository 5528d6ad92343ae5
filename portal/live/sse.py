"""The format of a server-sent event."""

from __future__ import annotations

import random

from portal.core.plain_text import visible_html

STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]


def server_sent_event(name: str, html: bytes) -> bytes:
    """One server-sent event. Each line of the HTML becomes one `data:` line."""
    data = b"".join(b"data: " + line + b"\n" for line in visible_html(html).splitlines())
    return b"event: " + name.encode() + b"\n" + (data or b"data:\n") + b"\n"


# When a process of doors ends, all its browsers return: 5,000 within this time are 500 a second, not 5,000 at once.
RETRY_MS = (2_000, 12_000)


def retry_field() -> bytes:
    """After how long this browser connects again when its stream has ended: another time for each."""
    return b"retry: %d\n\n" % random.randint(*RETRY_MS)
