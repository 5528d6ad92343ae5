"""Reads the report of a month. Two queries, three for all teams; their cost grows with the intervals of that month and
team.
"""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from usage.gpu_hours.interval_sql import HELD, PERIOD_HELD
from usage.gpu_hours.month import OUTSIDE
from usage.reports.balance_sql import BALANCES
from usage.reports.calendar_month import CalendarMonth, month_asked, month_of
from usage.reports.types import CapacityBalance, UsageLine, UsageReport, by_class
from usage.samples.capacity import BRIDGED
from usage.telemetry.models import RunHour
from workloads.models import AllocationInterval, Run

CENT = Decimal("0.01")
_ZERO = Decimal("0.00")
SECONDS_AN_HOUR = 3600
# How far back a month with usage is looked for.
MONTHS_BACK = 120


def read_report(tenant: Tenant | None, month: str | None) -> UsageReport:
    """Of one team, or of all if `tenant` is None. `month` as in an address; None: the current one. Raises Refused
    (invalid).
    """
    at = timezone.now()
    asked = month_asked(month, at=at)
    used = _months_used(tenant, at)
    lines = _lines(tenant, asked, at)
    return UsageReport(
        month=asked,
        as_of=at,
        lines=lines,
        balances=() if tenant else _balances(asked, at, lines),
        previous=max((one for one in used if one < asked), default=None),
        next=min((one for one in used if one > asked), default=None),
    )


def _lines(tenant: Tenant | None, month: CalendarMonth, at: datetime) -> tuple[UsageLine, ...]:
    values = {"since": month.since, "at": min(month.until, at), **_of_team(tenant)}
    with connection.cursor() as cursor:
        cursor.execute(_LINES_OF_TEAM if tenant else _LINES, values)
        return tuple(map(_line, cursor.fetchall()))


def _balances(month: CalendarMonth, at: datetime, lines: tuple[UsageLine, ...]) -> tuple[CapacityBalance, ...]:
    allocated = {one.line.gpu_class: one for one in by_class(lines)}
    values = {"since": month.since, "at": min(month.until, at), "recent": at - BRIDGED}
    with connection.cursor() as cursor:
        cursor.execute(BALANCES, values)
        found = []
        for slug, name, recorded_since, *seconds in cursor.fetchall():
            hours = [_per_hour(one or _ZERO) for one in seconds]
            theirs = allocated.get(slug)
            units, cost = (theirs.unit_hours, theirs.cost) if theirs else (_ZERO, _ZERO)
            if not hours[0]:
                # Nothing is recorded, so that all is unrecorded, to the last cent.
                hours = [_ZERO, _ZERO, _ZERO, units, cost, _ZERO, _ZERO, _ZERO]
            found.append(CapacityBalance(*[slug, name, recorded_since, *hours, units, cost]))
    return tuple(found)


def _line(row: tuple[Any, ...]) -> UsageLine:
    names, is_exact, seconds = row[:7], row[7], row[8:]
    unit_hours, gpu_hours, cost, measured_cost, idle_cost = map(_per_hour, seconds)
    return UsageLine(*[*names, unit_hours, gpu_hours, cost, is_exact, measured_cost, idle_cost])


def _per_hour(seconds: Decimal) -> Decimal:
    """Rounds as if the quotient were exact: it has 28 digits, and the sum ten decimal places, so that it is a half cent
    or far from it. Never -0.00.
    """
    return (seconds / SECONDS_AN_HOUR).quantize(CENT, ROUND_HALF_UP) + _ZERO


def _months_used(tenant: Tenant | None, at: datetime) -> list[CalendarMonth]:
    months = [month_of(at).after(-back) for back in range(MONTHS_BACK + 1)]
    values = {"starts": [one.since for one in months], "ends": [one.until for one in months], **_of_team(tenant)}
    with connection.cursor() as cursor:
        cursor.execute(_MONTHS_OF_TEAM if tenant else _MONTHS, values)
        return [months[number - 1] for (number,) in cursor.fetchall()]


def _of_team(tenant: Tenant | None) -> dict[str, Any]:
    return {"tenant": tenant.pk} if tenant else {}


_OF_TEAM = f" AND held.namespace_id IN (SELECT id FROM {Namespace._meta.db_table} WHERE tenant_id = %(tenant)s)"
_SEEN_OF_TEAM = f"""
           AND hour.namespace_id IN (SELECT id FROM {Namespace._meta.db_table} WHERE tenant_id = %(tenant)s)"""
