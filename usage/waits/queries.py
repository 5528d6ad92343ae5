"""How long the runs of a team were queued."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from django.db import connection

from catalog.models import GpuClass
from tenants.models import Tenant
from workloads.models import Run, Workload

# A longer time from request to admission counts as waiting.
LONG_WAIT = timedelta(minutes=1)


@dataclass(frozen=True)
class WaitStatistics:
    """For the runs requested in the period. `waited`: runs that were not admitted within a minute, including queued and
    stopped ones; `median_s` is of the admitted ones. None: there are none.
    """

    runs: int
    waited: int
    median_s: float | None

    @property
    def share(self) -> float | None:
        return self.waited / self.runs if self.runs else None


def waits_of(
    tenant: Tenant, classes: Iterable[GpuClass], *, since: datetime, at: datetime
) -> dict[int, WaitStatistics]:
    """By class id, for runs as they were launched. One query."""
    return {pk: found for (_, pk), found in waits_of_teams([tenant.pk], classes, since=since, at=at).items()}


def waits_of_teams(
    tenant_ids: Collection[int], classes: Iterable[GpuClass], *, since: datetime, at: datetime
) -> dict[tuple[int, int], WaitStatistics]:
    """By team and class id, for the given ones; otherwise as `waits_of`. One query."""
    slugs = {one.slug: one.pk for one in classes}
    values: list[Any] = [list(tenant_ids), since, at, LONG_WAIT, list(slugs)]
    with connection.cursor() as cursor:
        cursor.execute(_WAITS, values)
        found = {(team, slugs[slug]): WaitStatistics(*of_runs) for team, slug, *of_runs in cursor.fetchall()}
    return {key: found.get(key, WaitStatistics(0, 0, None)) for key in product(tenant_ids, slugs.values())}


# Without a queue, a run is admitted when it starts.
_WAITS = f"""
WITH asked AS (
    SELECT workload.tenant_id, run.spec ->> 'gpu_class' AS slug, run.requested_at,
           coalesce(run.admitted_at, run.started_at) AS given_at, run.ended_at
      FROM {Run._meta.db_table} run JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
     WHERE workload.tenant_id = ANY(%s) AND run.requested_at >= %s
)
SELECT tenant_id, slug, count(*),
       count(*) FILTER (WHERE coalesce(given_at, ended_at, %s) - requested_at > %s),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM given_at - requested_at)::float8)
           FILTER (WHERE given_at IS NOT NULL)
  FROM asked WHERE slug = ANY(%s) GROUP BY tenant_id, slug"""
