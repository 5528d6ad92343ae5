"""A team's quota of each class, its use, and the grants that expire next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from catalog.classes import queries as class_queries
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass
from desk.capacity.lending import NONE_LENT, GrantUse, LentUnits, lent_units
from portal.core.sql import select
from tenants.grants import queries as grant_queries
from tenants.models import Namespace
from workloads.status.workload_row import WorkloadRow

ENDS_SHOWN = 4


@dataclass(frozen=True)
class ClassQuota:
    """A team's quota of one class, in whole units. `used` includes `borrowed`, `outside` and `in_grace`: units of ended
    grants, which may be used until `grace_until`. `outside`: reserved by Kueue for workloads that were not started in
    the portal. `lent`: the team's units that other teams use. For storage, `used` is what volumes request. None:
    unknown.
    """

    name: str
    slug: str
    note: str
    unit: str
    granted: int
    used: int | None = None
    borrowed: int | None = None
    outside: int | None = None
    in_grace: int | None = None
    lent: LentUnits | None = None
    queued: int | None = None
    ends_at: datetime | None = None
    grace_until: datetime | None = None
    is_storage: bool = False
    # What to do, if the class is being retired.
    migration: class_queries.Migration | None = None


@dataclass(frozen=True)
class TeamUnits:
    """Units of a team by class slug. `used` includes `outside`."""

    used: Mapping[str, int]
    queued: Mapping[str, int]
    outside: Mapping[str, int]


@dataclass(frozen=True)
class ExpiringGrant:
    """Units are granted until `at`; running workloads may continue until `runs_until`, None without a grace period."""

    name: str
    units: int
    unit: str
    at: datetime
    runs_until: datetime | None


def classes_of(rows: Iterable[WorkloadRow], held: grant_queries.GrantedUnits, asked: Collection[str]) -> list[GpuClass]:
    """By slug: the classes with a grant of the team, and those in `asked`. One query if a grant is for a class that no
    row has.
    """
    of_rows = {row.gpu_class.pk: row.gpu_class for row in rows}
    found = [one for pk, one in of_rows.items() if pk in held.in_force or one.slug in asked]
    if missing := held.in_force.keys() - of_rows.keys():
        found += select(GpuClass, "id = ANY(%s)", [list(missing)])
    return sorted(found, key=lambda one: one.slug)


def class_quotas(
    namespace: Namespace,
    classes: Iterable[GpuClass],
    held: grant_queries.GrantedUnits,
    units: TeamUnits | None,
    now: datetime,
) -> list[ClassQuota]:
    """`units`: None while unknown."""
    ends: dict[int, datetime] = {}
    for grant in held.running:
        ends[grant.gpu_class_id] = min(ends.get(grant.gpu_class_id, grant.period.upper), grant.period.upper)
    lends: dict[int, LentUnits | None] = {}
    if units is not None:
        granted, used = held.in_force, units.used
        own = {one: GrantUse(granted.get(one.pk, 0), used.get(one.slug, 0)) for one in classes if not one.is_storage}
        lends = lent_units(namespace, own, now)
    found = []
    for one in classes:
        if one.is_storage:
            found.append(_storage(namespace, one, held.in_force.get(one.pk, 0), ends.get(one.pk)))
            continue
        mine = _of_class(one, held, units)
        migration = class_queries.migration_of(one)
        found.append(replace(mine, lent=lends.get(one.pk), ends_at=ends.get(one.pk), migration=migration))
    return found


def _of_class(one: GpuClass, held: grant_queries.GrantedUnits, units: TeamUnits | None) -> ClassQuota:
    own = held.in_force.get(one.pk, 0)
    found = ClassQuota(
        name=one.name,
        slug=one.slug,
        note=class_queries.sharing_of(one),
        unit=class_queries.unit_of(one),
        granted=own,
    )
    if units is None:
        return found
    used, queued, outside = (by_slug.get(one.slug, 0) for by_slug in (units.used, units.queued, units.outside))
    in_grace = max(0, min(used, held.keepable.get(one.pk, 0)) - own)
    return replace(
        found,
        used=used,
        borrowed=max(0, used - own - in_grace),
        outside=outside,
        in_grace=in_grace,
        queued=queued,
        grace_until=held.grace_until(one.pk) if in_grace else None,
    )


def expiring_grants(held: grant_queries.GrantedUnits, classes: Iterable[GpuClass]) -> tuple[ExpiringGrant, ...]:
    """Returns the next ends of grants in force, soonest first."""
    by_id = {one.pk: one for one in classes}
    found = [
        ExpiringGrant(
            name=by_id[grant.gpu_class_id].name,
            units=grant.units,
            unit=class_queries.unit_of(by_id[grant.gpu_class_id]),
            at=grant.period.upper,
            runs_until=grant.period.upper + grant.grace if grant.grace else None,
        )
        for grant in sorted(held.running, key=lambda grant: (grant.period.upper, grant.pk))
        if grant.gpu_class_id in by_id
    ]
    return tuple(found[:ENDS_SHOWN])


def _storage(namespace: Namespace, one: GpuClass, granted: int, ends_at: datetime | None) -> ClassQuota:
    """Two queries. Storage is never borrowed or queued, and the end of its grace period removes nothing."""
    return ClassQuota(
        name=one.name,
        slug=one.slug,
        note="volumes, in GiB",
        unit=class_queries.unit_of(one),
        granted=granted,
        used=capacity_queries.units_used(namespace.cluster, [one], namespace=namespace.name).get(one.pk),
        borrowed=0,
        outside=0,
        in_grace=0,
        lent=NONE_LENT,
        queued=0,
        ends_at=ends_at,
        is_storage=True,
    )
