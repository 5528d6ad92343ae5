"""The running doors process, tested with plain HTTP clients: streams, waiting calls and the gateway's access checks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test import Client
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import ApiToken, Role, User
from accounts.notices.actions import mark_read
from catalog.models import GpuClass
from desk.navigation.queries import page_facts
from portal.core.hints import page_hint
from portal.live import broadcaster
from tenants.models import Announcement, Membership, Namespace, Tenant
from tests.support.http.callers import bearer
from tests.support.processes.streaming import NOTEBOOKS, Doors, Stream, session_of
from tests.support.rows import make, running
from tests.support.waiting import wait_until
from tests.tenants.announcements.test_announcements import announced
from workloads.gateway.asgi import REMEMBER_S
from workloads.models import Run, Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]


@pytest.fixture
def notebook(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    found = running.workload(namespace_a, a100, name="canary-a", by=alice)
    running.known(namespace_a.cluster_id)
    return found


@pytest.fixture
def streams(doors: Doors) -> Iterator[Callable[..., Stream]]:
    opened: list[Stream] = []

    def open_one(path: str, user: User) -> Stream:
        opened.append(Stream(doors, path, session_of(user)))
        return opened[-1]

    yield open_one
    for stream in opened:
        stream.close()


# ---- streams -----------------------------------------------------------------------------------------------------


def test_a_page_hears_of_a_change_at_once(
    notebook: Workload, namespace_a: Namespace, bob: User, streams: Callable[..., Stream]
) -> None:
    stream = streams(f"/live/{namespace_a.name}", bob)
    wait_until(lambda: stream.has("event: state_running") and stream.has("canary-a"))
    assert not stream.has("Ready")

    running.make_ready(notebook)
    page_hint(namespace_a.name)
    wait_until(lambda: stream.has("Ready"), within_s=broadcaster.VERSION_CHECK_S - 3)


def test_one_workload_has_a_stream_of_its_own(
    notebook: Workload, namespace_a: Namespace, bob: User, streams: Callable[..., Stream]
) -> None:
    stream = streams(f"/live/{namespace_a.name}?workload=canary-a", bob)
    wait_until(lambda: stream.has("event: state_progress") and stream.has("event: state_workload"))
    assert not stream.has("event: state_holdings")


def test_a_page_hears_of_its_persons_notices_on_the_stream_that_it_has(
    doors: Doors, notebook: Workload, namespace_a: Namespace, alice: User, bob: User, streams: Callable[..., Stream]
) -> None:
    his, hers = (streams(f"/live/{namespace_a.name}?workload=canary-a", who) for who in (bob, alice))
    by_token = Stream(doors, f"/live/{namespace_a.name}", bearer=bearer(bob, "read")["Authorization"].split()[1])
    wait_until(lambda: his.has("event: state_notices") and hers.has("event: state_notices"))
    assert not his.has('class="count"')
    at_once = broadcaster.VERSION_CHECK_S - 3
    with transaction.atomic():
        event = record(Actor(alice, via="page"), "tenant.edited", namespace_a.tenant, tenant=namespace_a.tenant.slug)
        deliver(event, [bob], subject="News", body="News.")
    wait_until(lambda: his.has('data:  <span class="count">1<'), within_s=at_once)
    mark_read(bob.pk)
    wait_until(lambda: his.received.count(b"event: state_notices\ndata: \n\n") == 2, within_s=at_once)
    assert not hers.has('class="count"')
    wait_until(lambda: by_token.has("event: state_holdings"))
    by_token.close()
    assert not by_token.has("state_notices")


def test_a_page_hears_of_announcements_for_its_person(
    doors: Doors, notebook: Workload, namespace_a: Namespace, bob: User,
    streams: Callable[..., Stream],
) -> None:  # fmt: skip
    stream = streams(f"/live/{namespace_a.name}", bob)
    wait_until(lambda: stream.has("event: state_announcements\ndata: -\n\n"))
    olga = make.user("Olga", roles=[Role.OPERATOR])
    now = timezone.now()
    row = announced(olga, audience="teams", teams=[namespace_a.tenant.slug])
    at_once = broadcaster.VERSION_CHECK_S - 3
    shown = f"event: state_announcements\ndata: {page_facts(bob).announced}\n\n"
    wait_until(lambda: stream.has(shown), within_s=at_once)
    # Nothing reports the end of its period: the clock alone ends it.
    Announcement.objects.filter(pk=row.pk).update(period=DateTimeTZRange(now - timedelta(hours=1), now))
    gone = b"event: state_announcements\ndata: -\n\n"
    wait_until(lambda: stream.received.count(gone) == 2, within_s=2 * broadcaster.VERSION_CHECK_S)


def test_strangers_and_the_anonymous_get_no_stream(
    doors: Doors, notebook: Workload, namespace_a: Namespace, charlie: User
) -> None:
    stranger = {"cookie": f"session={session_of(charlie)}"}
    for path in (f"/live/{namespace_a.name}", "/live/logs/team-a/canary-a"):
        assert doors.get(path)[0] == 401
        assert doors.get(path, **stranger)[0] == 404
    assert doors.get("/live/nothing-of-this-name", **stranger)[0] == 404
    for path in ("/", "/login", "/api/v1/workloads", "/admin/", "/static/portal/portal.js"):
        assert doors.get(path)[0] == 404


# ---- long polling ------------------------------------------------------------------------------------------------


@pytest.fixture
def token(bob: User) -> str:
    _row, text = api_token_actions.create_token(
        name="ci", scopes=["read", "launch"], expires_in_days=1, by=Actor(user=bob, via="page")
    )
    return text


def test_a_waiting_call_answers_when_it_is_so_far(
    doors: Doors, notebook: Workload, namespace_a: Namespace, token: str
) -> None:
    answers: list[tuple[int, dict[str, str], bytes]] = []
    path = "/api/v1/workloads/canary-a?wait=30&until=ready"
    waiting = threading.Thread(target=lambda: answers.append(doors.get(path, authorization=f"Bearer {token}")))
    started_at = time.monotonic()
    waiting.start()
    running.make_ready(notebook)
    page_hint(namespace_a.name)
    waiting.join(15)
    assert time.monotonic() - started_at < 12
    status, headers, body = answers[0]
    assert status == 200
    assert "retry-after" not in headers
    assert json.loads(body)["status"]["phase"] == "ready"


def test_a_waiting_call_ends_when_its_token_is_revoked(doors: Doors, notebook: Workload, token: str, bob: User) -> None:
    answers: list[tuple[int, dict[str, str], bytes]] = []
    path = "/api/v1/workloads/canary-a?wait=60&until=ready"
    waiting = threading.Thread(target=lambda: answers.append(doors.get(path, authorization=f"Bearer {token}")))
    waiting.start()
    row = wait_until(lambda: ApiToken.objects.filter(last_used_at__isnull=False).first())
    assert row is not None

    api_token_actions.revoke_token(row.prefix, by=Actor(user=bob, via="page"))

    waiting.join(15)
    assert [status for status, _headers, _body in answers] == [401]


def test_it_is_exactly_what_web_answers(
    doors: Doors, notebook: Workload, token: str, client: Client, settings: Any
) -> None:
    settings.PORTAL_URL = "http://portal.localhost:8000"
    bearer = f"Bearer {token}"
    _status, _headers, body = doors.get("/api/v1/workloads/canary-a?wait=0", authorization=bearer)
    web = client.get("/api/v1/workloads/canary-a?wait=0", headers={"authorization": bearer})
    assert web.headers["Retry-After"] == "5"
    assert json.loads(body) == web.json()


def test_a_waiting_call_that_may_not_know_is_told_so_at_once(doors: Doors, notebook: Workload, charlie: User) -> None:
    _row, text = api_token_actions.create_token(
        name="ci", scopes=["read"], expires_in_days=1, by=Actor(user=charlie, via="page")
    )
    path = "/api/v1/workloads/canary-a?team=team-a&wait=30"
    status, _headers, body = doors.get(path, authorization=f"Bearer {text}")
    assert (status, json.loads(body)["code"]) == (404, "not_found")
    assert doors.get(path)[0] == 401
    assert doors.get(path.replace("30", "x"), authorization=f"Bearer {text}")[0] in (404, 422)


def test_the_time_to_wait_ends(doors: Doors, notebook: Workload, token: str) -> None:
    status, _headers, body = doors.get("/api/v1/workloads/canary-a?wait=1", authorization=f"Bearer {token}")
    assert (status, json.loads(body)["run"]["ready_at"]) == (200, None)


# ---- gateway -----------------------------------------------------------------------------------------------------


def ask(doors: Doors, host: str, **headers: str) -> tuple[int, dict[str, str]]:
    """Sends the request of Caddy's forward_auth."""
    forwarded = {"x-forwarded-host": host, "x-forwarded-method": "GET", "x-forwarded-uri": "/lab"}
    status, found, _body = doors.get("/gateway/authorize", **forwarded, **headers)
    return status, found


