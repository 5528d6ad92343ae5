"""A team's grants with their last days, and renewal in one click: page, API and verb."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, Scope, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.core import queries
from tenants.grants.timeline import queries as timeline_queries
from tenants.models import Grant, QuotaLine, QuotaRequest, Tenant
from tenants.requests.decisions import actions
from tenants.requests.decisions import types as decision_types
from tenants.requests.renewals import actions as renewal_actions
from tests.support.http.callers import caller
from tests.support.rows import make

DAY = timedelta(days=1)


def text(response: object) -> str:
    return " ".join(response.content.decode().split())  # type: ignore[attr-defined]


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def exact(at: Any) -> str:
    return f"{timezone.localtime(at):%-d %b %Y, %H:%M}"


def test_every_grant_shows_its_last_day(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    now = timezone.now()
    base = make.grant(team_a, a100, units=4)
    boost = make.grant(team_a, a100, units=2, since=now + DAY, until=now + 2 * DAY, kind=Grant.Kind.BOOST)
    Grant.objects.filter(pk=boost.pk).update(grace=timedelta(0))
    make.grant(team_a, a100, units=9, since=now - 9 * DAY, until=now - 2 * DAY, kind=Grant.Kind.BOOST)
    page = text(signed_in(alice).get("/teams/team-a/grants"))
    assert f"Nothing new starts on it after {exact(base.period.upper)}" in page
    assert f"What runs then goes on until {exact(base.period.upper + DAY)}" in page
    assert "Volumes and what is on them stay" in page
    assert "4 GPUs" in page
    assert "2 GPUs" in page
    assert "this grant states no grace" in page
    assert "9 GPUs" not in page, "a grant whose grace is over is no more"
    assert page.count("Renew</button>") == 1, "a boost is not renewed"


def test_a_grant_in_its_grace_says_so(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    now = timezone.now()
    make.grant(team_a, a100, units=4, since=now - 9 * DAY, until=now - timedelta(hours=3))
    page = text(signed_in(alice).get("/teams/team-a/grants"))
    assert f"It ended on {exact(now - timedelta(hours=3))}" in page
    assert "over, in its grace" in page
    assert "This grant is over; file a new request." in page


def test_a_team_without_grants_is_told_so(team_a: Tenant, alice: User) -> None:
    assert "Nothing is granted" in text(signed_in(alice).get("/teams/team-a/grants"))


def test_a_stranger_sees_neither_grants_nor_renews_them(team_a: Tenant, a100: GpuClass, charlie: User) -> None:
    grant = make.grant(team_a, a100, units=4)
    client = signed_in(charlie)
    assert client.get("/teams/team-a/grants").status_code == 404
    assert client.post(f"/teams/team-a/grants/{grant.pk}/renew").status_code == 404
    assert caller(charlie, Scope.READ).get("/api/v1/teams/team-a/grants").status_code == 404


def test_the_api_says_the_same(team_a: Tenant, a100: GpuClass, bob: User) -> None:
    grant = make.grant(team_a, a100, units=4)
    [found] = caller(bob, Scope.READ).get("/api/v1/teams/team-a/grants").json()["items"]
    assert found["gpu_class"] == a100.slug
    assert (found["id"], found["units"], found["kind"], found["state"]) == (grant.pk, 4, "base", "now")
    assert found["request"] is None
    row = timeline_queries.grant_rows(team_a, at=queries.database_now())[0]
    assert row.runs_until - row.ends == DAY


def test_queries_do_not_grow_with_the_number_of_grants(
    team_a: Tenant, a100: GpuClass, alice: User, django_assert_num_queries: Any
) -> None:
    now = timezone.now()
    make.grant(team_a, a100, units=4)
    for number in range(5):
        make.grant(team_a, a100, units=1, until=now + (number + 1) * DAY, kind=Grant.Kind.BOOST)
    with django_assert_num_queries(5):
        assert len(timeline_queries.grant_rows(team_a, at=now)) == 6


def test_renewal_is_one_click_and_a_request_like_any_other(
    team_a: Tenant, a100: GpuClass, alice: User, dana: User
) -> None:
    grant = make.grant(team_a, a100, units=4)
    answer = signed_in(alice).post(f"/teams/team-a/grants/{grant.pk}/renew", follow=True)
    filed = QuotaRequest.objects.get()
    assert answer.redirect_chain[-1][0] == f"/requests/{filed.pk}"
    [line] = filed.lines.all()
    assert (line.asked_units, line.kind, line.gpu_class) == (4, QuotaLine.Kind.BASE, a100)
    assert line.asked_from == grant.period.upper
    assert line.asked_until - line.asked_from == grant.period.upper - grant.period.lower
    assert Event.objects.filter(verb="request.filed").count() == 1
    assert dana.deliveries.count() == 1

    again = text(signed_in(alice).get("/teams/team-a/grants"))
    assert "Your team already waits for a decision" in again
    with pytest.raises(Refused, match="already waits"):
        renewal_actions.renew_grant("team-a", grant.pk, by=Actor(user=alice, via="page"))

    actions.decide_request(
        filed.pk,
        [decision_types.Decision(line.pk, approve=True)],
        by=Actor(user=dana, via="page"),
        over_promise=decision_types.OverPromise(is_ticked=True, reason="Nobody knows what is there."),
    )
    [first, second] = timeline_queries.grant_rows(team_a, at=queries.database_now())
    assert (first.ends, first.follows) == (second.starts, 4)
    assert second.request == filed.pk
    page = text(signed_in(alice).get("/teams/team-a/grants"))
    assert "a total of 4 GPUs is granted from then on" in page
    assert "What runs then counts for the total of 4 GPUs that follows." in page
    assert "A total of 4 is granted after it already." in page


def test_a_member_or_a_grant_of_a_class_that_goes_is_told_why_not(
    team_a: Tenant, a100: GpuClass, alice: User, bob: User
) -> None:
    grant = make.grant(team_a, a100, units=4)
    assert "owners and managers of the team" in text(signed_in(bob).get("/teams/team-a/grants"))
    with pytest.raises(Refused) as told:
        renewal_actions.renew_grant("team-a", grant.pk, by=Actor(user=bob, via="page"))
    assert told.value.refusal.status == 403
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle=GpuClass.LifeCycle.RETIRING)
    assert "is being retired: no grant is renewed." in text(signed_in(alice).get("/teams/team-a/grants"))
    assert signed_in(alice).post(f"/teams/team-a/grants/{grant.pk}/renew").status_code == 409
    assert not QuotaRequest.objects.exists()
