"""Calls that wait for a decision about a quota request end with it, for everybody who may see the request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import ApiToken, User
from catalog.models import GpuClass
from portal.live import broadcaster
from tenants.models import Membership, Namespace, QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests.comments.actions import comment_request
from tests.support.http.callers import bearer
from tests.support.processes.streaming import Doors, Stream, database_connections, session_of
from tests.support.rows import make
from tests.support.rows.inbox import waits
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]


@pytest.fixture
def pending(team_a: Tenant, a100: GpuClass, alice: User) -> QuotaRequest:
    return waits(team_a, a100, alice, units=2)


def asked(doors: Doors, who: User, request: QuotaRequest, seconds: int) -> Callable[[], tuple[float, Any]]:
    """Starts a waiting call. The result returns how long it took and its status, headers and body."""
    headers, found = bearer(who, "read"), []
    began_at = time.monotonic()

    def call() -> None:
        answer = doors.get(f"/api/v1/requests/{request.pk}?wait={seconds}", **headers)
        found.append((time.monotonic() - began_at, answer))

    thread = threading.Thread(target=call)
    thread.start()
    wait_until(lambda: ApiToken.objects.filter(user=who, last_used_at__isnull=False).exists())

    def result() -> tuple[float, Any]:
        thread.join(25)
        [done] = found
        return done

    return result


def test_the_call_ends_with_the_decision(doors: Doors, pending: QuotaRequest, alice: User, dana: User) -> None:
    calls = [asked(doors, who, pending, 18) for who in (alice, dana)]
    actions.withdraw_request(pending.pk, by=Actor(alice, via="page"))
    for call in calls:
        took_s, (status, headers, body) = call()
        assert (status, json.loads(body)["state"], "retry-after" in headers) == (200, "withdrawn", False)
        assert took_s < 12
    took_s, (_status, _headers, body) = asked(doors, alice, pending, 18)()
    assert took_s < 5


def test_the_call_ends_after_its_time(doors: Doors, pending: QuotaRequest, bob: User) -> None:
    took_s, (status, headers, body) = asked(doors, bob, pending, 2)()
    assert (status, json.loads(body)["state"], "retry-after" in headers) == (200, "pending", False)
    assert 2 <= took_s < 10


def test_who_leaves_the_team_meanwhile_is_told_nothing_more(doors: Doors, pending: QuotaRequest, bob: User) -> None:
    call = asked(doors, bob, pending, 18)
    wait_until(lambda: database_connections() == 0, what="the first look is over")
    Membership.objects.filter(user=bob).delete()
    took_s, (status, _headers, body) = call()
    assert (status, json.loads(body).get("code")) == (404, "not_found")
    assert took_s < 15


def test_the_page_of_a_request_hears_of_the_decision_and_of_comments_at_once(
    doors: Doors, pending: QuotaRequest, namespace_a: Namespace, a100: GpuClass, bob: User, dana: User
) -> None:
    foreign = waits(make.tenant(namespace_a.cluster, slug="team-b"), a100, dana, units=1)
    path = f"/live/{namespace_a.name}?request="
    streams = [Stream(doors, f"{path}{pk}", session_of(bob)) for pk in (pending.pk, foreign.pk, "x", 10**17)]
    mine, *others = streams
    try:
        wait_until(lambda: mine.has("event: state_request\ndata: pending 0\n"))
        wait_until(lambda: all(other.ended_at for other in others), what="there is no such request of this team")
        assert not any(other.has("state_request") for other in others)
        comment = comment_request(pending.pk, text="Soon.", by=Actor(dana, via="page"))
        wait_until(lambda: mine.has(f"data: pending {comment.pk}\n"), within_s=broadcaster.VERSION_CHECK_S - 3)
        actions.withdraw_request(pending.pk, by=Actor(pending.filed_by, via="page"))
        wait_until(lambda: mine.has("data: withdrawn"), within_s=broadcaster.VERSION_CHECK_S - 3)
        assert not mine.has("state_holdings")
    finally:
        for stream in streams:
            stream.close()


def test_a_delegate_who_is_not_in_the_team_is_told_to_ask_again(
    doors: Doors, pending: QuotaRequest, charlie: User, dana: User
) -> None:
    make.deputy(charlie, of=dana)
    _took_s, (status, headers, _body) = asked(doors, charlie, pending, 18)()
    assert (status, headers["retry-after"]) == (200, "5")


def test_a_request_of_others_is_not_there(doors: Doors, pending: QuotaRequest, charlie: User) -> None:
    status, _headers, _body = doors.get(f"/api/v1/requests/{pending.pk}?wait=18", **bearer(charlie, "read"))
    assert status == 404
