"""Reads that join apps: a team's home, the catalog as a person meets it. One snapshot for page, stream and API."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection
from django.utils import timezone

from accounts import queries as accounts
from accounts.actor import Actor
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster import queries as mirror
from cluster.observed import AsOf
from desk.queries.home_work import (
    Attention,
    RunningGroup,
    RunningRow,
    WaitingGroup,
    attention,
    running_groups,
    waiting_groups,
)
from desk.queries.lending import NOTHING, Idle, Lent, lent
from desk.queries.not_ours import NotOurs, not_ours
from portal.due import owner_label
from portal.quota_bar import plural
from portal.sql import select
from tenants.member_models import in_teams_of
from tenants.models import Namespace, Tenant
from tenants.queries import grants
from tenants.queries.placed import COLUMNS, FROM, placed
from workloads import queries as workloads
from workloads.phase import ON_A_NODE, WAITING, Phase
from workloads.queries import WorkloadRow
from workloads.queries.month import Month, month_of
from workloads.shown import EventLine, ListRow, event_line

EVENTS_SHOWN = 10
WORKLOADS_READ = 500
ENDS_SHOWN = 4
ALIVE = ON_A_NODE | {Phase.UNKNOWN}


@dataclass(frozen=True)
class Holding:
    """One class for one team, in whole units. `used` includes `borrowed` and `in_grace`: units of grants that have
    ended, which go on until `grace_until`. `lent`: own units that other teams use. Of storage `used` is what volumes
    ask for. None: nobody knows.
    """

    name: str
    slug: str
    note: str
    unit: str
    granted: int
    used: int | None = None
    borrowed: int | None = None
    in_grace: int | None = None
    lent: Lent | None = None
    queued: int | None = None
    ends_at: datetime | None = None
    grace_until: datetime | None = None
    is_storage: bool = False


@dataclass(frozen=True)
class GrantEnd:
    """What begins no later than `at` is held until then; what runs goes on until `runs_until`, None without a grace."""

    name: str
    units: int
    unit: str
    at: datetime
    runs_until: datetime | None


@dataclass(frozen=True)
class HomeState:
    """A team's home; it knows no actor, so that it is rendered once for all who look at it. The API gives the same."""

    tenant: Tenant
    namespace: str
    summary: str
    attention: Attention | None
    holdings: list[Holding]
    waiting_groups: tuple[WaitingGroup, ...]
    running_groups: tuple[RunningGroup, ...]
    not_ours: tuple[NotOurs, ...]
    events: list[EventLine]
    month: Month
    ends: tuple[GrantEnd, ...]
    as_of: datetime | None
    is_stale: bool

    @property
    def holds_class(self) -> bool:
        """Something that work runs on."""
        return any(one.granted and not one.is_storage for one in self.holdings)

    @property
    def waiting(self) -> list[ListRow]:
        return [row for group in self.waiting_groups for row in group.rows]

    @property
    def running(self) -> list[RunningRow]:
        return [row for group in self.running_groups for row in group.rows]


def namespace_named(name: str) -> Namespace | None:
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, [name])
        found = cursor.fetchone()
    return None if found is None else placed(iter(found))


_NAMED = f"""
SELECT {COLUMNS} FROM {FROM}
 WHERE namespace.name = %s ORDER BY namespace.id LIMIT 1"""


@dataclass(frozen=True)
class Reading:
    """The latest workloads of a namespace, and how the mirror and its grants stood before they were read."""

    as_of: AsOf
    held: grants.Held
    rows: list[WorkloadRow]


def read(namespace: Namespace) -> Reading:
    # Before what it is about: a mirror that becomes known in between must not make figures of nothing.
    as_of = mirror.as_of(namespace.cluster_id, *workloads.kinds_shown(namespace.cluster))
    held = grants.held(namespace.tenant_id, timezone.now())
    return Reading(as_of, held, workloads.rows(workloads.latest(namespace, WORKLOADS_READ), as_of, held))


def home(namespace: Namespace, reading: Reading | None = None) -> HomeState:
    """About 20 queries, whatever the number of workloads, classes and pods; six after a reading."""
    tenant, now = namespace.tenant, timezone.now()
    found = reading or read(namespace)
    as_of, rows = found.as_of, found.rows
    waiting = [row for row in rows if row.is_in_line]
    # What is blocked on a node holds its units all the same.
    running = [row for row in rows if row.status.phase in ALIVE | WAITING and not row.is_in_line]
    waiting.sort(key=_waits_since)
    running.sort(key=lambda row: row.gpu_class.name)
    held = found.held
    used, queued = _units(rows)
    classes = _classes(rows, held, used.keys() | queued.keys())
    units = (used, queued) if as_of.is_known else None
    holdings = _holdings(namespace, classes, held, units, now)
    return HomeState(
        tenant=tenant,
        namespace=namespace.name,
        summary=_summary(running, waiting),
        attention=attention([*waiting, *running], waiting),
        holdings=holdings,
        waiting_groups=waiting_groups(waiting, running, holdings),
        running_groups=running_groups(tenant.slug, running, holdings),
        not_ours=not_ours(namespace, [owner_label(row.workload) for row in rows]),
        events=_events(tenant, names={row.workload.name for row in rows}),
        month=month_of(namespace, at=now),
        ends=_ends(held, classes),
        as_of=as_of.at,
        is_stale=not as_of.is_current,
    )


