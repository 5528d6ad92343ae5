"""`/api/v1/watch` of the running doors process."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator

import pytest
from django.db import transaction
from django.test import Client

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.models import ApiToken, Event, User
from tenants.models import Membership, Namespace, Tenant
from tests.support.processes.streaming import PROMISED_S, Doors, Stream
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]


def token(user: User, *scopes: str) -> str:
    by = Actor(user, "page")
    return api_token_actions.create_token(name=uuid.uuid4().hex, scopes=scopes or ["read"], expires_in_days=3, by=by)[1]


def happens(by: User, team: str) -> Event:
    with transaction.atomic():
        return record(Actor(by, "page"), "member.added", by, tenant=team, after={"name": "two\nlines"})


def ids(stream: Stream) -> list[int]:
    """Of whole items with data."""
    return [int(found) for found in re.findall(rb"id: (\d+)\nevent: event\ndata: \{.*\}\n\n", stream.received)]


@pytest.fixture
def streams(doors: Doors) -> Iterator[Callable[[str, str], Stream]]:
    opened: list[Stream] = []

    def open_one(path: str, bearer: str) -> Stream:
        opened.append(Stream(doors, path, bearer=bearer))
        return opened[-1]

    yield open_one
    for stream in opened:
        stream.close()


def test_a_program_resumes_and_gets_each_event_once(
    doors: Doors, namespace_a: Namespace, bob: User, charlie: User, streams: Callable[[str, str], Stream]
) -> None:
    bearer = token(bob)
    first = streams("/api/v1/watch?team=team-a", bearer)
    wait_until(lambda: first.has("id: "))
    assert first.response.getheader("Content-Type") == "text/event-stream; charset=utf-8"
    assert first.response.getheader("Cache-Control") == "no-store"
    begun = int(re.findall(rb"id: (\d+)", first.received)[0])
    one, two = happens(bob, "team-a"), happens(charlie, "team-a")
    happens(charlie, "elsewhere")
    wait_until(lambda: len(ids(first)) == 2)
    assert begun < one.pk
    first.close()

    three = happens(bob, "team-a")
    second = streams(f"/api/v1/watch?team=team-a&after={one.pk}", bearer)
    wait_until(lambda: len(ids(second)) == 2)
    four = happens(bob, "team-a")
    wait_until(lambda: len(ids(second)) == 3)
    assert (ids(first), ids(second)) == ([one.pk, two.pk], [two.pk, three.pk, four.pk])

    api = Client().get("/api/v1/events?team=team-a&limit=1", headers={"authorization": f"Bearer {bearer}"})
    last = re.findall(rb"data: (.*)\n", second.received)[-1]
    assert json.loads(last) == api.json()["items"][0]


def test_who_may_not_and_what_is_no_id(doors: Doors, namespace_a: Namespace, bob: User, charlie: User) -> None:
    def refused(path: str, bearer: str = "", **headers: str) -> tuple[int, str]:
        headers |= {"authorization": f"Bearer {bearer}"} if bearer else {}
        status, told, body = doors.get(path, accept="text/event-stream", **headers)
        assert told["content-type"] == "application/json"
        return status, json.loads(body)["code"]

    watch = "/api/v1/watch?team=team-a"
    assert refused(watch) == (401, "not_signed_in")
    assert refused(watch, token(charlie)) == (404, "not_found")
    assert refused("/api/v1/watch?team=nothing", token(bob)) == (404, "not_found")
    assert refused(watch, token(bob, "launch")) == (403, "missing_scope")
    assert refused(f"{watch}&afer=1", token(bob)) == (422, "unknown_field")
    for after in ("one", "-1", "1.5", "999999999999999999"):
        assert refused(f"{watch}&after={after}", token(bob)) == (422, "invalid"), after
        assert refused(watch, token(bob), Last_Event_ID=after) == (422, "invalid"), after
    assert refused(f"{watch}&after=one", token(charlie)) == (404, "not_found")


def test_a_stream_ends_with_its_token_and_with_the_membership(
    doors: Doors, namespace_a: Namespace, team_a: Tenant, bob: User, alice: User, streams: Callable[[str, str], Stream]
) -> None:
    of_bob, of_alice = token(bob), token(alice)
    everything, team = streams("/api/v1/watch", of_bob), streams("/api/v1/watch?team=team-a", of_alice)
    for stream in (everything, team):
        wait_until(lambda stream=stream: stream.has("id: "))  # type: ignore[misc]
    api_token_actions.revoke_token(ApiToken.objects.get(user=bob).prefix, by=Actor(bob, "page"))
    Membership.objects.filter(user=alice, tenant=team_a).delete()
    wait_until(lambda: everything.ended_at and team.ended_at, within_s=PROMISED_S * 2)
