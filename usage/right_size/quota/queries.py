"""Reads how busy the GPUs were that teams held, and which smaller totals would have been enough for a team."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import F, Q
from django.utils import timezone

from catalog.classes.queries import unit_of
from catalog.models import GpuClass
from tenants.grants import promises
from tenants.grants import queries as grant_queries
from tenants.grants.overcommit.queries import promise_of
from tenants.models import Grant, Namespace, Tenant
from tenants.requests.policy import class_refusal
from usage.gpu_hours.interval_sql import PERIOD_HELD
from usage.right_size.quota.policy import least_units, smaller_total
from usage.right_size.quota.types import HeldActivity, QuotaUse, SmallerTotal
from usage.samples.queries import PERIOD, Usage, usage_of
from usage.telemetry.models import RunHour
from usage.telemetry.types import hour_of
from usage.waits.queries import LONG_WAIT
from workloads.models import AllocationInterval, Run

# The last instant of a grant that ends at midnight is of the day before.
INSTANT = timedelta(microseconds=1)


def activity_of_teams(
    tenant_ids: Collection[int], class_ids: Collection[int], *, since: datetime, at: datetime
) -> dict[tuple[int, int], HeldActivity]:
    """By team and class id, from the hour of `since` until `at`, for what was held. Shared GPUs are never measured by
    team. One query.
    """
    values: dict[str, Any] = {"tenants": list(tenant_ids), "classes": list(class_ids), "since": hour_of(since)}
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVITY, values | {"at": at})
        return {(tenant, pk): HeldActivity(*figures) for tenant, pk, *figures in cursor.fetchall()}


def smaller_totals(tenant: Tenant) -> list[SmallerTotal]:
    """Of the classes for which the team has a quota now, by slug. Nine queries, one if it has none."""
    at = timezone.now()
    held = Grant.objects.filter(tenant=tenant, kind=Grant.Kind.BASE, period__contains=at).values("gpu_class")
    classes = list(GpuClass.objects.filter(pk__in=held).order_by("slug"))
    if not classes:
        return []
    use = usage_of(tenant, classes, since=at - PERIOD, at=at)
    activity = activity_of_teams([tenant.pk], [one.pk for one in classes], since=at - PERIOD, at=at)
    found = smaller_totals_by_class(tenant, classes, use, activity, at=at)
    return [found[one.pk] for one in classes if one.pk in found]


def smaller_totals_by_class(
    tenant: Tenant,
    classes: Collection[GpuClass],
    use: Mapping[int, Usage],
    activity: Mapping[tuple[int, int], HeldActivity],
    *,
    at: datetime,
    is_decided: bool = False,
) -> dict[int, SmallerTotal]:
    """By class id. `use`, `activity`: of the last 30 days. `is_decided`: for approvers, who decide the pending line:
    then it hinders nothing. Five queries, two if `is_decided`.
    """
    since = hour_of(at - PERIOD)
    bases = _bases(tenant, classes, since, at)
    slugs = {one.slug for one in classes}
    facts = {} if is_decided else grant_queries.class_facts(tenant, slugs, at=at)
    waiting = _waiting(tenant, slugs, since)
    found = {}
    for one in classes:
        running = next((base for base in bases.get(one.pk, ()) if base.start <= at < base.end), None)
        if running is None:
            continue
        said = smaller_total(
            QuotaUse(
                gpu_class=one.slug,
                class_name=one.name,
                unit=unit_of(one),
                days=PERIOD.days,
                total=running.units,
                total_min=least_units(promises.curve(bases[one.pk], since, at), at),
                until=timezone.localdate(running.end - INSTANT),
                peak=use[one.pk].peak,
                seen_share=use[one.pk].seen_share,
                activity=activity.get((tenant.pk, one.pk)),
                is_waiting=one.slug in waiting,
                may_request=is_decided or (one.slug in facts and class_refusal(facts[one.slug].facts) is None),
            )
        )
        if said is not None:
            found[one.pk] = said
    return found


def _bases(
    tenant: Tenant, classes: Collection[GpuClass], since: datetime, at: datetime
) -> dict[int, list[promises.Promise]]:
    """Class id → its totals that were in force at some time."""
    rows = Grant.objects.filter(tenant=tenant, kind=Grant.Kind.BASE, gpu_class__in=classes)
    found: dict[int, list[promises.Promise]] = {}
    for grant in rows.filter(period__startswith__lte=at, period__endswith__gt=since):
        found.setdefault(grant.gpu_class_id, []).append(promise_of(grant))
    return found


def _waiting(tenant: Tenant, slugs: Collection[str], since: datetime) -> set[str]:
    """Classes of which a run waits for units, or ended without having got any after it had waited."""
    waits = Q(ended_at=None) & (Q(admitted_at=None, started_at=None) | Q(put_back_at__isnull=False))
    never_got = Q(ended_at__gt=F("requested_at") + LONG_WAIT, ended_at__gte=since, admitted_at=None, started_at=None)
    rows = Run.objects.filter(waits | never_got, workload__tenant=tenant, spec__gpu_class__in=list(slugs))
    return set(rows.order_by().values_list("spec__gpu_class", flat=True).distinct())


# Units of a run's hour are those of its interval; they are frozen with the run. Each run of an hour counts with the
# most of its devices that were busy at once: the sum is not less than what was busy in any minute of the hour.
_ACTIVITY = f"""
WITH namespace AS MATERIALIZED (
    SELECT id, tenant_id FROM {Namespace._meta.db_table} WHERE tenant_id = ANY(%(tenants)s)),
held AS MATERIALIZED (
    SELECT namespace.tenant_id, held.gpu_class_id,
           sum(held.units * extract(epoch FROM least(coalesce(held.ends_at, %(at)s), %(at)s)
                                     - greatest(held.starts_at, %(since)s))) / 3600 AS unit_hours
      FROM {AllocationInterval._meta.db_table} held JOIN namespace ON namespace.id = held.namespace_id
     WHERE held.gpu_class_id = ANY(%(classes)s) AND {PERIOD_HELD} && tstzrange(%(since)s, %(at)s)
     GROUP BY 1, 2),
hour AS MATERIALIZED (
    SELECT namespace.tenant_id, hour.gpu_class_id, hour.hour,
           sum(run.units * bit_count(hour.seen_minutes::bit(64))) / 60.0 AS measured,
           sum(run.units * hour.activity_sum) / 6000.0 AS busy, sum(hour.busy_devices_max) AS busy_devices
      FROM {RunHour._meta.db_table} hour JOIN namespace ON namespace.id = hour.namespace_id
     CROSS JOIN LATERAL (
           SELECT units FROM {AllocationInterval._meta.db_table} WHERE run_id = hour.run_id LIMIT 1) run
     WHERE hour.hour >= %(since)s AND hour.hour < %(at)s AND hour.gpu_class_id = ANY(%(classes)s)
       AND hour.measure <> '{RunHour.Measure.SHARED}'
     GROUP BY 1, 2, 3),
seen AS (
    SELECT tenant_id, gpu_class_id, sum(measured) AS measured, sum(busy) AS busy, max(busy_devices) AS busy_devices
      FROM hour GROUP BY 1, 2)
SELECT held.tenant_id, held.gpu_class_id, held.unit_hours::float, coalesce(seen.measured, 0)::float,
       coalesce(seen.busy, 0)::float, coalesce(seen.busy_devices, 0)::int
  FROM held LEFT JOIN seen ON seen.tenant_id = held.tenant_id AND seen.gpu_class_id = held.gpu_class_id"""
