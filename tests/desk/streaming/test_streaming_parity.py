"""Doors answers as web does where no page is rendered; the number of open streams and calls per token is limited."""

from __future__ import annotations

import http.client
import json
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from django.test import Client

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, User
from catalog.models import GpuClass
from desk.streaming.open_connections import OPEN_LIMIT
from portal.core import hints
from portal.core.hints import page_hint
from tenants.models import Namespace
from tests.support.processes.streaming import Doors, database_connections, session_of
from tests.support.rows import running
from tests.support.waiting import wait_until
from workloads.models import Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]

# Headers that differ between two answers of web.
OF_EACH = {"content-length", "content-type", "cache-control", "expires", "vary", "date", "server", "x-request-id"}
# Two for waiting calls and streams, one for the access check; each look takes some milliseconds.
AT_A_TIME = 5


@pytest.fixture
def notebook(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    found = running.workload(namespace_a, a100, name="one", by=alice)
    running.known(namespace_a.cluster_id)
    return found


def token_of(person: User, name: str = "ci") -> str:
    return api_token_actions.create_token(name=name, scopes=["read"], expires_in_days=1, by=Actor(person, "page"))[1]


# ---- responses and headers ---------------------------------------------------------------------------------------


def test_bare_answers_carry_what_pages_carry(doors: Doors, client: Client, namespace_a: Namespace, bob: User) -> None:
    web = client.get("/livez")
    carried = {name.lower(): value for name, value in web.items() if name.lower() not in OF_EACH}
    assert {"content-security-policy", "x-content-type-options", "x-frame-options", "referrer-policy"} <= set(carried)
    session = f"session={session_of(bob)}"
    paths = (
        "/livez",
        "/",
        "/live/nothing",
        "/live/logs/team-a/one",
        "/gateway/authorize",
        "/gateway/open",
        "/api/v1/me",
    )
    for path in (*paths, "/api/v1/me?wait=0"):
        for cookie in ("", session):
            _status, found, _body = doors.get(path, cookie=cookie)
            assert {name: found.get(name) for name in carried} == carried, path
            assert len(found["x-request-id"]) == 32


def test_a_stream_carries_it_too(doors: Doors, namespace_a: Namespace, bob: User) -> None:
    call = http.client.HTTPConnection("127.0.0.1", doors.port, timeout=20)
    headers = {"Cookie": f"session={session_of(bob)}", "X-Request-ID": "a-stream-of-bobs"}
    call.request("GET", f"/live/{namespace_a.name}", headers=headers)
    found = call.getresponse()
    assert (found.status, found.headers["X-Request-ID"]) == (200, "a-stream-of-bobs")
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert "script-src 'self'" in found.headers["Content-Security-Policy"]
    call.close()


@pytest.mark.parametrize("path", ["/live/team-a", "/live/logs/team-a/one", "/api/v1/workloads/one?wait=1"])
def test_who_is_unknown_is_told_how_to_be_known(doors: Doors, namespace_a: Namespace, path: str) -> None:
    for bearer, code in ({}, "not_signed_in"), ({"authorization": "Bearer gpt_wrong"}, "bad_token"):
        status, found, body = doors.get(path, **bearer)
        assert (status, found["www-authenticate"], json.loads(body)["code"]) == (401, "Bearer", code)


def test_what_is_not_there_has_the_one_error_body(doors: Doors, client: Client, charlie: User) -> None:
    session = f"session={session_of(charlie)}"
    for path in ("/nothing", "/live/nothing", "/live/logs/team-a/one", "/api/v1/nothing?wait=1"):
        status, _found, body = doors.get(path, cookie=session)
        assert (status, json.loads(body)) == (404, client.get("/api/v1/nothing").json())


def test_other_methods_are_not_taken(doors: Doors) -> None:
    call = http.client.HTTPConnection("127.0.0.1", doors.port, timeout=20)
    call.request("POST", "/live/team-a")
    found = call.getresponse()
    assert (found.status, found.headers["Allow"]) == (405, "GET")
    call.close()


def test_a_waiting_call_is_one_request(doors: Doors, notebook: Workload, bob: User) -> None:
    """The throttle counts one request, although the call resolves the URL map twice."""
    text = token_of(bob)
    minute = int(time.time() // 60)
    keys = [f"throttle:token:{ApiToken.objects.get().pk}:{minute + later}" for later in range(3)]
    hints.redis_connection().delete(*keys)
    for _time in range(30):
        assert doors.get("/api/v1/workloads/one?wait=0", authorization=f"Bearer {text}")[0] == 200
    told = sum(int(count or 0) for count in hints.redis_connection().mget(keys))
    assert told == 30


# ---- limits of open calls ----------------------------------------------------------------------------------------


def ask(doors: Doors, path: str, text: str) -> socket.socket:
    """Sends a request and does not read the answer."""
    one = socket.create_connection(("127.0.0.1", doors.port), timeout=60)
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: portal\r\nAuthorization: Bearer {text}\r\n\r\n".encode())
    return one


@pytest.fixture
def crowd(doors: Doors) -> Iterator[ExitStack]:
    """Closes the connections that are still open at the end."""
    with ExitStack() as stack:
        yield stack


WAITING = "/api/v1/workloads/one?wait=120&until=ready"


def is_full(doors: Doors, text: str) -> bool:
    """Calls with `wait=0`; if a place is free, the call takes it for a moment."""
    return b"too_many_open" in doors.get("/api/v1/workloads/one?wait=0", authorization=f"Bearer {text}")[2]


def fill(doors: Doors, text: str, places: int, crowd: ExitStack) -> list[socket.socket]:
    """Opens that many waiting calls. A call that was refused because `is_full` held its place is sent again."""
    calls = [crowd.enter_context(ask(doors, WAITING, text)) for _ in range(places)]

    def are_all_open() -> bool:
        for refused in select.select(calls, [], [], 0)[0]:
            assert refused.recv(12) == b"HTTP/1.1 429"
            calls[calls.index(refused)] = crowd.enter_context(ask(doors, WAITING, text))
        return is_full(doors, text)

    wait_until(are_all_open, what="no place is left")
    return calls


def test_a_hundred_waiting_calls_hold_no_connection_to_the_database(
    doors: Doors, notebook: Workload, namespace_a: Namespace, alice: User, bob: User, crowd: ExitStack
) -> None:
    texts = [token_of(alice), token_of(bob)]
    calls = [call for text in texts for call in fill(doors, text, OPEN_LIMIT, crowd)]
    assert len(calls) == 100

    seen = [database_connections() for _ in range(100)]
    assert max(seen) <= AT_A_TIME
    wait_until(lambda: database_connections() == 0, what="between two looks nobody has one")

    running.make_ready(notebook)
    page_hint(namespace_a.name)
    assert {call.recv(12) for call in calls} == {b"HTTP/1.1 200"}


def test_one_token_holds_so_many_open_and_no_more(
    doors: Doors, notebook: Workload, namespace_a: Namespace, bob: User, crowd: ExitStack
) -> None:
    """Streams and waiting calls count together; another token of the same user has its own places."""
    text, other = token_of(bob), token_of(bob, "other")
    streams = [crowd.enter_context(ask(doors, f"/live/{namespace_a.name}", text)) for _ in range(OPEN_LIMIT // 2)]
    assert {stream.recv(12) for stream in streams} == {b"HTTP/1.1 200"}
    fill(doors, text, OPEN_LIMIT - len(streams), crowd)

    for path in (WAITING, f"/live/{namespace_a.name}", "/live/logs/team-a/one"):
        status, found, body = doors.get(path, authorization=f"Bearer {text}")
        assert (status, found["retry-after"], json.loads(body)["code"]) == (429, "5", "too_many_open")
    assert not is_full(doors, other)

    streams[0].close()
    wait_until(lambda: not is_full(doors, text), what="a place is free again")
