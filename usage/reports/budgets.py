"""Measures what teams with a budget used of it in this month. The row is written in workloads/budgets.

The cost is that of the team's report, to the cent. It is stored in the row that launches and pages read, so that these
compute nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal

from django.db import connection
from django.utils import timezone

from tenants.models import Namespace
from usage.gpu_hours.interval_sql import HELD
from usage.reports.calendar_month import month_of
from workloads.budgets.forecast import RECENT
from workloads.budgets.measured import Measured, store_measured
from workloads.models import TeamBudget


def measure_budgets() -> None:
    """Three queries if no threshold is reached, and two for each budget: they read the intervals of these teams in this
    month and in the last days, not their history.
    """
    at = timezone.now()
    month, recent = month_of(at), at - RECENT
    teams = dict(TeamBudget.objects.values_list("tenant_id", "tenant__created_at"))
    if not teams:
        return
    costs, recent_costs = _costs(teams, month.since, at), _costs(teams, recent, at)
    zero = Decimal("0.00")
    for tenant_id, created_at in teams.items():
        found = Measured(
            month_since=month.since,
            month_until=month.until,
            at=at,
            cost=costs.get(tenant_id, zero),
            recent_cost=recent_costs.get(tenant_id, zero),
            recent_since=max(recent, min(created_at, at)),
        )
        store_measured(tenant_id, found)


def _costs(teams: Collection[int], since: datetime, at: datetime) -> dict[int, Decimal]:
    """By team: the sum of the lines that its report would have, each rounded. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_COSTS, {"teams": [*teams], "since": since, "at": at})
        return dict(cursor.fetchall())


# OFFSET 0: one look into the index for each namespace. As a join, it may read the intervals of all teams.
_COSTS = f"""
SELECT line.tenant_id, sum(round(line.cost_seconds / 3600, 2))
  FROM (SELECT namespace.tenant_id, sum(held.price_per_unit_hour * held.unit_seconds) AS cost_seconds
          FROM {Namespace._meta.db_table} namespace
         CROSS JOIN LATERAL ({HELD} AND held.namespace_id = namespace.id OFFSET 0) held
         WHERE namespace.tenant_id = ANY(%(teams)s)
         GROUP BY namespace.tenant_id, held.user_id, held.gpu_class_id, held.priority) line
 GROUP BY line.tenant_id"""
