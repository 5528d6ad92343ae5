"""Who has a request open: shown to others who could decide it, forgotten after five minutes, never stored in a row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from portal.core import hints
from tenants.models import QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions import presence
from tenants.requests.decisions.types import Decision
from tenants.requests.types import RequestedLine
from tests.support.rows import make


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def filed(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> Iterator[QuotaRequest]:
    now = timezone.now()
    asked = RequestedLine(a100.slug, 2, now, now + timedelta(days=30))
    found = actions.file_request(
        "team-a", lines=[asked], justification="Two trainings.", by=Actor(user=alice, via="page")
    )
    hints.redis_connection().delete(presence._key(found.pk))
    yield found
    hints.redis_connection().delete(presence._key(found.pk))


@pytest.fixture
def dora(db: None) -> User:
    return make.approver("Dora")


def seen(request: QuotaRequest, who: User, *, since_min: float, last_min: float) -> None:
    """Stores that `who` opened the request `since_min` minutes ago and last looked at it `last_min` minutes ago."""
    now = timezone.now()
    since, last = (now - timedelta(minutes=ago) for ago in (since_min, last_min))
    value = f"{since.timestamp()} {last.timestamp()} {who.name}"
    hints.redis_connection().hset(presence._key(request.pk), str(who.pk), value)


def stored(request: QuotaRequest, who: User) -> bytes | None:
    found: bytes | None = hints.redis_connection().hget(presence._key(request.pk), str(who.pk))
    return found


def test_other_approvers_see_who_has_it_open(
    filed: QuotaRequest, team_a: Tenant, alice: User, dana: User, dora: User, olga: User
) -> None:
    path = f"/requests/{filed.pk}"
    assert "request open since" not in as_(dana).get(path).text
    assert "request open since" not in as_(dana).get(path).text  # it is her own
    for page in (path, "/inbox"):
        assert "Dana has had this request open since" in " ".join(as_(dora).get(page).text.split())
    for nobody in (alice, olga):
        assert "request open since" not in as_(nobody).get(path).text


def test_who_may_not_decide_leaves_no_trace(filed: QuotaRequest, alice: User, dora: User, olga: User) -> None:
    other = make.approver("Otto", gpu_class=make.gpu_class(filed.tenant.namespaces.get().cluster, slug="other"))
    for nobody in (alice, olga, other):
        assert as_(nobody).get(f"/requests/{filed.pk}").status_code == 200
    assert presence.viewers_of_requests([filed.pk], dora) == {}


def test_it_is_forgotten_after_five_minutes(filed: QuotaRequest, dana: User, dora: User) -> None:
    seen(filed, dana, since_min=20, last_min=4.9)
    [one] = presence.viewers_of_requests([filed.pk], dora)[filed.pk]
    assert one.name == "Dana"
    assert timezone.now() - one.since >= timedelta(minutes=20)
    seen(filed, dana, since_min=20, last_min=5.1)
    assert presence.viewers_of_requests([filed.pk], dora) == {}
    presence.mark_request_open(filed.pk, dora)
    assert 0 < hints.redis_connection().ttl(presence._key(filed.pk)) <= 300


def test_it_is_written_once_a_minute_and_keeps_since_when(filed: QuotaRequest, dana: User, dora: User) -> None:
    presence.mark_request_open(filed.pk, dana)
    first = stored(filed, dana)
    presence.mark_request_open(filed.pk, dana)
    assert stored(filed, dana) == first
    seen(filed, dana, since_min=3, last_min=1.1)
    presence.mark_request_open(filed.pk, dana)
    [one] = presence.viewers_of_requests([filed.pk], dora)[filed.pk]
    assert timedelta(minutes=3) <= timezone.now() - one.since < timedelta(minutes=4)
    # An approver who returns after that starts with a new time.
    seen(filed, dana, since_min=30, last_min=6)
    presence.mark_request_open(filed.pk, dana)
    [again] = presence.viewers_of_requests([filed.pk], dora)[filed.pk]
    assert timezone.now() - again.since < timedelta(minutes=1)


def test_a_look_writes_no_row(filed: QuotaRequest, dana: User) -> None:
    events = Event.objects.count()
    before = list(QuotaRequest.objects.values())
    as_(dana).get(f"/requests/{filed.pk}")
    assert (Event.objects.count(), list(QuotaRequest.objects.values())) == (events, before)


def test_what_is_decided_is_open_for_nobody(filed: QuotaRequest, dana: User, dora: User) -> None:
    decision = Decision(filed.lines.get().pk, approve=False, reason="No.")
    decision_actions.decide_request(filed.pk, [decision], by=Actor(user=dora, via="page"))
    as_(dana).get(f"/requests/{filed.pk}")
    assert presence.viewers_of_requests([filed.pk], dora) == {}


def test_without_redis_the_page_is_as_before(
    filed: QuotaRequest, dana: User, dora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = hints.redis.Redis(host="127.0.0.1", port=1, socket_connect_timeout=1)
    monkeypatch.setattr(presence, "redis_connection", lambda: away)
    assert as_(dana).get(f"/requests/{filed.pk}").status_code == 200
    assert as_(dora).get("/inbox").status_code == 200
