"""What is measured of a budget is the team's report to the cent, owners are told once, and the history is not read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Delivery, Event, Notice, User
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.celery import app
from tenants.models import Membership, Tenant
from tests.support.rows import make
from tests.usage.reports import october
from tests.usage.reports.october import HOUR, NOVEMBER, NOW, OCTOBER, ran
from tests.usage.reports.test_reports import HISTORY, PER_DAY, TEAMS, intervals_read, queries_of
from usage.reports import budgets, queries
from usage.reports.queries import read_report
from workloads.models import TeamBudget

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def berlin(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    at(monkeypatch, NOW)


def at(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    for module in (queries, budgets):
        monkeypatch.setattr(module, "timezone", SimpleNamespace(now=lambda: now))


def budget(tenant: Tenant, amount: str, **fields: Any) -> TeamBudget:
    Tenant.objects.filter(pk=tenant.pk).update(created_at=OCTOBER - timedelta(days=99))
    return TeamBudget.objects.create(tenant=tenant, amount=Decimal(amount), **fields)


def told(user: User) -> list[str]:
    return list(Notice.objects.filter(user=user).order_by("pk").values_list("subject", flat=True))


def mails() -> list[tuple[str, str]]:
    return list(Delivery.objects.order_by("pk").values_list("user__email", "subject"))


def test_it_is_the_report_to_the_cent(cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User, bob: User) -> None:
    team_b = october.october(cluster, team_a, a100, alice, bob)
    for tenant in (team_a, team_b):
        budget(tenant, "100000")
    budgets.measure_budgets()
    for tenant in (team_a, team_b):
        row = TeamBudget.objects.get(tenant=tenant)
        assert row.cost == read_report(tenant, None).total.cost > 0
        assert (row.month_since, row.month_until, row.measured_at) == (OCTOBER, NOVEMBER, NOW)
        assert row.recent_since == NOW - timedelta(days=7)
    # Of its last seven days: 8 hours at 3.1111, and a slice for 5 h 1 min at 0.3333.
    assert TeamBudget.objects.get(tenant=team_a).recent_cost == Decimal("24.89") + Decimal("1.67")
    assert TeamBudget.objects.get(tenant=team_b).recent_cost == 0


def test_owners_are_told_once_of_each_threshold(
    monkeypatch: pytest.MonkeyPatch, team_a: Tenant, a100: GpuClass, alice: User, bob: User
) -> None:
    """Alice is an owner, Bob a member."""
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="1")
    budget(team_a, "10", at_limit="stop")
    assert Membership.objects.get(user=alice).role == Membership.Role.OWNER
    ran(team_a.namespaces.get(), a100, alice, NOW - 4 * HOUR, None)
    expected: list[str] = []
    # 4, 5, 5.5, 9, 10 and 30 of 10: 50 %, then 80 %, 100 %, and nothing more.
    for later, percent in ((0, 0), (1, 50), (1.5, 0), (5, 80), (6, 100), (26, 0)):
        at(monkeypatch, NOW + later * HOUR)
        budgets.measure_budgets()
        budgets.measure_budgets()
        if percent:
            expected.append(f"Team A has used {percent}% of its budget")
        events = Event.objects.filter(verb="budget.reached", tenant="team-a")
        assert [one.after["percent"] for one in events.order_by("pk")] == [
            int(text.split("%")[0].split()[-1]) for text in expected
        ]
    assert told(alice)[-1] == expected[-1]
    assert told(bob) == []
    assert {email for email, _subject in mails()} == {alice.email}
    body = "\n".join(Delivery.objects.values_list("body", flat=True))
    assert "10.00 of its budget of 10.00 for October 2026" in body
    assert "nothing starts until the end of the month" in body
    assert f"{settings.PORTAL_URL}/teams/team-a/usage" in body


def test_a_leap_is_told_once_with_the_highest(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="1")
    budget(team_a, "4")
    ran(team_a.namespaces.get(), a100, alice, NOW - 5 * HOUR, None)
    budgets.measure_budgets()
    assert told(alice) == ["Team A has used 100% of its budget"]


def test_the_next_month_begins_anew(
    monkeypatch: pytest.MonkeyPatch, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="1")
    budget(team_a, "1", at_limit="confirm")
    ran(team_a.namespaces.get(), a100, alice, NOVEMBER - 3 * HOUR, None)
    at(monkeypatch, NOVEMBER - HOUR)
    budgets.measure_budgets()
    TeamBudget.objects.update(confirmed_at=NOVEMBER - HOUR, confirmed_by=alice)
    at(monkeypatch, NOVEMBER + HOUR / 4)
    budgets.measure_budgets()
    row = TeamBudget.objects.get()
    assert (row.cost, row.month_since, row.told_percent) == (Decimal("0.25"), NOVEMBER, 0)
    assert (row.confirmed_at, row.confirmed_by) == (None, None)
    assert len(Event.objects.filter(verb="budget.reached")) == 1


def test_an_older_measurement_replaces_nothing(
    monkeypatch: pytest.MonkeyPatch, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="1")
    budget(team_a, "100")
    ran(team_a.namespaces.get(), a100, alice, NOW - 3 * HOUR, None)
    budgets.measure_budgets()
    at(monkeypatch, NOW - HOUR)
    budgets.measure_budgets()
    assert TeamBudget.objects.get().cost == 3


def test_a_young_team_is_known_since_it_was_created(team_a: Tenant) -> None:
    budget(team_a, "100")
    Tenant.objects.update(created_at=NOW - 5 * HOUR)
    budgets.measure_budgets()
    assert TeamBudget.objects.get().recent_since == NOW - 5 * HOUR


def test_the_page_reads_one_row_more_and_shows_it(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    client = Client()
    client.force_login(alice)
    now = timezone.now()
    ran(team_a.namespaces.get(), a100, alice, now - HOUR, None)
    page = "/teams/team-a/usage"
    with pytest.MonkeyPatch.context() as patched:
        at(patched, now)
        without = queries_of(client, page)
        budget(team_a, "12.5", at_limit="tell")
        budgets.measure_budgets()
        assert queries_of(client, page) == without
        text = client.get(page).text
    assert "12.50 a month" in text
    assert "0.00 (0%)" in text
    assert "the mean of the last 7 days" in text


def test_only_the_month_and_the_last_days_of_these_teams_are_read(cluster: Cluster, a100: GpuClass) -> None:
    teams = [make.tenant(cluster, slug=f"t{number}", namespace=f"t{number}-history") for number in range(TEAMS)]
    begin = datetime(2025, 12, 1, tzinfo=UTC)
    days = (NOW - begin).days
    values = {"class": a100.pk, "begin": begin, "step": timedelta(days=1) / PER_DAY, "count": days * PER_DAY}
    with connection.cursor() as cursor:
        cursor.execute(HISTORY, values)
        cursor.execute("ANALYZE workloads_allocationinterval, tenants_namespace")
    for tenant in teams[:2]:
        budget(tenant, "1000000")
    with CaptureQueriesContext(connection) as asked:
        budgets.measure_budgets()
    costs = [one["sql"] for one in asked if "cost_seconds" in one["sql"]]
    # A statement for the month, and one for the last seven days.
    assert len(costs) == 2
    for statement, period in zip(costs, (27, 7), strict=True):
        assert 0 < intervals_read(statement) <= 2 * (period * PER_DAY + 5)
    # Two for each budget, and a savepoint around them.
    assert len(asked) == 3 + 2 * 4


def test_without_a_budget_nothing_is_computed(team_a: Tenant, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        budgets.measure_budgets()


def test_beat_asks_for_it_every_five_minutes(team_a: Tenant) -> None:
    [entry] = [one for one in settings.CELERY_BEAT_SCHEDULE.values() if one["task"] == "usage.budgets.measure"]
    assert (entry["schedule"], entry["options"]["queue"]) == (300.0, "background")
    budget(team_a, "1")
    app.autodiscover_tasks(force=True)
    app.tasks[entry["task"]].run()
    assert TeamBudget.objects.get().measured_at == NOW
