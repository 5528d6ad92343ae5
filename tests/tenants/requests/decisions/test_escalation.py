"""A request that waits too long is shown as overdue, and everyone who may decide it is notified once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from portal.core.due import DONE, Deadline
from tenants.models import Plan, QuotaRequest, Tenant
from tenants.provisioning import steps
from tenants.requests import actions
from tenants.requests import queries as request_queries
from tenants.requests.comments import actions as comment_actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision
from tenants.requests.escalation import actions as escalation_actions
from tenants.requests.escalation.working_days import after_working_days
from tenants.requests.types import RequestedLine
from tests.support.rows import make
from tests.support.threads import in_threads

BERLIN = ZoneInfo("Europe/Berlin")


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def berlin(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("start", "days", "expected"),
    [
        ("2026-11-16T15:00", 1, "2026-11-17T15:00"),  # Monday
        ("2026-11-16T15:00", 3, "2026-11-19T15:00"),
        ("2026-11-19T15:00", 3, "2026-11-24T15:00"),  # over a weekend
        ("2026-11-20T23:59", 1, "2026-11-23T23:59"),  # Friday
        ("2026-11-21T10:00", 3, "2026-11-26T00:00"),  # Saturday: counts from Monday 00:00
        ("2026-11-22T23:00", 1, "2026-11-24T00:00"),
        ("2026-11-16T15:00", 10, "2026-11-30T15:00"),
        ("2026-10-23T15:00", 1, "2026-10-26T15:00"),  # daylight saving time ends in between
        ("2026-03-27T15:00", 1, "2026-03-30T15:00"),  # daylight saving time begins in between
    ],
)
def test_working_days_are_monday_to_friday_of_the_zone(start: str, days: int, expected: str) -> None:
    found = after_working_days(berlin(start).astimezone(UTC), days, BERLIN)
    assert found == berlin(expected)


def test_the_zone_says_what_day_it_is() -> None:
    """The instant is Sunday evening in UTC and Monday morning in Berlin."""
    late = datetime(2026, 11, 22, 23, 30, tzinfo=UTC)
    assert after_working_days(late, 1, UTC) == datetime(2026, 11, 24, tzinfo=UTC)
    assert after_working_days(late, 1, BERLIN) == berlin("2026-11-24T00:30")


# ---- escalation after working days -------------------------------------------------------------------------------


@pytest.fixture
def filed(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> QuotaRequest:
    GpuClass.objects.update(promise_limit=8)
    now = timezone.now()
    asked = RequestedLine(a100.slug, 2, now, now + timedelta(days=60))
    found = actions.file_request("team-a", lines=[asked], justification="Two trainings.", by=page(alice))
    Delivery.objects.all().delete()
    return found


def wait(filed: QuotaRequest, days: float = 10) -> None:
    QuotaRequest.objects.filter(pk=filed.pk).update(filed_at=timezone.now() - timedelta(days=days))
    filed.refresh_from_db()


def told() -> set[str]:
    return {one.user.name for one in Delivery.objects.all() if one.user}


def test_all_approvers_and_the_administrators_are_told_once(
    filed: QuotaRequest, team_a: Tenant, a100: GpuClass, dana: User, olga: User
) -> None:
    other = make.gpu_class(a100.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    dora, inside = make.approver("Dora", gpu_class=other), make.approver("Inga")
    make.member(team_a, inside)
    make.deputy(make.user("Dave"), of=dora)
    assert escalation_actions.escalate_if_overdue(filed) == request_queries.overdue_at(filed.filed_at)
    assert told() == set()
    wait(filed)
    assert escalation_actions.escalate_if_overdue(filed) is None
    assert escalation_actions.escalate_if_overdue(filed) is None
    assert told() == {"Dana", "Dora", "Dave", "Olga"}
    assert Delivery.objects.count() == 4
    event = Event.objects.get(verb="request.overdue")
    assert (event.actor, event.tenant, event.after) == ("system escalation", "team-a", {"days": 3})


def test_the_setting_says_how_long(filed: QuotaRequest, settings: LazySettings) -> None:
    wait(filed)
    settings.ESCALATE_AFTER_WORKING_DAYS = 20
    due_at = escalation_actions.escalate_if_overdue(filed)
    assert due_at is not None
    assert due_at > timezone.now()
    assert told() == set()


def test_who_was_asked_back_waits_for_nobody_else(filed: QuotaRequest, alice: User, dana: User) -> None:
    comment_actions.comment_request(filed.pk, text="For what?", asks_back=True, by=page(dana))
    Delivery.objects.all().delete()
    wait(filed)
    escalation_actions.escalate_if_overdue(filed)
    assert told() == set()
    [row] = request_queries.request_rows([filed], by=page(dana))
    assert row.overdue_since is None
    comment_actions.comment_request(filed.pk, text="For a paper.", by=page(alice))
    Delivery.objects.all().delete()
    escalation_actions.escalate_if_overdue(filed)
    assert told() == {"Dana"}


def test_a_plan_looks_again_at_that_instant_and_rests_once_all_is_decided(
    filed: QuotaRequest, dana: User, kube_worker: Any, clean_cluster: None
) -> None:
    row = Plan.objects.get(request=filed)
    assert steps.work_on_plan(row, Deadline(), kube=kube_worker).clock == request_queries.overdue_at(filed.filed_at)
    wait(filed)
    assert steps.work_on_plan(Plan.objects.get(), Deadline(), kube=kube_worker).clock is None
    assert told() == {"Dana"}
    decision_actions.decide_request(
        filed.pk, [Decision(filed.lines.get().pk, approve=False, reason="No.")], by=page(dana)
    )
    assert steps.work_on_plan(Plan.objects.get(), Deadline(), kube=kube_worker) == DONE


def test_nobody_is_told_of_what_was_decided_in_time(filed: QuotaRequest, dana: User) -> None:
    decision_actions.decide_request(
        filed.pk, [Decision(filed.lines.get().pk, approve=False, reason="No.")], by=page(dana)
    )
    Delivery.objects.all().delete()
    wait(filed)
    escalation_actions.escalate_if_overdue(filed)
    assert told() == set()
    assert not Event.objects.filter(verb="request.overdue").exists()
    [row] = request_queries.request_rows([filed], by=page(dana))
    assert row.overdue_since is None


@pytest.mark.django_db(transaction=True)
def test_two_workers_who_race_tell_once(filed: QuotaRequest) -> None:
    wait(filed)
    looks = [lambda: escalation_actions.escalate_if_overdue(filed)] * 8
    in_threads(0, lambda: None, *looks)
    assert Event.objects.filter(verb="request.overdue").count() == 1
    assert Delivery.objects.count() == 1


def test_pages_show_it(filed: QuotaRequest, dana: User) -> None:
    client = Client()
    client.force_login(dana)
    for path in ("/inbox", f"/requests/{filed.pk}"):
        assert "Pending, overdue" not in client.get(path).text
    wait(filed)
    for path in ("/inbox", f"/requests/{filed.pk}"):
        assert "Pending, overdue" in client.get(path).text
    answer: Any = client.get(f"/api/v1/requests/{filed.pk}")
    assert datetime.fromisoformat(answer.json()["overdue_since"]) == request_queries.overdue_at(filed.filed_at)
