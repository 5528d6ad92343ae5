"""Reads that join apps: a team's home, the catalog as a person meets it. One snapshot for page, stream and API."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from accounts import queries as accounts
from accounts.actor import Actor
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster import queries as mirror
from portal.quota_bar import plural
from tenants.models import Namespace, Tenant
from tenants.queries import grants
from workloads import queries as workloads
from workloads.models import Workload
from workloads.phase import ON_A_NODE, WAITING, Phase
from workloads.queries import WorkloadRow
from workloads.shown import EventLine, ListRow, event_line, list_row

EVENTS_SHOWN = 10
ALIVE = ON_A_NODE | {Phase.UNKNOWN}


@dataclass(frozen=True)
class Holding:
    """One class for one team, in whole units. `used` includes `borrowed` and `in_grace`: units of grants that have
    ended, which go on until `grace_until`. Of storage it is what volumes ask for, None when nobody knows.
    """

    name: str
    slug: str
    note: str
    unit: str
    granted: int
    used: int | None
    borrowed: int
    in_grace: int
    queued: int
    ends_at: datetime | None
    grace_until: datetime | None
    is_storage: bool = False


@dataclass(frozen=True)
class HomeState:
    """A team's home; it knows no actor, so that it is rendered once for all who look at it."""

    tenant: Tenant
    namespace: str
    summary: str
    holdings: list[Holding]
    waiting: list[ListRow]
    running: list[ListRow]
    events: list[EventLine]
    as_of: datetime | None
    is_stale: bool

    @property
    def holds_class(self) -> bool:
        """Something that work runs on."""
        return any(one.granted and not one.is_storage for one in self.holdings)


def namespace_named(name: str) -> Namespace | None:
    return Namespace.objects.select_related("tenant", "cluster").filter(name=name).first()


def home(namespace: Namespace) -> HomeState:
    """About 20 queries, whatever the number of workloads, classes and pods."""
    tenant = namespace.tenant
    alive = workloads.with_names(Workload.objects.filter(namespace=namespace, deleted_at=None)).order_by("-id")
    rows = workloads.rows(alive[:500])
    as_of = mirror.as_of(namespace.cluster_id, *workloads.KINDS_NEEDED)
    waiting = [row for row in rows if row.status.phase in WAITING]
    running = [row for row in rows if row.status.phase in ALIVE]
    return HomeState(
        tenant=tenant,
        namespace=namespace.name,
        summary=_summary(running, waiting),
        holdings=_holdings(namespace, rows),
        waiting=[list_row(row) for row in sorted(waiting, key=_waits_since)],
        running=[list_row(row) for row in sorted(running, key=lambda row: row.gpu_class.name)],
        events=_events(tenant, names={row.workload.name for row in rows}),
        as_of=as_of.at,
        is_stale=not as_of.is_current,
    )


def first_team(by: Actor) -> Tenant | None:
    """Where a person lands: their own first team."""
    return Tenant.objects.filter(memberships__user=by.user_id or 0).order_by("slug").first()


# ---- holdings --------------------------------------------------------------------------------------------------------


def _holdings(namespace: Namespace, rows: Iterable[WorkloadRow]) -> list[Holding]:
    now = timezone.now()
    held = grants.held(namespace.tenant_id, now)
    granted = held.in_force
    ends: dict[int, datetime] = {}
    for grant in held.running:
        ends[grant.gpu_class_id] = min(ends.get(grant.gpu_class_id, grant.period.upper), grant.period.upper)
    used, queued = _units(rows)
    is_held = Q(pk__in=granted) | Q(cluster_id=namespace.cluster_id, slug__in=used.keys() | queued.keys())
    found = []
    for one in GpuClass.objects.filter(is_held).order_by("slug"):
        if one.is_storage:
            found.append(_storage(namespace, one, granted.get(one.pk, 0), ends.get(one.pk)))
            continue
        own, runs = granted.get(one.pk, 0), used.get(one.slug, 0)
        in_grace = max(0, min(runs, held.keepable.get(one.pk, 0)) - own)
        found.append(
            Holding(
                name=one.name,
                slug=one.slug,
                note="shared" if one.sharing != GpuClass.Sharing.NONE else "exclusive",
                unit=catalog.unit_of(one),
                granted=own,
                used=runs,
                borrowed=max(0, runs - own - in_grace),
                in_grace=in_grace,
                queued=queued.get(one.slug, 0),
                ends_at=ends.get(one.pk),
                grace_until=held.grace_until(one.pk) if in_grace else None,
            )
        )
    return found


def _storage(namespace: Namespace, one: GpuClass, granted: int, ends_at: datetime | None) -> Holding:
    """Two queries. Nothing of it is borrowed or waits, and its grace takes nothing away."""
    return Holding(
        name=one.name,
        slug=one.slug,
        note="for volumes, in GiB",
        unit=catalog.unit_of(one),
        granted=granted,
        used=catalog.units_used(namespace.cluster, [one], namespace=namespace.name).get(one.pk),
        borrowed=0,
        in_grace=0,
        queued=0,
        ends_at=ends_at,
        grace_until=None,
        is_storage=True,
    )


def _units(rows: Iterable[WorkloadRow]) -> tuple[dict[str, int], dict[str, int]]:
    """By class slug, as it was at launch: units of pods that are bound to a node and not over; units of what waits."""
    used: dict[str, int] = {}
    queued: dict[str, int] = {}
    for row in rows:
        if row.run is None or row.run.ended_at is not None:
            continue
        slug, units = row.run.spec["gpu_class"], row.run.total_units
        if row.pod is not None and row.pod.node and not row.pod.is_over:
            used[slug] = used.get(slug, 0) + units
        elif row.status.phase in WAITING:
            queued[slug] = queued.get(slug, 0) + units
    return used, queued


def _summary(running: list[WorkloadRow], waiting: list[WorkloadRow]) -> str:
    if not running and not waiting:
        return "Nothing runs and nothing waits."
    runs = f"{plural(len(running), 'workload')} {'is' if len(running) == 1 else 'are'} running or on the way"
    waits = f"{len(waiting)} {'waits' if len(waiting) == 1 else 'wait'}" if waiting else "nothing waits"
    return f"{runs}, {waits}."


def _waits_since(row: WorkloadRow) -> tuple[int, datetime]:
    at = row.run.requested_at if row.run else row.workload.created_at
    return row.status.facts.get("position", 10**6), at


# ---- events ----------------------------------------------------------------------------------------------------------


def _events(tenant: Tenant, *, names: set[str]) -> list[EventLine]:
    found = accounts.events_of_tenant(tenant.slug)[:EVENTS_SHOWN]
    return [event_line(event, tenant=tenant.slug, names=names) for event in found]