def first_team(by: Actor) -> Tenant | None:
    """Where a person lands: their own first team."""
    return Tenant.objects.filter(in_teams_of(by)).order_by("slug").first()


# ---- holdings --------------------------------------------------------------------------------------------------------


def _classes(rows: Iterable[WorkloadRow], held: grants.Held, asked: Collection[str]) -> list[GpuClass]:
    """By slug: those that the team is granted, and those `asked` for, of which each is a row's. One query where a grant
    is of a class that no row has.
    """
    of_rows = {row.gpu_class.pk: row.gpu_class for row in rows}
    found = [one for pk, one in of_rows.items() if pk in held.in_force or one.slug in asked]
    if missing := held.in_force.keys() - of_rows.keys():
        found += select(GpuClass, "id = ANY(%s)", [list(missing)])
    return sorted(found, key=lambda one: one.slug)


def _holdings(
    namespace: Namespace,
    classes: Iterable[GpuClass],
    held: grants.Held,
    units: tuple[dict[str, int], dict[str, int]] | None,
    now: datetime,
) -> list[Holding]:
    """`units`: used and queued, None while nobody knows."""
    ends: dict[int, datetime] = {}
    for grant in held.running:
        ends[grant.gpu_class_id] = min(ends.get(grant.gpu_class_id, grant.period.upper), grant.period.upper)
    lends: dict[int, Lent | None] = {}
    if units is not None:
        granted, used = held.in_force, units[0]
        own = {one: Idle(granted.get(one.pk, 0), used.get(one.slug, 0)) for one in classes if not one.is_storage}
        lends = lent(namespace, own, now)
    found = []
    for one in classes:
        if one.is_storage:
            found.append(_storage(namespace, one, held.in_force.get(one.pk, 0), ends.get(one.pk)))
            continue
        mine = _of_class(one, held, units)
        found.append(replace(mine, lent=lends.get(one.pk), ends_at=ends.get(one.pk)))
    return found


def _of_class(one: GpuClass, held: grants.Held, units: tuple[dict[str, int], dict[str, int]] | None) -> Holding:
    own = held.in_force.get(one.pk, 0)
    found = Holding(
        name=one.name,
        slug=one.slug,
        note="shared" if one.sharing != GpuClass.Sharing.NONE else "exclusive",
        unit=catalog.unit_of(one),
        granted=own,
    )
    if units is None:
        return found
    runs, queued = (by_slug.get(one.slug, 0) for by_slug in units)
    in_grace = max(0, min(runs, held.keepable.get(one.pk, 0)) - own)
    return replace(
        found,
        used=runs,
        borrowed=max(0, runs - own - in_grace),
        in_grace=in_grace,
        queued=queued,
        grace_until=held.grace_until(one.pk) if in_grace else None,
    )


def _ends(held: grants.Held, classes: Iterable[GpuClass]) -> tuple[GrantEnd, ...]:
    """The next ends of what is in force, soonest first."""
    by_id = {one.pk: one for one in classes}
    found = [
        GrantEnd(
            name=by_id[grant.gpu_class_id].name,
            units=grant.units,
            unit=catalog.unit_of(by_id[grant.gpu_class_id]),
            at=grant.period.upper,
            runs_until=grant.period.upper + grant.grace if grant.grace else None,
        )
        for grant in sorted(held.running, key=lambda grant: (grant.period.upper, grant.pk))
        if grant.gpu_class_id in by_id
    ]
    return tuple(found[:ENDS_SHOWN])


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
        lent=NOTHING,
        queued=0,
        ends_at=ends_at,
        is_storage=True,
    )


def _units(rows: Iterable[WorkloadRow]) -> tuple[dict[str, int], dict[str, int]]:
    """By class slug, as it was at launch: units of pods that are bound to a node and not over; units of what waits.
    What was put back is in both until its pods are gone.
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
    found = accounts.latest_events(tenant.slug, EVENTS_SHOWN)
    return [event_line(event, tenant=tenant.slug, names=names) for event in found]