@pytest.fixture
def opened(doors: Doors, notebook: Workload, bob: User, settings: Any) -> tuple[str, str]:
    """Returns (host, cookie) of a notebook that Bob opened from its page."""
    settings.NOTEBOOKS_DOMAIN = NOTEBOOKS
    running.make_ready(notebook)
    client = Client()
    client.force_login(bob)
    address = urlsplit(client.post("/teams/team-a/workloads/canary-a/open")["Location"])
    status, headers, _body = doors.get(f"{address.path}?{address.query}", x_forwarded_host=address.netloc)
    assert (status, headers["location"]) == (303, "/lab")
    assert headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Lax")
    assert "Domain" not in headers["set-cookie"]
    return address.netloc, headers["set-cookie"].partition(";")[0]


def test_the_gateway_learns_where_and_with_which_token(doors: Doors, opened: tuple[str, str]) -> None:
    host, cookie = opened
    status, headers = ask(doors, host, cookie=cookie)
    assert (status, headers["x-notebook-upstream"]) == (200, f"{running.IP}:8888")
    assert headers["authorization"].startswith("token ")


def test_headers_of_a_client_change_nothing(doors: Doors, opened: tuple[str, str]) -> None:
    host, _cookie = opened
    forged = {"x_notebook_upstream": "10.9.9.9:80", "remote_user": "alice", "authorization": "token guessed"}
    status, headers = ask(doors, host, **forged)
    assert status == 401
    assert "x-notebook-upstream" not in headers


