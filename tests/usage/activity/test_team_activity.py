"""What a team held and how much of it was busy, by day: compared with sums of single hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace, Tenant
from tests.support.rows import make
from tests.usage.telemetry.rows import TIME_SLICED, held_run
from usage.activity.queries import team_activity, team_classes
from usage.telemetry.models import RunHour
from workloads.models import Run

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def measured(run: Run, hour: datetime, *, minutes: int, percent: float, measure: str = "utilisation") -> None:
    RunHour.objects.create(
        run=run,
        hour=hour,
        namespace=run.workload.namespace,
        gpu_class=run.workload.gpu_class,
        measure=measure,
        seen_minutes=(1 << minutes) - 1,
        busy_minutes=(1 << minutes) - 1 if percent >= 5 else 0,
        activity_sum=percent * minutes,
        activity_max=percent,
        busy_devices_max=1,
    )


def test_days_are_sums_of_their_hours(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    first = held_run(namespace_a, a100, alice, NOW - DAY - 3 * HOUR, NOW - DAY + 12 * HOUR, units=2)
    second = held_run(namespace_a, a100, alice, NOW - 2 * HOUR)
    measured(first, NOW.replace(minute=0) - DAY, minutes=60, percent=50)
    measured(first, NOW.replace(minute=0) - DAY + HOUR, minutes=30, percent=10)
    measured(second, NOW.replace(minute=0), minutes=30, percent=80)
    rows = [(one.day, one.held, one.measured, one.busy) for one in team_activity(namespace_a, at=NOW)]
    midnight = datetime(2026, 11, 20, tzinfo=UTC)
    # Yesterday from 12:30, 2 units for 11.5 hours; today until 03:30 and one unit for two hours.
    assert rows == [
        (midnight - DAY, Decimal(23), 3.0, pytest.approx(1.1)),
        (midnight, Decimal(9), 0.5, pytest.approx(0.4)),
    ]
    [found] = team_classes(namespace_a, at=NOW)
    assert (found.held, found.measured, found.busy_percent) == (32.0, 3.5, pytest.approx(100 * 1.5 / 3.5))


def test_a_day_with_a_change_of_the_clock_has_25_hours(
    namespace_a: Namespace, a100: GpuClass, alice: User, settings: Any
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    timezone.get_default_timezone.cache_clear()
    try:
        held_run(namespace_a, a100, alice, datetime(2026, 10, 20, tzinfo=UTC))
        with timezone.override("Europe/Berlin"):
            days = {one.day: one.held for one in team_activity(namespace_a, at=datetime(2026, 10, 27, 10, tzinfo=UTC))}
        assert days[datetime(2026, 10, 24, 22, tzinfo=UTC)] == 25
        assert days[datetime(2026, 10, 23, 22, tzinfo=UTC)] == 24
    finally:
        settings.TIME_ZONE = "UTC"
        timezone.get_default_timezone.cache_clear()


def test_shared_gpus_are_not_measured_by_team(cluster: Cluster, namespace_a: Namespace, alice: User) -> None:
    run = held_run(namespace_a, make.gpu_class(cluster, slug="shared", **TIME_SLICED), alice, NOW - HOUR)
    measured(run, NOW.replace(minute=0), minutes=30, percent=90, measure="shared")
    [found] = team_classes(namespace_a, at=NOW)
    assert (found.held, found.measured, found.busy_percent) == (1.0, 0.0, None)


@pytest.mark.parametrize("number", [1, 30])
def test_one_query_for_30_days_of_one_team(
    namespace_a: Namespace,
    a100: GpuClass,
    alice: User,
    cluster: Cluster,
    number: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    other = make.tenant(cluster, slug="other", namespace="other").namespaces.get()
    held_run(other, a100, alice, NOW - 9 * DAY)
    for back in range(number):
        held_run(namespace_a, a100, alice, NOW - (back + 1) * DAY, NOW - back * DAY)
    held_run(namespace_a, a100, alice, NOW - 50 * DAY, NOW - 40 * DAY)
    with django_assert_num_queries(1):
        rows = team_activity(namespace_a, at=NOW)
    assert sum(one.held for one in rows) == pytest.approx(24 * number - (8.5 if number == 30 else 0), abs=0.51)


def test_the_fragment_and_the_api(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, charlie: User, client: Client
) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0) - HOUR
    run = held_run(namespace_a, a100, alice, hour, hour + HOUR)
    measured(run, hour, minutes=60, percent=25)
    client.force_login(alice)
    assert 'hx-get="/teams/team-a/activity"' in client.get("/teams/team-a").content.decode()
    page = client.get("/teams/team-a/activity").content.decode()
    assert "0 of 1 measured unit-hours were busy (25 %)" in page
    assert 'data-y="0.25"' in page
    [row] = client.get("/api/v1/teams/team-a/activity").json()
    assert (row["gpu_class"], row["held"], row["measured"], row["busy"]) == (a100.slug, 1.0, 1.0, 0.25)
    client.force_login(charlie)
    assert client.get("/teams/team-a/activity").status_code == 404
    assert client.get("/api/v1/teams/team-a/activity").status_code == 404
