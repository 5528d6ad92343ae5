"""GPU-hours of a month by member: whole GPUs separately from slices and shares, and their cost at the frozen prices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace
from workloads.core.unit_sql import TOTAL_UNITS
from workloads.models import Run, Workload

MEMBERS_SHOWN = 4


@dataclass(frozen=True)
class GpuHours:
    """GPU equivalents × hours, and their price. `name`: a member, or how many others, or the team."""

    name: str
    whole: float
    parts: float
    cost: Decimal


@dataclass(frozen=True)
class MonthFigures:
    """From the first day of the month until now, in the server's time zone. If nothing ran: no members, and zeros for
    the team.
    """

    since: datetime
    members: tuple[GpuHours, ...]
    team: GpuHours


def month_figures(namespace: Namespace, *, at: datetime) -> MonthFigures:
    """By the user who requested the run, from its start to its end or to now; a queued run does not count. The time in
    which a preempted run is queued again is included: it is not recorded separately. One query.
    """
    since = timezone.localtime(at).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    values: dict[str, Any] = {"namespace": namespace.pk, "cluster": namespace.cluster_id, "since": since, "at": at}
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, values)
        found = [(name, whole, parts, cost) for _, name, whole, parts, cost in cursor.fetchall()]
    first, others = found[:MEMBERS_SHOWN], found[MEMBERS_SHOWN:]
    if len(others) == 1:
        first, others = found, []
    members = [_hours(name, [(whole, parts, cost)]) for name, whole, parts, cost in first]
    if others:
        members.append(_hours(f"{len(others)} others", [row[1:] for row in others]))
    return MonthFigures(since, tuple(members), _hours("Team", [row[1:] for row in found]))


def _hours(name: str, rows: list[tuple[Decimal, Decimal, Decimal]]) -> GpuHours:
    whole, parts, cost = (sum((row[index] for row in rows), Decimal(0)) for index in range(3))
    return GpuHours(name, round(float(whole), 1), round(float(parts), 1), round(cost, 2))


_HOURS = f"""
SELECT person.id, person.name, coalesce(sum(spent.hours) FILTER (WHERE spent.is_whole), 0),
       coalesce(sum(spent.hours) FILTER (WHERE NOT spent.is_whole), 0), sum(spent.cost)
  FROM (
    SELECT ran.requested_by_id, ran.is_whole, ran.weight * ran.units * ran.hours AS hours,
           ran.price * ran.units * ran.hours AS cost
      FROM (
        SELECT run.requested_by_id, (run.spec ->> 'weight')::numeric AS weight,
               {TOTAL_UNITS} AS units, (run.spec ->> 'price_per_unit_hour')::numeric AS price,
               one.partition = 'none' AND one.sharing = 'none' AS is_whole,
               extract(epoch FROM least(coalesce(run.ended_at, %(at)s), %(at)s) - greatest(run.started_at, %(since)s))
               / 3600 AS hours
          FROM {Run._meta.db_table} run
          JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
          JOIN {GpuClass._meta.db_table} one
            ON one.cluster_id = %(cluster)s AND one.slug = run.spec ->> 'gpu_class'
         WHERE workload.namespace_id = %(namespace)s AND run.started_at < %(at)s
           AND (run.ended_at IS NULL OR run.ended_at > greatest(run.started_at, %(since)s))
      ) ran
  ) spent
  JOIN {User._meta.db_table} person ON person.id = spent.requested_by_id
 GROUP BY person.id, person.name ORDER BY 3 DESC, 4 DESC, person.name, person.id"""
