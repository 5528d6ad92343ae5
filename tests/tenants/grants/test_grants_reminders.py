"""Reminders 14, 7 and 1 days before the end of a base grant: each once, and none when the grant was replaced."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from accounts.events.queries import row_label
from accounts.events.texts import verb_text
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from portal.core.due import Deadline
from tenants.grants.queries import granted_units
from tenants.grants.reminders import actions as reminder_actions
from tenants.models import Grant, Membership, Namespace, Tenant
from tenants.provisioning import steps
from tests.support.rows import make

DAY = timedelta(days=1)
END = datetime(2026, 12, 24, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("length", "before_end", "days"),
    [
        (30, 15, None),
        (30, 14, 14),
        (30, 8, 14),
        (30, 7, 7),
        (30, 1.5, 7),
        (30, 1, 1),
        (30, 0.01, 1),
        (30, 0, None),
        (10, 9, None),
        (10, 6, 7),
        (3, 2, None),
        (3, 0.5, 1),
        (0.5, 0.1, None),
    ],
)
def test_the_latest_moment_that_has_come_and_lies_in_the_grant(
    length: float, before_end: float, days: int | None
) -> None:
    assert reminder_actions.reminder_days_due(END - length * DAY, END, END - before_end * DAY) == days


def ending(team: Tenant, gpu_class: GpuClass, *, in_days: float, units: int = 4) -> Grant:
    now = timezone.now()
    return make.grant(team, gpu_class, units=units, since=now - 30 * DAY, until=now + in_days * DAY)


def remind(namespace: Namespace) -> list[str]:
    """Sends the reminders that are due and returns their recipients."""
    before = set(Delivery.objects.values_list("pk", flat=True))
    now = timezone.now()
    reminder_actions.send_due_reminders(namespace, granted_units(namespace.tenant_id, now).bases, now)
    return sorted(row.user.email for row in Delivery.objects.exclude(pk__in=before) if row.user)


def move_end(grant: Grant, *, in_days: float) -> None:
    end = timezone.now() + in_days * DAY
    Grant.objects.filter(pk=grant.pk).update(period=DateTimeTZRange(grant.period.lower, end))


def test_owners_and_managers_are_reminded_once_each_time(
    team_a: Tenant, a100: GpuClass, namespace_a: Namespace, charlie: User
) -> None:
    make.member(team_a, charlie, Membership.Role.MANAGER)
    grant = ending(team_a, a100, in_days=15)
    assert remind(namespace_a) == []
    for in_days in (13.9, 6.9, 0.9):
        move_end(grant, in_days=in_days)
        assert remind(namespace_a) == ["alice@example.org", "charlie@example.org"]
        assert remind(namespace_a) == []
    assert [event.after["days"] for event in Event.objects.order_by("pk")] == [14, 7, 1]
    last = Delivery.objects.latest("pk")
    assert "The grant of 4 units" in last.body
    assert "/teams/team-a/grants" in last.body
    assert last.due_at is not None
    assert last.due_at <= timezone.now()


def test_after_a_long_break_only_the_latest_is_sent(team_a: Tenant, a100: GpuClass, namespace_a: Namespace) -> None:
    ending(team_a, a100, in_days=0.5)
    assert remind(namespace_a) == ["alice@example.org"]
    assert [event.after["days"] for event in Event.objects.all()] == [1]


def test_a_grant_that_another_follows_is_not_reminded_of(
    team_a: Tenant, a100: GpuClass, namespace_a: Namespace
) -> None:
    grant = ending(team_a, a100, in_days=6)
    follower = make.grant(team_a, a100, units=4, since=grant.period.upper)
    assert remind(namespace_a) == []
    follower.delete()
    assert remind(namespace_a) == ["alice@example.org"]


def test_a_boost_and_another_teams_grant_are_not_reminded_of(
    team_a: Tenant, a100: GpuClass, namespace_a: Namespace
) -> None:
    now = timezone.now()
    make.grant(team_a, a100, units=2, since=now - 30 * DAY, until=now + DAY, kind=Grant.Kind.BOOST)
    ending(make.tenant(a100.cluster, slug="team-b"), a100, in_days=1)
    assert remind(namespace_a) == []


def tell(namespace: Namespace) -> list[str]:
    """Sends the reminders that are due and returns their subjects and recipients."""
    before = set(Delivery.objects.values_list("pk", flat=True))
    reminder_actions.notify_ended_grants(namespace, granted_units(namespace.tenant_id, timezone.now()).ended)
    sent = Delivery.objects.exclude(pk__in=before).order_by("pk")
    return [f"{row.subject}: {row.user.email}" for row in sent if row.user]


@pytest.mark.parametrize("grace", [timedelta(0), 3 * DAY])
@pytest.mark.parametrize("kind", [Grant.Kind.BASE, Grant.Kind.BOOST])
def test_an_end_is_told_once(
    team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kind: Grant.Kind, grace: timedelta
) -> None:
    now = timezone.now()
    grant = make.grant(team_a, a100, units=2, since=now - 30 * DAY, until=now + DAY, kind=kind)
    Grant.objects.update(grace=grace)
    assert tell(namespace_a) == []
    move_end(grant, in_days=-0.001)
    word = "temporary increase" if kind == Grant.Kind.BOOST else "grant"
    assert tell(namespace_a) == [f"Expired: {word} of {a100.name} for Team A: alice@example.org"]
    assert tell(namespace_a) == []
    event = Event.objects.get(verb="grant.ended")
    assert (event.tenant, event.name, event.after["units"]) == ("team-a", f"2 × {a100}", 2)


def test_an_end_long_ago_is_told_no_more(team_a: Tenant, a100: GpuClass, namespace_a: Namespace) -> None:
    ending(team_a, a100, in_days=-1.1)
    assert tell(namespace_a) == []


def test_an_end_that_a_decision_brought_about_is_recorded_and_not_told_again(
    team_a: Tenant, a100: GpuClass, namespace_a: Namespace
) -> None:
    grant = ending(team_a, a100, in_days=-0.01)
    make.grant(team_a, a100, units=1, since=grant.period.upper)
    assert tell(namespace_a) == []
    event = Event.objects.get(verb="grant.ended")
    assert event.after["cause"] == "replaced"
    assert "expiry" not in verb_text(event.verb, event.after)


def test_each_cause_of_an_end_has_a_sentence_of_its_own(team_a: Tenant, a100: GpuClass, namespace_a: Namespace) -> None:
    expired = ending(team_a, a100, in_days=-0.01)
    other = make.gpu_class(a100.cluster, slug="other")
    closed = ending(team_a, other, in_days=-0.02)
    Namespace.objects.update(closes_at=closed.period.upper, volumes_until=closed.period.upper, wanted="closed")
    tell(namespace_a)
    found = {event.row: event for event in Event.objects.filter(verb="grant.ended")}
    causes = {grant: found[row_label(grant)].after["cause"] for grant in (expired, closed)}
    assert causes == {expired: "expired", closed: "closed"}
    sentences = {
        verb_text("grant.ended", {"cause": cause}) for cause in ("", "expired", "replaced", "reduced", "closed")
    }
    assert len(sentences) == 5


@pytest.mark.usefixtures("clean_cluster")
def test_the_worker_reminds_when_it_looks_at_the_namespace(
    team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube
) -> None:
    ending(team_a, a100, in_days=6)
    for _ in range(2):
        steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
    subjects = [row.subject.split(" expires on ")[0] for row in Delivery.objects.all()]
    assert subjects == [f"The grant of {a100.name} for Team A"]


@pytest.mark.usefixtures("clean_cluster")
def test_the_worker_tells_of_an_end(team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube) -> None:
    ending(team_a, a100, in_days=-0.01)
    for _ in range(2):
        steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
    assert [row.subject for row in Delivery.objects.all()] == [f"Expired: grant of {a100.name} for Team A"]
