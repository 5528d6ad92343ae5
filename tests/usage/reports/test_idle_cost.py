"""The part of a cost that was measured and not used: from rows, to the cent, on page, API and CSV."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace, Tenant
from tests.support.rows import make
from tests.usage.activity.test_team_activity import measured
from tests.usage.telemetry.rows import TIME_SLICED, held_run
from usage.reports import queries
from usage.reports.queries import read_report
from usage.telemetry.models import RunHour
from workloads.models import AllocationInterval

OCTOBER = datetime(2026, 10, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _november(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "timezone", SimpleNamespace(now=lambda: NOW))


def test_32_gpus_that_were_used_by_48_percent(
    namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    """730 hours at 3.06: 71,481.60, of which 37,170.43 were not used."""
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="3.0600")
    a100.refresh_from_db()
    runs = [held_run(namespace_a, a100, alice, OCTOBER, OCTOBER + 730 * HOUR) for _ in range(32)]
    RunHour.objects.bulk_create(
        RunHour(
            run=run, hour=OCTOBER + number * HOUR, namespace=namespace_a, gpu_class=a100, measure="utilisation",
            seen_minutes=(1 << 60) - 1, busy_minutes=(1 << 60) - 1, activity_sum=48.0 * 60, activity_max=48,
            busy_devices_max=1,
        )
        for run in runs
        for number in range(730)
    )  # fmt: skip
    report = read_report(namespace_a.tenant, "2026-10")
    assert [(one.cost, one.measured_cost, one.idle_cost) for one in report.lines] == [
        (Decimal("71481.60"), Decimal("71481.60"), Decimal("37170.43"))
    ]
    client.force_login(alice)
    page = client.get("/teams/team-a/usage?month=2026-10").content.decode()
    assert '37170.43<span class="sub">of 71481.60 measured</span>' in page
    found = client.get("/api/v1/teams/team-a/usage-report?month=2026-10").json()
    assert found["totals"]["all"]["idle_cost"] == found["lines"][0]["idle_cost"] == "37170.43"
    text = client.get("/api/v1/teams/team-a/usage-report.csv?month=2026-10").content.decode()
    [row] = csv.DictReader(text.lstrip("\ufeff").splitlines())
    assert (row["cost"], row["measured_cost"], row["idle_cost"]) == ("71481.60", "71481.60", "37170.43")


def test_what_was_not_measured_is_no_idle_cost(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User, client: Client
) -> None:
    GpuClass.objects.update(price_per_unit_hour="6.0000")
    a100.refresh_from_db()
    shared = make.gpu_class(cluster, slug="shared", price_per_unit_hour="6.0000", **TIME_SLICED)
    run = held_run(namespace_a, a100, alice, OCTOBER, OCTOBER + 4 * HOUR, units=2)
    measured(run, OCTOBER + HOUR, minutes=30, percent=25)
    # An activity of 0 that was measured is idle.
    measured(run, OCTOBER + 2 * HOUR, minutes=10, percent=0)
    measured(
        held_run(namespace_a, shared, alice, OCTOBER, OCTOBER + HOUR), OCTOBER, minutes=60, percent=1, measure="shared"
    )
    held_run(namespace_a, a100, bob, OCTOBER, OCTOBER + HOUR)
    lines = {(one.email, one.gpu_class): one for one in read_report(None, "2026-10").lines}
    found = {key: (one.cost, one.measured_cost, one.idle_cost) for key, one in lines.items()}
    # Two units at 6.00: half an hour at 25 % and ten minutes at 0.
    assert found == {
        (alice.email, a100.slug): (Decimal("48.00"), Decimal("8.00"), Decimal("6.50")),
        (alice.email, "shared"): (Decimal("6.00"), Decimal("0.00"), Decimal("0.00")),
        (bob.email, a100.slug): (Decimal("6.00"), Decimal("0.00"), Decimal("0.00")),
    }
    client.force_login(alice)
    assert client.get("/teams/team-a/usage?month=2026-10").content.decode().count("not measured") >= 2


def test_hours_belong_to_the_month_and_price_of_their_interval(
    namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """A run over the end of the month; its price is that of its launch."""
    GpuClass.objects.update(price_per_unit_hour="6.0000")
    a100.refresh_from_db()
    run = held_run(namespace_a, a100, alice, OCTOBER - 2 * HOUR, OCTOBER + 2 * HOUR)
    GpuClass.objects.update(price_per_unit_hour="600.0000")
    for number in range(-2, 2):
        measured(run, OCTOBER + number * HOUR, minutes=60, percent=50)
    for month in ("2026-09", "2026-10"):
        [line] = read_report(None, month).lines
        assert (line.cost, line.measured_cost, line.idle_cost) == (Decimal(12), Decimal(12), Decimal(6))


def test_two_intervals_of_a_run_count_its_hours_once(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    """Preempted and resumed, with another priority."""
    GpuClass.objects.update(price_per_unit_hour="6.0000")
    a100.refresh_from_db()
    run = held_run(namespace_a, a100, alice, OCTOBER, OCTOBER + HOUR)
    second = AllocationInterval.objects.get(run=run)
    second.pk, second.starts_at, second.ends_at = None, OCTOBER + 2 * HOUR, OCTOBER + 3 * HOUR
    second.priority = "production"
    second.save()
    for number in (0, 2):
        measured(run, OCTOBER + number * HOUR, minutes=60, percent=0)
    total = read_report(None, "2026-10").total
    assert (total.cost, total.measured_cost, total.idle_cost) == (Decimal(12), Decimal(12), Decimal(12))


@pytest.mark.parametrize("number", [1, 20])
def test_it_takes_no_further_query(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, number: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:  # fmt: skip
    for _ in range(number):
        measured(held_run(namespace_a, a100, alice, OCTOBER, OCTOBER + HOUR), OCTOBER, minutes=60, percent=50)
    with django_assert_num_queries(2):
        found: Any = read_report(team_a, "2026-10")
    assert len(found.lines) == 1