# Hours of a run are those of the interval that it had first in the month. They are added up by run before anything is
# joined: a month of 1,000 runs has 700,000 of them.
_SEEN = f"""
SELECT run.requested_by_id AS user_id, first.namespace_id, first.gpu_class_id, first.priority,
       sum(first.units * first.price_per_unit_hour * seen.minutes) * 60 AS measured_seconds,
       sum(first.units * first.price_per_unit_hour * (seen.minutes - seen.busy / 100)) * 60 AS idle_seconds
  FROM (SELECT hour.run_id, sum(bit_count(hour.seen_minutes::bit(64))) AS minutes,
               sum(hour.activity_sum)::numeric AS busy
          FROM {RunHour._meta.db_table} hour
         WHERE hour.hour >= %(since)s AND hour.hour < %(at)s
           AND hour.measure <> '{RunHour.Measure.SHARED}'{{seen_of_team}}
         GROUP BY hour.run_id) seen
  JOIN {Run._meta.db_table} run ON run.id = seen.run_id
 CROSS JOIN LATERAL (
       SELECT held.* FROM {AllocationInterval._meta.db_table} held
        WHERE held.run_id = seen.run_id AND {PERIOD_HELD} && tstzrange(%(since)s, %(at)s)
        ORDER BY held.starts_at LIMIT 1) first
 GROUP BY run.requested_by_id, first.namespace_id, first.gpu_class_id, first.priority"""
_ALL_LINES = f"""
WITH held AS (
    SELECT user_id, namespace_id, gpu_class_id, priority, sum(unit_seconds) AS unit_seconds,
           sum(weight * unit_seconds) AS gpu_seconds, sum(price_per_unit_hour * unit_seconds) AS cost_seconds,
           bool_and(is_exact) AS is_exact
      FROM ({HELD}{{of_team}}) held
     GROUP BY user_id, namespace_id, gpu_class_id, priority),
seen AS ({_SEEN})
SELECT team.slug, team.name, coalesce(person.name, '{OUTSIDE}'), coalesce(person.email, ''), class.slug, class.name,
       held.priority, bool_and(held.is_exact), sum(held.unit_seconds), sum(held.gpu_seconds) AS gpu_seconds,
       sum(held.cost_seconds) AS cost_seconds, coalesce(sum(seen.measured_seconds), 0),
       coalesce(sum(seen.idle_seconds), 0)
  FROM held
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = held.namespace_id
  JOIN {Tenant._meta.db_table} team ON team.id = namespace.tenant_id
  JOIN {GpuClass._meta.db_table} class ON class.id = held.gpu_class_id
  LEFT JOIN {User._meta.db_table} person ON person.id = held.user_id
  LEFT JOIN seen ON seen.user_id = held.user_id AND seen.namespace_id = held.namespace_id
        AND seen.gpu_class_id = held.gpu_class_id AND seen.priority = held.priority
 GROUP BY team.id, person.id, class.id, held.priority
 ORDER BY cost_seconds DESC, gpu_seconds DESC, team.slug, person.email, class.slug, held.priority"""
_LINES = _ALL_LINES.format(of_team="", seen_of_team="")
_LINES_OF_TEAM = _ALL_LINES.format(of_team=_OF_TEAM, seen_of_team=_SEEN_OF_TEAM)
# For each month one look into the index. `LATERAL … LIMIT 1` would read the table, and a team's namespaces within
# EXISTS all intervals of the team: measured with 200,000 intervals.
_MONTHS = f"""
SELECT month.number
  FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS month (since, until, number)
 WHERE EXISTS (
       SELECT FROM {AllocationInterval._meta.db_table} held
        WHERE {PERIOD_HELD} && tstzrange(month.since, month.until))"""
_MONTHS_OF_TEAM = f"""
SELECT month.number
  FROM {Namespace._meta.db_table} namespace
 CROSS JOIN unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS month (since, until, number)
 WHERE namespace.tenant_id = %(tenant)s AND EXISTS (
       SELECT FROM {AllocationInterval._meta.db_table} held
        WHERE held.namespace_id = namespace.id AND {PERIOD_HELD} && tstzrange(month.since, month.until))"""
