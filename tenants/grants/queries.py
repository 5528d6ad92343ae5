"""The sum of grants at an instant, including their grace, and the classes that a team may request."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, DateTimeField, ExpressionWrapper, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Lower, Now, Upper

from accounts.models import User
from catalog.classes import queries as class_queries
from catalog.classes.capacity.queries import used_by_namespace
from catalog.classes.commitments import GrantedTotal
from catalog.models import GpuClass
from cluster.models import Cluster
from cluster.reads import queries as mirror
from portal.core.sql import select
from tenants.class_access.queries import usable_by as usable_by
from tenants.class_access.queries import usable_by_sql
from tenants.core.queries import database_now
from tenants.grants import promises
from tenants.grants import types as grant_types
from tenants.grants.promises import Promise
from tenants.models import Grant, Membership, Namespace, QuotaLine, Tenant

# When a grant is completely over: its end plus its grace.
OVER_AT = ExpressionWrapper(Upper("period") + F("grace"), output_field=DateTimeField())

# The end of a grant without a grace period is reported too, even if no worker ran for a night.
END_NOTICE_WINDOW = timedelta(days=1)

_USABLE_BY_TEAM = f"""slug = ANY(%(slugs)s) AND {usable_by_sql()}
    AND cluster_id IN (SELECT cluster_id FROM {Namespace._meta.db_table} WHERE tenant_id = %(tenant)s)"""


@dataclass(frozen=True)
class GrantedUnits:
    """Units by class id at an instant. `keepable`: units that running workloads may keep (promises.keepable_units)."""

    in_force: dict[int, int]
    keepable: dict[int, int]
    running: tuple[Grant, ...]
    # Grants that have ended, until their grace is over and for at least a day.
    ended: tuple[Grant, ...]
    to_come: tuple[Grant, ...]

    @property
    def bases(self) -> tuple[Grant, ...]:
        return tuple(one for one in self.running if one.kind == Grant.Kind.BASE)

    def grace_until(self, class_id: int) -> datetime | None:
        """Returns the end of the last grace of the class that has begun; None if there is none."""
        ends = (one.period.upper + one.grace for one in self.ended if one.gpu_class_id == class_id)
        return max(ends, default=None)


def granted_units(tenant_id: int, at: datetime) -> GrantedUnits:
    """One query, as SQL text because every page needs it."""
    left = select(
        Grant,
        "tenant_id = %s AND (upper(period) + grace > %s OR upper(period) > %s) ORDER BY id",
        [tenant_id, at, at - END_NOTICE_WINDOW],
    )
    rows = [one for one in left if one.period.lower <= at]
    by_class = {pk: own for (_, pk), own in _by_holder(rows).items()}
    return GrantedUnits(
        in_force={pk: units for pk, own in by_class.items() if (units := promises.in_force(own, at))},
        keepable={pk: promises.keepable_units(own, at) for pk, own in by_class.items()},
        running=tuple(one for one in rows if at < one.period.upper),
        ended=tuple(one for one in rows if one.period.upper <= at),
        to_come=tuple(one for one in left if at < one.period.lower),
    )


@dataclass(frozen=True)
class TeamUnits:
    """Units of one team and class at an instant; `keepable`: units that running workloads may keep."""

    in_force: int
    keepable: int


def units_by_team(
    class_ids: Collection[int], at: datetime, *, tenant_ids: Collection[int] | None = None
) -> dict[int, dict[int, TeamUnits]]:
    """Class id → team id → its units, of all teams or of `tenant_ids`. One query."""
    found: dict[int, dict[int, TeamUnits]] = {}
    rows = _alive(at).filter(gpu_class__in=class_ids)
    if tenant_ids is not None:
        rows = rows.filter(tenant__in=tenant_ids)
    for (tenant_id, pk), own in _by_holder(rows).items():
        found.setdefault(pk, {})[tenant_id] = TeamUnits(promises.in_force(own, at), promises.keepable_units(own, at))
    return found


def unlendable_units(cluster: Cluster, at: datetime) -> dict[int, int]:
    """Returns units by class id that cannot be lent: in force or running in a grace. One query, four with a grace."""
    by_holder = _by_holder(_alive(at).filter(gpu_class__cluster=cluster))
    taken: dict[int, int] = {}
    beyond: dict[tuple[int, int], tuple[int, int]] = {}
    for (tenant_id, pk), own in by_holder.items():
        units, keepable = promises.in_force(own, at), promises.keepable_units(own, at)
        taken[pk] = taken.get(pk, 0) + units
        if keepable > units:
            beyond[tenant_id, pk] = (units, keepable)
    used = _used(cluster, {pk for _, pk in beyond}) if beyond else None
    for (tenant_id, pk), (units, keepable) in beyond.items():
        runs = keepable if used is None else used.get((tenant_id, pk), 0)
        taken[pk] += max(0, min(runs, keepable) - units)
    return taken


def _used(cluster: Cluster, class_ids: Collection[int]) -> dict[tuple[int, int], int] | None:
    """(team id, class id) → units that run; None if the mirror has no current data."""
    if not mirror.is_known(cluster.pk, "Pod", "ResourceClaim"):
        return None
    by_class = used_by_namespace(cluster, GpuClass.objects.filter(pk__in=class_ids))
    owners = dict(Namespace.objects.filter(cluster=cluster).values_list("name", "tenant_id"))
    found: dict[tuple[int, int], int] = {}
    for pk, by_name in by_class.items():
        for name, units in by_name.items():
            if name in owners:
                found[owners[name], pk] = found.get((owners[name], pk), 0) + units
    return found


def _alive(at: datetime) -> QuerySet[Grant]:
    """Grants in force, or over and in their grace."""
    rows = Grant.objects.alias(over_at=OVER_AT).filter(period__startswith__lte=at)
    return rows.filter(Q(over_at__gt=at) | Q(period__endswith__gt=at))


def _by_holder(rows: Iterable[Grant]) -> dict[tuple[int, int], list[Promise]]:
    """(team id, class id) → its grants."""
    found: dict[tuple[int, int], list[Promise]] = {}
    for grant in rows:
        one = Promise(grant.units, grant.period.lower, grant.period.upper, grant.grace)
        found.setdefault((grant.tenant_id, grant.gpu_class_id), []).append(one)
    return found


def units_in_force(tenant_id: int, at: datetime) -> dict[int, int]:
    """Units by class id at that instant. One query."""
    rows = Grant.objects.filter(tenant_id=tenant_id, period__contains=at).values("gpu_class_id")
    return {row["gpu_class_id"]: row["total"] for row in rows.annotate(total=Sum("units"))}


def promised_units(cluster: Cluster, at: datetime) -> dict[int, int]:
    """Returns units by class id in force at that instant, summed over all teams of the cluster. One query."""
    rows = Grant.objects.filter(gpu_class__cluster=cluster, period__contains=at).values("gpu_class_id")
    return {row["gpu_class_id"]: row["total"] for row in rows.annotate(total=Sum("units"))}


def next_grant_change(
    after: datetime, *, tenant_id: int | None = None, cluster: Cluster | None = None
) -> datetime | None:
    """Returns when units in force or in grace change next without a decision: a grant's start, end or end of grace. One
    query.
    """
    rows = Grant.objects.alias(over_at=OVER_AT).filter(over_at__gt=after)
    rows = rows.filter(tenant_id=tenant_id) if tenant_id else rows.filter(gpu_class__cluster=cluster)
    found = rows.aggregate(
        starts=Min(Lower("period"), filter=Q(period__startswith__gt=after)),
        ends=Min(Upper("period"), filter=Q(period__endswith__gt=after)),
        over=Min(OVER_AT),
    )
    return min((at for at in found.values() if at is not None), default=None)


@dataclass(frozen=True)
class Holding:
    """A class of which the team has units in force. `until`: the running base grant's end, None without one."""

    gpu_class_id: int
    slug: str
    name: str
    units: int
    until: datetime | None


