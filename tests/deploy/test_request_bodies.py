"""Slow, large and unfinished bodies, in the real gateway and the real web: they delay and break nobody else's requests.

A slow body sends its first bytes and then nothing, until it is refused or the test ends.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.processes.shipped_portal import ShippedPortal, shipped_portal
from tests.support.processes.streaming import Doors

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]
# With the cookie of a form, since without one a form is refused before its body is read.
FORM = f"Content-Type: application/x-www-form-urlencoded\r\nCookie: csrf={'c' * 32}"
SLOW = f"POST /login HTTP/1.1\r\n{FORM}\r\nContent-Length: 1000"
OTHERS = 40
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def portal(
    running_doors: Doors, services: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ShippedPortal]:
    with shipped_portal(services, running_doors.port, tmp_path_factory.mktemp("shipped")) as found:
        yield found


@pytest.mark.parametrize("path", ["/login", "/api/v1/tokens"])
def test_slow_bodies_keep_nobody_waiting_and_are_given_up(portal: ShippedPortal, path: str) -> None:
    with portal.begun(portal.gateway, 200, SLOW.replace("/login", path), b"username=a") as slow:
        found = [portal.ask("/login").status for _ in range(OTHERS)]
        posted = [portal.ask("/theme", "POST", b"theme=dark").status for _ in range(OTHERS)]
        refused = [_answer(one) for one in slow[:20]]

    assert (found, posted) == ([200] * OTHERS, [403] * OTHERS)
    assert {status for status, _text in refused} == {408}
    if path.startswith("/api/"):
        assert {json.loads(text)["code"] for _status, text in refused} == {"body_too_slow"}


def test_web_itself_waits_for_no_slow_body(portal: ShippedPortal) -> None:
    """Without the gateway, which does not send a body on before it has all of it."""
    with portal.begun(portal.web, 40, SLOW, b"username=a") as slow:
        found = [portal.ask("/login").status for _ in range(OTHERS)]
        refused = [_answer(one)[0] for one in slow]

    assert found == [200] * OTHERS
    assert set(refused) == {408}


# Bodies that are refused before they are read, all of them larger than what gunicorn reads of the rest of a body.
UNREAD = {
    "other-origin": (300_000, "Origin: http://evil.test", 403),
    "no-token": (300_000, "Authorization: Bearer gpt_no", 401),
    "too-large": (MIB + 1, "", 413),
    "chunks": (0, "Transfer-Encoding: chunked", 411),
}


@pytest.mark.parametrize("through", ["gateway", "web"])
@pytest.mark.parametrize("kind", UNREAD)
def test_a_body_that_is_refused_unread_breaks_no_other_request(portal: ShippedPortal, through: str, kind: str) -> None:
    size, more, status = UNREAD[kind]
    length = f"Content-Length: {size}\r\n" if size else ""
    head = f"POST /api/v1/tokens HTTP/1.1\r\n{length}Content-Type: application/json\r\n{more}".rstrip()
    body = b"x" * size if size else b"5\r\nhello\r\n0\r\n\r\n"
    refused, others = [], []
    for _ in range(20):
        # The second request shares the connection with the first, if that is kept.
        first, second = _ask_twice(portal, getattr(portal, through), head, body)
        refused.append(first)
        others += [second, portal.ask("/theme", "POST", b"theme=dark").status]

    assert set(refused) == {status}
    assert set(others) <= {200, 403, None}, "None: the connection was closed, as the first answer said"


def test_a_part_of_a_body_is_not_taken_for_the_whole(portal: ShippedPortal) -> None:
    """The client goes while it sends a form: Django would carry out what has arrived."""
    with portal.begun(portal.web, 1, SLOW, b"username=a") as [connection]:
        connection.shutdown(socket.SHUT_WR)
        assert _answer(connection)[0] == 400


@pytest.mark.parametrize("path", ["/catalog", "/api/v1/me", "/api/v1/workloads/one?wait=1"])
def test_headers_that_a_server_refuses_have_the_one_error_body(portal: ShippedPortal, path: str) -> None:
    for headers in ({f"X-{index}": "x" for index in range(80)}, {"X-Long": "x" * 70_000}):
        answer = portal.ask(path, **headers)
        if answer.status == 401:  # doors take more
            assert "wait=" in path
            continue
        assert answer.status == 431
        if path.startswith("/api/"):
            assert json.loads(answer.body)["code"] == "headers_too_large"
        else:
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["/live/team-a", "/live/logs/team-a/one", "/gateway/open"])
def test_a_websocket_to_doors_is_refused_in_the_one_error_body(portal: ShippedPortal, path: str) -> None:
    for port in (portal.gateway, portal.doors):
        at = socket.create_connection(("127.0.0.1", port))
        with pytest.raises(InvalidStatus) as refused, connect(f"ws://{portal.host}{path}", sock=at, proxy=None):
            pass
        response = refused.value.response
        assert (response.status_code, json.loads(response.body or b"")["code"]) == (400, "bad_request")
        assert "X-Request-Id" in response.headers


def _ask_twice(portal: ShippedPortal, port: int, head: str, body: bytes) -> tuple[int, int | None]:
    """The statuses of a request and of the next one on its connection, as a proxy would send it."""
    with portal.begun(port, 1, head, body) as [connection]:
        first = _response(connection)
        first.read()
        if first.will_close:
            return first.status, None
        connection.sendall(f"POST /theme HTTP/1.1\r\nHost: {portal.host}\r\nContent-Length: 3\r\n\r\na=b".encode())
        return first.status, _response(connection).status


def _answer(connection: socket.socket) -> tuple[int, str]:
    response = _response(connection)
    return response.status, response.read().decode()


def _response(connection: socket.socket) -> http.client.HTTPResponse:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response
