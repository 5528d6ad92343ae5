"""Hours of use, allocations and budgets, as rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, QuotaRequest, Tenant
from tenants.requests import actions as request_actions
from tenants.requests.types import RequestedLine
from tests.support.rows import running
from usage.reports.calendar_month import month_of
from usage.samples.models import UsageHour, UsageSample
from workloads.allocations import recording
from workloads.models import Run, TeamBudget, Workload

HOUR = timedelta(hours=1)


def file(tenant: Tenant, by: User, **units: int) -> QuotaRequest:
    """`units` by slug, with _ in place of -."""
    now = timezone.now()
    lines = [
        RequestedLine(slug.replace("_", "-"), number, now, now + timedelta(days=9)) for slug, number in units.items()
    ]
    return request_actions.file_request(tenant.slug, lines=lines, justification="Training.", by=Actor(by, "page"))


def the_hour(back: int = 0) -> datetime:
    return timezone.now().replace(minute=0, second=0, microsecond=0) - back * HOUR


def looked(gpu_class: GpuClass, hours: int = 30 * 24 + 1) -> None:
    """Marks the cluster as sampled in each of the last hours."""
    UsageHour.objects.bulk_create(
        UsageHour(cluster=gpu_class.cluster, hour=the_hour(back), minutes=60, last_minute=the_hour(back))
        for back in range(1, hours)
    )


def used(namespace: Namespace, gpu_class: GpuClass, *, peak: int, total: int, back: int = 1) -> None:
    UsageSample.objects.create(
        namespace=namespace, gpu_class=gpu_class, hour=the_hour(back), units_max=peak, units_sum=total, samples=60
    )


def ran(namespace: Namespace, gpu_class: GpuClass, by: User, *, units: int = 1, waited: timedelta) -> Run:
    """Makes a run of two hours that has ended; it was requested three hours ago and queued for `waited`."""
    found = running.workload(namespace, gpu_class, name=f"w{Workload.objects.count()}", by=by, units=units)
    start = timezone.now() - 3 * HOUR
    Run.objects.filter(workload=found).update(
        requested_at=start,
        admitted_at=start + waited,
        started_at=start + waited,
        ended_at=start + waited + 2 * HOUR,
        outcome="succeeded",
    )
    return held(found.runs.get())


def held(run: Run) -> Run:
    """Records its allocation from its start to its end, as where nothing queues."""
    recording.record_start(run.pk)
    recording.record_end(run.pk)
    return run


def budget(
    tenant: Tenant, *, amount: str = "100", cost: str = "0", at_limit: str = "tell", at: datetime | None = None,
    **fields: Any,
) -> TeamBudget:  # fmt: skip
    """Measured a minute before `at`, now by default, in the month of `at`."""
    at = at or timezone.now()
    month = month_of(at)
    values = {"cost": Decimal(cost), "month_since": month.since, "month_until": month.until}
    values |= {"measured_at": at - timedelta(minutes=1), **fields}
    return TeamBudget.objects.create(tenant=tenant, amount=Decimal(amount), at_limit=at_limit, **values)
