"""GPU-hours of a team by member."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection

from accounts.models import User
from tenants.models import Tenant
from workloads.core.unit_sql import TOTAL_UNITS
from workloads.models import Run, Workload


@dataclass(frozen=True)
class MemberHours:
    """GPU equivalents × hours of the runs that this user requested."""

    user_id: int
    name: str
    gpu_hours: float


def hours_by_member(tenant: Tenant, *, since: datetime, at: datetime) -> list[MemberHours]:
    """For all classes, the most hours first; a queued run does not count. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, {"tenant": tenant.pk, "since": since, "at": at})
        return [MemberHours(pk, name, _round(hours)) for pk, name, hours in cursor.fetchall()]


def _round(hours: Decimal) -> float:
    return round(float(hours), 2)


_HOURS = f"""
SELECT person.id, person.name, sum(spent.hours)
  FROM (
    SELECT run.requested_by_id, (run.spec ->> 'weight')::numeric * {TOTAL_UNITS}
           * extract(epoch FROM least(coalesce(run.ended_at, %(at)s), %(at)s) - greatest(run.started_at, %(since)s))
           / 3600 AS hours
      FROM {Run._meta.db_table} run JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
     WHERE workload.tenant_id = %(tenant)s AND run.started_at < %(at)s
       AND (run.ended_at IS NULL OR run.ended_at > greatest(run.started_at, %(since)s))
  ) spent
  JOIN {User._meta.db_table} person ON person.id = spent.requested_by_id
 GROUP BY person.id, person.name ORDER BY 3 DESC, person.name, person.id"""
