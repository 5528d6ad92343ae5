"""What is told while a pod is there whose log cannot be read."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

import pytest

from workloads.gateway import logs
from workloads.gateway.asgi import EdgeRequest
from workloads.gateway.queries import LogSource
from workloads.logs.queries import NoLog

SOURCE = LogSource("team-a", "one-1", "main")
UNREADABLE = "The log cannot be read at the moment."


async def told(answering: Any, found: NoLog) -> tuple[dict[bytes, bytes], str]:
    """Headers and text."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def kept() -> NoLog:
        return found

    await answering(send=send, source=SOURCE, kept=kept, person=1)
    return dict(sent[0]["headers"]), b"".join(one.get("body", b"") for one in sent).decode()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (NoLog("There is no log.", is_final=False), f"{UNREADABLE} The pod may not have started yet."),
        (NoLog("There is no log of run 1: the node did not answer.", is_final=True), UNREADABLE),
    ],
)
def test_a_run_that_has_ended_is_not_said_to_start(found: NoLog, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_open", lambda *_args, **_values: None)
    asked = EdgeRequest("/live/logs/team-a/one", {}, {})
    follow = partial(logs.follow_log, cast(Any, None), asked, cast(Any, None), credential="session")
    headers, body = asyncio.run(told(follow, found))
    assert (headers[b"retry-after"], body) == (b"5", text)
    _headers, fragment = asyncio.run(told(partial(logs.log_fragment, asked), found))
    assert f">{text}<" in fragment
