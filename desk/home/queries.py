"""A team's home: one snapshot for page, stream and API."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.utils import timezone

from accounts.events import queries as event_queries
from catalog.models import GpuClass
from cluster.reads import queries as mirror
from cluster.reads.observed import AsOf
from desk.home.quota import ClassQuota, ExpiringGrant, TeamUnits, class_quotas, classes_of, expiring_grants
from desk.home.unmanaged_pods import UnmanagedPod, unmanaged_pods
from desk.home.workloads import (
    Attention,
    RunningGroup,
    RunningRow,
    WaitingGroup,
    attention,
    running_groups,
    waiting_groups,
)
from portal.core.due import owner_label
from portal.ui.text import plural
from tenants.core.namespace_sql import NAMESPACE_COLUMNS, NAMESPACE_FROM, namespace_from_row
from tenants.grants import queries as grant_queries
from tenants.models import Namespace, Tenant
from usage.gpu_hours.month import MonthFigures, month_figures
from workloads.core import workload_sql
from workloads.forecast.queries import outside_units
from workloads.pages.shown import EventLine, ListRow, event_line
from workloads.status import queries as workloads
from workloads.status.types import NODE_PHASES, QUEUED_PHASES, Phase
from workloads.status.workload_row import WorkloadRow, in_queue_order

EVENTS_SHOWN = 10
WORKLOADS_READ = 500
ALIVE = NODE_PHASES | {Phase.UNKNOWN}


@dataclass(frozen=True)
class HomeState:
    """A team's home, independent of the user: it is rendered once for all viewers, and the API returns the same."""

    tenant: Tenant
    namespace: str
    summary: str
    attention: Attention | None
    holdings: list[ClassQuota]
    waiting_groups: tuple[WaitingGroup, ...]
    running_groups: tuple[RunningGroup, ...]
    not_ours: tuple[UnmanagedPod, ...]
    events: list[EventLine]
    month: MonthFigures
    ends: tuple[ExpiringGrant, ...]
    as_of: datetime | None
    is_stale: bool

    @property
    def holds_class(self) -> bool:
        """A class on which workloads run."""
        return any(one.granted and not one.is_storage for one in self.holdings)

    @property
    def waiting(self) -> list[ListRow]:
        return [row for group in self.waiting_groups for row in group.rows]

    @property
    def running(self) -> list[RunningRow]:
        return [row for group in self.running_groups for row in group.rows]


def namespace_by_name(name: str) -> Namespace | None:
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, [name])
        found = cursor.fetchone()
    return None if found is None else namespace_from_row(iter(found))


_NAMED = f"""
SELECT {NAMESPACE_COLUMNS} FROM {NAMESPACE_FROM}
 WHERE namespace.name = %s ORDER BY namespace.id LIMIT 1"""


@dataclass(frozen=True)
class NamespaceReading:
    """The latest workloads of a namespace, and the state of the mirror and of grants before they were read."""

    as_of: AsOf
    held: grant_queries.GrantedUnits
    rows: list[WorkloadRow]


def read_namespace(namespace: Namespace) -> NamespaceReading:
    # Read first: a mirror that becomes known in between must not produce figures from no data.
    as_of = mirror.as_of(namespace.cluster_id, *workloads.status_kinds(namespace.cluster))
    held = grant_queries.granted_units(namespace.tenant_id, timezone.now())
    return NamespaceReading(
        as_of, held, workloads.workload_rows(workload_sql.latest_workloads(namespace, WORKLOADS_READ), as_of, held)
    )


def home_state(namespace: Namespace, reading: NamespaceReading | None = None) -> HomeState:
    """About 20 queries, whatever the number of workloads, classes and pods; seven if `reading` is given."""
    tenant, now = namespace.tenant, timezone.now()
    found = reading or read_namespace(namespace)
    as_of, rows = found.as_of, found.rows
    waiting = in_queue_order(row for row in rows if row.is_in_line)
    # A run that is blocked on a node still uses its units.
    running = [row for row in rows if row.status.phase in ALIVE | QUEUED_PHASES and not row.is_in_line]
    running.sort(key=lambda row: row.gpu_class.name)
    held = found.held
    used, queued = _units(rows)
    classes = classes_of(rows, held, used.keys() | queued.keys())
    units = _with_outside(namespace, classes, used, queued) if as_of.is_known else None
    holdings = class_quotas(namespace, classes, held, units, now)
    return HomeState(
        tenant=tenant,
        namespace=namespace.name,
        summary=_summary(running, waiting),
        attention=attention([*waiting, *running], waiting),
        holdings=holdings,
        waiting_groups=waiting_groups(waiting, running, holdings),
        running_groups=running_groups(tenant.slug, running, holdings),
        not_ours=unmanaged_pods(namespace, [owner_label(row.workload) for row in rows]),
        events=_events(tenant, names={row.workload.name for row in rows}),
        month=month_figures(namespace, at=now),
        ends=expiring_grants(held, classes),
        as_of=as_of.at,
        is_stale=not as_of.is_current,
    )


# ---- used and queued units -------------------------------------------------------------------------------------------


def _units(rows: Iterable[WorkloadRow]) -> tuple[dict[str, int], dict[str, int]]:
    """By class slug at launch: units of unfinished pods that are bound to a node; units of queued runs. A requeued run
    counts in both until its pods are gone.
    """
    used: dict[str, int] = {}
    queued: dict[str, int] = {}
    for row in rows:
        if row.run is None or row.run.ended_at is not None:
            continue
        slug = row.run.spec["gpu_class"]
        if units := row.units_on_nodes:
            used[slug] = used.get(slug, 0) + units
        if row.is_in_line:
            queued[slug] = queued.get(slug, 0) + row.run.total_units
    return used, queued


def _with_outside(
    namespace: Namespace, classes: Iterable[GpuClass], used: dict[str, int], queued: dict[str, int]
) -> TeamUnits:
    """Adds what Kueue has reserved for workloads that were not started in the portal. One query."""
    reserved = outside_units(namespace)
    outside = {one.slug: reserved.get((one.slug, one.resource), 0) for one in classes}
    in_all = {slug: used.get(slug, 0) + outside.get(slug, 0) for slug in used.keys() | outside.keys()}
    return TeamUnits(in_all, queued, outside)


def _summary(running: list[WorkloadRow], waiting: list[WorkloadRow]) -> str:
    if not running and not waiting:
        return "No workloads are running or queued."
    runs = f"{plural(len(running), 'workload')} {'is' if len(running) == 1 else 'are'} running or starting"
    queued = f"{len(waiting)} {'is' if len(waiting) == 1 else 'are'}" if waiting else "none is"
    return f"{runs}, {queued} queued."


# ---- events ----------------------------------------------------------------------------------------------------------


def _events(tenant: Tenant, *, names: set[str]) -> list[EventLine]:
    found = event_queries.latest_events(tenant.slug, EVENTS_SHOWN)
    return [event_line(event, tenant=tenant.slug, names=names) for event in found]
