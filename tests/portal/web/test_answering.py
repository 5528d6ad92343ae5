"""What the doors process says with every answer, and how it ends where something broke."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest
from django.db import OperationalError

from desk.streaming.application import HEADERS_LIMIT, StreamingApplication
from desk.streaming.open_connections import PENDING_MAX
from portal.web.security_headers import SendWithHeaders

Message = MutableMapping[str, Any]


class Sent:
    """An answer of a server, as far as doors see it."""

    transport = "the connection"

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def headers(self) -> dict[str, str]:
        pairs = [(name.decode(), value.decode()) for name, value in self.messages[0]["headers"]]
        assert len(dict(pairs)) == len(pairs), "a header stands twice"
        return dict(pairs)

    @property
    def body(self) -> Any:
        return json.loads(self.messages[1]["body"])


def asked(path: str = "/live/team-a", *, method: str = "GET", **headers: str) -> Sent:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return asyncio.run(_asked({"type": "http", "method": method, "path": path, "query_string": b"", "headers": raw}))


async def _asked(scope: Message) -> Sent:
    sent = Sent()

    async def nothing() -> Message:
        return {"type": "http.disconnect"}

    await StreamingApplication()(scope, nothing, sent.send)
    return sent


def test_what_an_answer_says_itself_goes_first() -> None:
    sent = Sent()
    answering = SendWithHeaders(sent.send, ((b"x-frame-options", b"DENY"), (b"referrer-policy", b"same-origin")))
    start = {"type": "http.response.start", "status": 200, "headers": [(b"referrer-policy", b"no-referrer")]}

    asyncio.run(answering.send(start))

    assert sent.headers == {"referrer-policy": "no-referrer", "x-frame-options": "DENY"}
    assert start["headers"] == [(b"referrer-policy", b"no-referrer")], "what several answers share stays as it is"
    assert answering.send.__self__.transport == "the connection"


@pytest.mark.parametrize(
    ("error", "status", "code", "retry_after"),
    [
        (OperationalError("connection refused to 10.1.2.3"), 503, "database_unavailable", "5"),
        (ZeroDivisionError("a bug"), 500, "internal_error", None),
    ],
)
def test_what_breaks_is_said_in_the_one_error_body(
    monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str, retry_after: str | None
) -> None:
    async def who(self: StreamingApplication, _asked: object) -> None:
        raise error

    monkeypatch.setattr(StreamingApplication, "who", who)
    sent = asked(x_request_id="request-0001")

    assert (sent.messages[0]["status"], sent.body["code"]) == (status, code)
    assert (sent.headers.get("retry-after"), sent.headers["x-request-id"]) == (retry_after, "request-0001")
    assert "default-src 'none'" in sent.headers["content-security-policy"]
    assert str(error) not in str(sent.body)


def test_an_answer_that_has_begun_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stream(self: StreamingApplication, _asked: object, _receive: object, send: Any, **_named: str) -> Any:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    monkeypatch.setattr(StreamingApplication, "stream", stream)
    with pytest.raises(ZeroDivisionError):
        asked()


def test_headers_have_an_end() -> None:
    assert asked("/livez", x_long="x" * (HEADERS_LIMIT - 200)).messages[0]["status"] == 200
    sent = asked("/livez", x_long="x" * HEADERS_LIMIT)
    assert (sent.messages[0]["status"], sent.headers["x-content-type-options"]) == (431, "nosniff")
    assert sent.body["code"] == "headers_too_large"


@pytest.mark.parametrize("path", ["/live/team-a", "/live/logs/team-a/one"])
@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_a_stream_is_not_opened_for_a_page_of_another_site(path: str, site: str) -> None:
    """An EventSource or a script of a notebook's page: for the browser it is the same site, so it sends the cookie."""
    for mode, dest in (("cors", "empty"), ("no-cors", "script"), ("navigate", "iframe")):
        sent = asked(path, sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=dest)
        assert (sent.messages[0]["status"], sent.body["code"]) == (403, "other_origin")
    for headers in ({}, {"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"}):
        assert asked(path, **headers).messages[0]["status"] == 401


def test_what_is_not_a_get_is_refused_in_the_one_error_body() -> None:
    sent = asked("/api/v1/workloads/one", method="HEAD")
    assert (sent.messages[0]["status"], sent.body["code"], sent.headers["allow"]) == (405, "method_not_allowed", "GET")


def test_what_would_only_wait_longer_is_told_when_to_return(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notebooks are let in all the same, and the probe is answered."""
    begin = StreamingApplication.__init__

    def begin_busy(self: StreamingApplication) -> None:
        begin(self)
        self.live.pending = PENDING_MAX + 1

    monkeypatch.setattr(StreamingApplication, "__init__", begin_busy)
    for path in ("/live/team-a", "/api/v1/watch", "/live/logs/team-a/one"):
        sent = asked(path)
        assert (sent.messages[0]["status"], sent.body["code"]) == (503, "overloaded")
        assert 2 <= int(sent.headers["retry-after"]) <= 12
    assert asked("/livez").messages[0]["status"] == 200
    assert asked("/gateway/authorize").messages[0]["status"] != 503
