"""Runs that are idle now, for lists, pages and the API; and who held units without activity in the last days.

A row that was not judged for some minutes says nothing about now: the worker is away, or nothing was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from django.db import connection
from django.db.models import Count, DecimalField, DurationField, ExpressionWrapper, F, QuerySet, Sum
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from tenants.members.models import in_teams_of
from tenants.models import Namespace, Tenant
from usage.idle import policy
from usage.idle.evidence import CENT, cost_an_hour, cost_so_far
from usage.idle.models import IdleRun
from usage.telemetry.models import RunHour
from usage.telemetry.types import MINUTES_AN_HOUR
from workloads.core import policy as core_policy
from workloads.core import queries as core_queries
from workloads.lifetime.idle.policy import KEEP_HOURS_MOST
from workloads.models import AllocationInterval, Run, Workload

JUDGED_WITHIN = timedelta(minutes=5)
HOLDERS_SHOWN = 50
TEAM_SHOWN = 10
PERSONS_SHOWN = 20
WEEK = timedelta(days=7)


@dataclass(frozen=True)
class IdleHolder:
    """`cost_since`: of the units since the last activity."""

    row: IdleRun
    cost_per_hour: Decimal
    cost_since: Decimal

    @property
    def workload(self) -> Workload:
        return self.row.run.workload

    @property
    def team(self) -> Tenant:
        return self.workload.tenant

    @property
    def person(self) -> User:
        return self.row.run.requested_by


@dataclass(frozen=True)
class IdleHolders:
    """The costliest first. `more`: how many others there are; units and cost are those of all of them."""

    holders: tuple[IdleHolder, ...]
    more: int
    runs: int
    units: int
    cost_per_hour: Decimal


@dataclass(frozen=True)
class WastedWeek:
    """Of one person in one team: unit-hours held and measured, those of them without activity, and their cost."""

    team: str
    team_name: str
    person_id: int
    person: str
    runs: int
    measured_hours: Decimal
    idle_hours: Decimal
    cost: Decimal

    @property
    def percent(self) -> int:
        return int(100 * self.idle_hours / self.measured_hours) if self.measured_hours else 0


def idle_rows() -> QuerySet[IdleRun]:
    """Of runs that are known to be idle now."""
    return IdleRun.objects.filter(
        is_idle=True,
        judged_at__gte=timezone.now() - JUDGED_WITHIN,
        run__ended_at=None,
        run__stop_requested_at=None,
        run__workload__delete_requested_at=None,
    )


def visible_rows(by: Actor) -> QuerySet[IdleRun]:
    """Staff see all, others those of their teams."""
    found = _with_names(idle_rows())
    return found if by.user is None or by.sees_all else found.filter(in_teams_of(by, "namespace__tenant__"))


def holder(row: IdleRun, at: datetime) -> IdleHolder:
    return IdleHolder(row, cost_an_hour(row), cost_so_far(row, at))


def idle_holders(tenant: Tenant | None = None, *, at_most: int = HOLDERS_SHOWN) -> IdleHolders:
    """Of one team, or of all. Two queries, one if there is none."""
    now, found = timezone.now(), idle_rows()
    if tenant is not None:
        found = found.filter(namespace__tenant=tenant)
    hourly = ExpressionWrapper(F("units") * F("price_per_unit_hour"), DecimalField(max_digits=20, decimal_places=4))
    totals = found.aggregate(runs=Count("run"), held=Sum("units", default=0), hourly=Sum(hourly, default=Decimal(0)))
    if not totals["runs"]:
        return IdleHolders((), 0, 0, 0, Decimal(0))
    # Without a price, those that hold most for longest.
    held = ExpressionWrapper((now - F("idle_since")) * F("units"), DurationField())
    costly = ExpressionWrapper(held * F("price_per_unit_hour"), DurationField())
    rows = _with_names(found).annotate(held=held, costly=costly).order_by("-costly", "-held", "run_id")[:at_most]
    holders = tuple(holder(row, now) for row in rows)
    return IdleHolders(holders, totals["runs"] - len(holders), totals["runs"], totals["held"], totals["hourly"])


def _with_names(rows: QuerySet[IdleRun]) -> QuerySet[IdleRun]:
    return rows.select_related("gpu_class", "kept_by", "run__requested_by", "run__workload__tenant")


@dataclass(frozen=True)
class IdleFacts:
    """An idle run for its page, and what this user may do about it."""

    row: IdleRun
    most_hours: int
    refusal: object | None


def idle_facts(by: Actor, team: core_policy.TeamFacts, workload: Workload, run: Run | None) -> IdleFacts | None:
    """None: it is not known to be idle. One query."""
    row = idle_rows().filter(run=run).select_related("gpu_class", "kept_by").first() if run else None
    if row is None:
        return None
    found = core_queries.run_facts(workload, run)
    refusal = core_policy.may_manage(by, team, found, "keep") or policy.may_keep(
        found, is_idle=True, kept_before=row.kept_until is not None
    )
    return IdleFacts(row, KEEP_HOURS_MOST, refusal)


def wasted_week(*, at: datetime | None = None) -> tuple[list[WastedWeek], int]:
    """Who held most without activity in the last days, by cost, and how many others there are. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_WASTED, {"since": (at or timezone.now()) - WEEK, "most": PERSONS_SHOWN})
        rows = cursor.fetchall()
    found = [WastedWeek(*names, *map(_rounded, (seen, idle, cost))) for *names, idle, seen, cost, _persons in rows]
    return found, rows[0][-1] - len(rows) if rows else 0


def _rounded(value: Decimal) -> Decimal:
    return Decimal(value).quantize(CENT, ROUND_HALF_UP)


# Units and price of a run are the same in all its intervals. Hours are added up by run before anything is joined: a
# week of 1,000 runs has 168,000 of them.
_WASTED = f"""
SELECT team.slug, team.name, person.id, person.name, count(*),
       sum(seen.idle_minutes * held.units) / {MINUTES_AN_HOUR}.0 AS idle,
       sum(seen.minutes * held.units) / {MINUTES_AN_HOUR}.0,
       sum(seen.idle_minutes * held.units * held.price_per_unit_hour) / {MINUTES_AN_HOUR}.0 AS cost,
       count(*) OVER ()
  FROM (SELECT hour.run_id, hour.namespace_id, sum(bit_count(hour.seen_minutes::bit(64))) AS minutes,
               sum(bit_count((hour.seen_minutes & ~hour.busy_minutes)::bit(64))) AS idle_minutes
          FROM {RunHour._meta.db_table} hour
         WHERE hour.hour >= %(since)s AND hour.measure <> '{RunHour.Measure.SHARED}'
         GROUP BY hour.run_id, hour.namespace_id) seen
  JOIN {Run._meta.db_table} run ON run.id = seen.run_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = seen.namespace_id
  JOIN {Tenant._meta.db_table} team ON team.id = namespace.tenant_id
  JOIN {User._meta.db_table} person ON person.id = run.requested_by_id
 CROSS JOIN LATERAL (
       SELECT one.units, one.price_per_unit_hour FROM {AllocationInterval._meta.db_table} one
        WHERE one.run_id = run.id LIMIT 1) held
 GROUP BY team.id, person.id
HAVING sum(seen.idle_minutes) > 0
 ORDER BY cost DESC, idle DESC, team.slug, person.id LIMIT %(most)s"""