def holdings_of(tenant: Tenant, *, at: datetime | None = None) -> list[Holding]:
    """By slug. One query (two without `at`)."""
    running = Grant.objects.filter(tenant=tenant, period__contains=at or database_now())
    rows = running.values("gpu_class_id", "gpu_class__slug", "gpu_class__name").annotate(
        units=Sum("units"), until=Max(Upper("period"), filter=Q(kind=Grant.Kind.BASE))
    )
    return [
        Holding(row["gpu_class_id"], row["gpu_class__slug"], row["gpu_class__name"], row["units"], row["until"])
        for row in rows.order_by("gpu_class__slug")
    ]


@dataclass(frozen=True)
class RequestableClass:
    """A class with its id and the limits for a line about it."""

    pk: int
    facts: grant_types.ClassFacts


def class_facts(tenant: Tenant, slugs: Collection[str], *, at: datetime) -> dict[str, RequestableClass]:
    """By slug; unknown slugs and classes that the team may not use are left out. Three queries; a fourth if any class
    has a successor.
    """
    classes = select(GpuClass, _USABLE_BY_TEAM, {"tenant": tenant.pk, "slugs": list(slugs)})
    class_queries.fetch_successors(classes)
    held = units_in_force(tenant.pk, at)
    lines = QuotaLine.objects.filter(tenant=tenant, state=QuotaLine.State.PENDING)
    pending = dict(lines.values_list("gpu_class_id", "kind"))
    return {
        found.slug: RequestableClass(
            found.pk,
            grant_types.ClassFacts(
                found.slug,
                found.name,
                found.life_cycle,
                held.get(found.pk, 0),
                found.pk in pending,
                class_queries.successor_name(found),
                is_reclaimed=pending.get(found.pk) == QuotaLine.Kind.RECLAIM,
                unit=class_queries.counted_in(found),
            ),
        )
        for found in classes
    }


def base_grant_at(tenant_id: int, class_id: int, at: datetime) -> Grant | None:
    """Returns the grant of the total at that instant. One query."""
    rows = Grant.objects.filter(tenant_id=tenant_id, gpu_class_id=class_id, kind=Grant.Kind.BASE)
    return rows.filter(period__contains=at).first()


def granted_total(gpu_class: GpuClass) -> GrantedTotal:
    """Returns grants of the class that are not over, including those that start later. One query."""
    found = _not_over(gpu_class).aggregate(
        teams=Count("tenant", distinct=True), units=Sum("units"), until=Max(Upper("period"))
    )
    return GrantedTotal(found["teams"], found["units"] or 0, found["until"])


def holder_owners(gpu_class: GpuClass) -> list[User]:
    """Returns the owners of teams that have units of the class now or later. One query."""
    holders = _not_over(gpu_class).values("tenant")
    found = User.objects.filter(
        memberships__role=Membership.Role.OWNER, memberships__tenant__in=holders, is_active=True
    )
    return list(found.distinct().order_by("pk"))


def _not_over(gpu_class: GpuClass) -> QuerySet[Grant]:
    return Grant.objects.filter(gpu_class=gpu_class, period__endswith__gt=Now())
