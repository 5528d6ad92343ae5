"""Reads that join apps: a team's home, the catalog as a person meets it. One snapshot for page, stream and API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils import timezone

from accounts import queries as accounts
from accounts.actor import Actor
from catalog import queries as catalog
from catalog.models import GpuClass
from catalog.queries import Capacity
from cluster import queries as mirror
from portal.errors import Refusal
from portal.quota_bar import plural
from tenants.models import Grant, Namespace, Tenant
from workloads import policy
from workloads import queries as workloads
from workloads.models import Workload
from workloads.phase import ON_A_NODE, WAITING, Phase
from workloads.queries import WorkloadRow
from workloads.shown import EventLine, ListRow, event_line, list_row
from workloads.units import unit_of

EVENTS_SHOWN = 10
STARTS_NOW_SHOWN = 4
NO_CLASS = Refusal("not_granted", "Your team holds no GPUs yet. Request quota first.")
ALIVE = ON_A_NODE | {Phase.UNKNOWN}


@dataclass(frozen=True)
class Holding:
    """One class for one team, in whole units. `used` includes `borrowed`."""

    name: str
    slug: str
    note: str
    unit: str
    granted: int
    used: int
    borrowed: int
    queued: int
    ends_at: datetime | None


@dataclass(frozen=True)
class Choice:
    """Something that would start this second."""

    label: str
    note: str
    href: str


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
    starts_now: list[Choice]
    as_of: datetime | None
    is_stale: bool


def namespace_named(name: str) -> Namespace | None:
    return Namespace.objects.select_related("tenant", "cluster").filter(name=name).first()


def home(namespace: Namespace) -> HomeState:
    """About 25 queries, whatever the number of workloads, classes and pods."""
    tenant = namespace.tenant
    alive = workloads.with_names(Workload.objects.filter(namespace=namespace, deleted_at=None)).order_by("-id")
    rows = workloads.rows(alive[:500])
    holdings, starts_now = _holdings(namespace, rows)
    as_of = mirror.as_of(namespace.cluster_id, "Job", "Pod", "Workload")
    waiting = [row for row in rows if row.status.phase in WAITING]
    running = [row for row in rows if row.status.phase in ALIVE]
    return HomeState(
        tenant=tenant,
        namespace=namespace.name,
        summary=_summary(running, waiting),
        holdings=holdings,
        waiting=[list_row(row) for row in sorted(waiting, key=_waits_since)],
        running=[list_row(row) for row in sorted(running, key=lambda row: row.workload.gpu_class.name)],
        events=_events(tenant, names={row.workload.name for row in rows}),
        starts_now=starts_now,
        as_of=as_of.at,
        is_stale=not as_of.is_current,
    )


def first_team(by: Actor) -> Tenant | None:
    """Where a person lands: their own first team."""
    return Tenant.objects.filter(memberships__user=by.user_id or 0).order_by("slug").first()


def may_launch_in(by: Actor, tenant: str) -> Refusal | None:
    """For the button: may this person launch anything at all in this team? Two queries."""
    namespace, team = workloads.team(by, tenant)
    return policy.may_launch_in(by, team) or (None if _may_have_any(namespace) else NO_CLASS)


def _may_have_any(namespace: Namespace) -> bool:
    borrowable = GpuClass.objects.filter(
        cluster_id=namespace.cluster_id, life_cycle=GpuClass.LifeCycle.ACTIVE, borrowing_limit__gt=0
    )
    held = Grant.objects.filter(tenant_id=namespace.tenant_id, period__endswith__gt=timezone.now())
    return held.exists() or borrowable.exists()


# ---- holdings --------------------------------------------------------------------------------------------------------


def _holdings(namespace: Namespace, rows: Iterable[WorkloadRow]) -> tuple[list[Holding], list[Choice]]:
    now = timezone.now()
    granted: dict[int, int] = {}
    ends: dict[int, datetime] = {}
    for grant in Grant.objects.filter(tenant_id=namespace.tenant_id, period__contains=now):
        granted[grant.gpu_class_id] = granted.get(grant.gpu_class_id, 0) + grant.units
        ends[grant.gpu_class_id] = min(ends.get(grant.gpu_class_id, grant.period.upper), grant.period.upper)
    used, queued = _units(rows)
    ids = granted.keys() | used.keys() | queued.keys()
    classes = list(GpuClass.objects.filter(pk__in=ids).order_by("slug"))
    capacities = catalog.capacities(namespace.cluster, classes)
    holdings = [
        Holding(
            name=one.name,
            slug=one.slug,
            note=_note(one, capacities[one.pk]),
            unit=unit_of(one),
            granted=granted.get(one.pk, 0),
            used=used.get(one.pk, 0),
            borrowed=max(0, used.get(one.pk, 0) - granted.get(one.pk, 0)),
            queued=queued.get(one.pk, 0),
            ends_at=ends.get(one.pk),
        )
        for one in classes
    ]
    return holdings, _starts_now(namespace, classes, holdings, capacities)


def _units(rows: Iterable[WorkloadRow]) -> tuple[dict[int, int], dict[int, int]]:
    """By class id: units of pods that are bound to a node and not over; units of what waits."""
    used: dict[int, int] = {}
    queued: dict[int, int] = {}
    for row in rows:
        if row.run is None or row.run.ended_at is not None:
            continue
        # The class at launch: the workload may have been declared with another one since.
        same_class = row.run.spec["gpu_class"] == row.workload.gpu_class.slug
        if not same_class:
            continue
        pk, units = row.workload.gpu_class_id, row.run.spec["units"]
        if row.pod is not None and row.pod.node and not row.pod.is_over:
            used[pk] = used.get(pk, 0) + units
        elif row.status.phase in WAITING:
            queued[pk] = queued.get(pk, 0) + units
    return used, queued


def _note(gpu_class: GpuClass, capacity: Capacity) -> str:
    kind = "shared" if gpu_class.sharing != GpuClass.Sharing.NONE else "exclusive"
    if capacity.free is None:
        return f"{kind}; free units not known"
    return f"{kind}; {capacity.free} of {capacity.allocatable} free"


def _starts_now(
    namespace: Namespace, classes: list[GpuClass], holdings: list[Holding], capacities: Mapping[int, Capacity]
) -> list[Choice]:
    """Classes with a unit of the team's own that is unused, and a node that has one free."""
    found = []
    for gpu_class, holding in zip(classes, holdings, strict=True):
        own = holding.granted - holding.used - holding.queued
        free = capacities[gpu_class.pk].most_on_one_node or 0
        if gpu_class.life_cycle != GpuClass.LifeCycle.ACTIVE or own < 1 or free < 1:
            continue
        units = min(own, free, gpu_class.units_per_workload)
        href = f"{reverse('launch', args=[namespace.tenant.slug])}?gpu_class={gpu_class.slug}"
        found.append(Choice(gpu_class.name, f"up to {plural(units, holding.unit)} on one node", href))
    return found[:STARTS_NOW_SHOWN]


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
