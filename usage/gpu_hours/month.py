"""GPU-hours of a month by member: whole GPUs separately from slices and shares, and their cost at the frozen prices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection
from django.utils import timezone

from accounts.models import User
from tenants.models import Namespace
from usage.gpu_hours.interval_sql import HELD

MEMBERS_SHOWN = 4
# Of pods in the namespace that the portal did not create.
OUTSIDE = "Pods outside the portal"


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
    """By the user who requested the run, while it held units; pods of no run are a line of their own. One query."""
    since = timezone.localtime(at).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, {"namespace": namespace.pk, "since": since, "at": at})
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
SELECT person.id, coalesce(person.name, '{OUTSIDE}'),
       coalesce(sum(held.weight * held.unit_seconds) FILTER (WHERE held.is_whole), 0) / 3600,
       coalesce(sum(held.weight * held.unit_seconds) FILTER (WHERE NOT held.is_whole), 0) / 3600,
       sum(held.price_per_unit_hour * held.unit_seconds) / 3600
  FROM ({HELD} AND held.namespace_id = %(namespace)s) held
  LEFT JOIN {User._meta.db_table} person ON person.id = held.user_id
 GROUP BY person.id, person.name ORDER BY 3 DESC, 4 DESC, person.name, person.id"""