def test_a_person_without_a_pass_is_led_to_the_portal(
    doors: Doors, opened: tuple[str, str], notebook: Workload
) -> None:
    host, _cookie = opened
    status, headers = ask(doors, host, accept="text/html,*/*")
    assert (status, headers["location"]) == (302, f"http://portal.localhost:8000/open/{notebook.origin}")
    assert ask(doors, "portal.localhost:8000", accept="text/html")[0] == 404


def test_a_lost_right_is_noticed_within_five_seconds(doors: Doors, opened: tuple[str, str], bob: User) -> None:
    host, cookie = opened
    assert ask(doors, host, cookie=cookie)[0] == 200
    Membership.objects.filter(user=bob).delete()
    assert REMEMBER_S < 5
    wait_until(lambda: ask(doors, host, cookie=cookie)[0] == 404, within_s=3 * REMEMBER_S)


def test_a_pass_is_spent_when_it_comes_back(doors: Doors, notebook: Workload, bob: User, settings: Any) -> None:
    settings.NOTEBOOKS_DOMAIN = NOTEBOOKS
    running.make_ready(notebook)
    client = Client()
    client.force_login(bob)
    address = urlsplit(client.post("/teams/team-a/workloads/canary-a/open")["Location"])
    path = f"{address.path}?{address.query}"
    other = f"x{address.netloc}"
    assert doors.get(path, x_forwarded_host=other)[0] == 302
    assert doors.get(path, x_forwarded_host=address.netloc)[0] == 303
    status, headers, _body = doors.get(path, x_forwarded_host=address.netloc)
    assert status == 302
    assert "set-cookie" not in headers
    assert doors.get(path, x_forwarded_host="portal.localhost:8000")[0] == 404


def test_a_run_that_stopped_is_not_ready(doors: Doors, opened: tuple[str, str], team_a: Tenant) -> None:
    host, cookie = opened
    Run.objects.update(stop_requested_at=timezone.now())
    wait_until(lambda: ask(doors, host, cookie=cookie)[0] == 503, within_s=3 * REMEMBER_S)
