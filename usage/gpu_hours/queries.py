"""GPU-hours of a team by member."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from accounts.models import User
from tenants.models import Namespace, Tenant
from usage.gpu_hours.interval_sql import HELD


@dataclass(frozen=True)
class MemberHours:
    """GPU equivalents × hours of the runs that this user requested."""

    user_id: int
    name: str
    gpu_hours: float


def hours_by_member(tenant: Tenant, *, since: datetime, at: datetime) -> list[MemberHours]:
    """For all classes, the most hours first, without pods of no run. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, {"tenant": tenant.pk, "since": since, "at": at})
        return [MemberHours(pk, name, round(float(hours), 2)) for pk, name, hours in cursor.fetchall()]


_HOURS = f"""
SELECT person.id, person.name, sum(held.weight * held.unit_seconds) / 3600
  FROM ({HELD}
   AND held.namespace_id IN (SELECT id FROM {Namespace._meta.db_table} WHERE tenant_id = %(tenant)s)) held
  JOIN {User._meta.db_table} person ON person.id = held.user_id
 GROUP BY person.id, person.name ORDER BY 3 DESC, person.name, person.id"""
