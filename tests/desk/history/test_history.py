"""The history as members, strangers and staff read it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.events.actions import record
from accounts.models import Event, User
from cluster.models import Cluster
from tenants.members import actions
from tenants.members.invitations import actions as invitation_actions
from tenants.models import Tenant
from tests.support.rows import make


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


@pytest.fixture
def events(team_a: Tenant, cluster: Cluster, alice: User, bob: User, charlie: User) -> None:
    other = make.tenant(cluster, slug="team-c", namespace=f"{team_a.namespaces.get().name}-c")
    make.member(other, charlie, role="owner")  # type: ignore[arg-type]
    actions.set_role("team-a", user_id=bob.pk, role="manager", by=page(alice))
    record(page(bob), "workload.launched", team_a, tenant="team-a", after={"units": 2})
    record(system_actor("rule"), "namespace.changed", team_a.namespaces.get(), tenant="team-a")
    invitation_actions.ask_to_join("team-a", message="Please.", by=page(charlie))


@pytest.mark.usefixtures("events")
def test_a_member_reads_who_changed_what(bob: User) -> None:
    shown = text(as_(bob).get("/teams/team-a/history"))
    assert "<b>Alice</b> changed a member&#x27;s role in" in shown
    assert "Role: member" in shown
    assert "Units: 2" in shown
    assert shown.count("system rule") == 1
    assert shown.index("requested to join") < shown.index("changed a member")


def test_a_sign_in_is_told_without_a_name_and_many_values_are_folded(dana: User, charlie: User) -> None:
    record(page(charlie), "account.signed_in", charlie, after={"address": "10.0.0.1"})
    record(system_actor("file"), "class.created", charlie, after={f"field_{number}": number for number in range(5)})
    shown = text(as_(dana).get("/history"))
    assert "<b>Charlie</b> signed in <p" in shown.replace("</a> ", "")
    assert "<summary>5 values</summary>" in shown


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize(
    ("query", "seen", "unseen"),
    [
        ("subject=people", "requested to join", "launched"),
        ("subject=workloads", "launched", "requested to join"),
        ("who=ali", "changed a member", "launched"),
        ("who=nobody", "No matching events", "<b>Alice</b>"),
        ("since=2999-01-01", "No matching events", "<b>Alice</b>"),
        ("until=2020-01-01", "No matching events", "<b>Alice</b>"),
        ("since=nonsense&until=2026-02-31&subject=x", "requested to join", "No matching events"),
    ],
)
def test_filters(bob: User, query: str, seen: str, unseen: str) -> None:
    shown = text(as_(bob).get(f"/teams/team-a/history?{query}"))
    assert seen in shown
    assert unseen not in shown


@pytest.mark.usefixtures("events")
def test_today_is_within_from_and_to(bob: User) -> None:
    today = timezone.localdate()
    assert "requested to join" in text(as_(bob).get(f"/teams/team-a/history?since={today}&until={today}"))
    tomorrow = today + timedelta(days=1)
    assert "requested to join" not in text(as_(bob).get(f"/teams/team-a/history?since={tomorrow}"))


@pytest.mark.usefixtures("events")
def test_a_stranger_reads_what_they_did_themselves(charlie: User) -> None:
    client = as_(charlie)
    assert client.get("/teams/team-a/history").status_code == 404
    shown = text(client.get("/history"))
    assert "requested to join" in shown
    assert "Alice" not in shown
    assert "launched" not in shown


@pytest.mark.usefixtures("events")
def test_staff_read_everything(dana: User) -> None:
    shown = text(as_(dana).get("/history"))
    assert "All actions in all teams." in shown
    assert "launched" in shown
    assert "changed a member" in shown


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("path", ["/teams/team-a/history", "/history"])
def test_the_cost_does_not_grow_with_the_events(
    team_a: Tenant, bob: User, alice: User, path: str, django_assert_max_num_queries: Any
) -> None:
    Event.objects.bulk_create(
        Event(actor="Bob", via="page", verb="workload.started", tenant="team-a", row=f"workloads.workload.{number}")
        for number in range(120)
    )
    client = as_(bob)
    # session, user; team or teams; events; workloads that have a page; teams of the bar; namespaces and drift of a team
    with django_assert_max_num_queries(8):
        first = text(client.get(path))
    assert first.count("restarted") == 50
    assert "cursor=" in first
