"""What grants come to at an instant, their grace included."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import DateTimeField, ExpressionWrapper, F, Q, QuerySet
from django.db.models.functions import Upper

from catalog.models import GpuClass
from catalog.queries.capacity import used_by_namespace
from cluster import queries as mirror
from cluster.models import Cluster
from portal.sql import select
from tenants import promises
from tenants.models import Grant, Namespace
from tenants.promises import Promise

# When nothing is left of a grant: its end and its grace.
OVER_AT = ExpressionWrapper(Upper("period") + F("grace"), output_field=DateTimeField())

# Whoever has no grace hears of the end all the same, also after a night without a worker.
HEARD_OF = timedelta(days=1)


@dataclass(frozen=True)
class Held:
    """Units by class id at an instant. `keepable`: as many may go on running (see promises.keepable)."""

    in_force: dict[int, int]
    keepable: dict[int, int]
    running: tuple[Grant, ...]
    # Grants whose end has come, for as long as their grace lasts and a day at least.
    ended: tuple[Grant, ...]
    to_come: tuple[Grant, ...]

    @property
    def bases(self) -> tuple[Grant, ...]:
        return tuple(one for one in self.running if one.kind == Grant.Kind.BASE)

    def grace_until(self, class_id: int) -> datetime | None:
        """When the last grace of the class is over, of those that have begun; None where none was given."""
        ends = (one.period.upper + one.grace for one in self.ended if one.gpu_class_id == class_id)
        return max(ends, default=None)


def held(tenant_id: int, at: datetime) -> Held:
    """One query, as text: every rendering asks it."""
    left = select(
        Grant,
        "tenant_id = %s AND (upper(period) + grace > %s OR upper(period) > %s) ORDER BY id",
        [tenant_id, at, at - HEARD_OF],
    )
    rows = [one for one in left if one.period.lower <= at]
    by_class = {pk: own for (_, pk), own in _by_holder(rows).items()}
    return Held(
        in_force={pk: units for pk, own in by_class.items() if (units := promises.in_force(own, at))},
        keepable={pk: promises.keepable(own, at) for pk, own in by_class.items()},
        running=tuple(one for one in rows if at < one.period.upper),
        ended=tuple(one for one in rows if one.period.upper <= at),
        to_come=tuple(one for one in left if at < one.period.lower),
    )


@dataclass(frozen=True)
class Own:
    """Units of one team and class at an instant; `keepable`: as many may go on running (see promises.keepable)."""

    in_force: int
    keepable: int


def own_units(
    class_ids: Collection[int], at: datetime, *, tenant_ids: Collection[int] | None = None
) -> dict[int, dict[int, Own]]:
    """Class id → tenant id → its units, of all tenants or of these. One query."""
    found: dict[int, dict[int, Own]] = {}
    rows = _alive(at).filter(gpu_class__in=class_ids)
    if tenant_ids is not None:
        rows = rows.filter(tenant__in=tenant_ids)
    for (tenant_id, pk), own in _by_holder(rows).items():
        found.setdefault(pk, {})[tenant_id] = Own(promises.in_force(own, at), promises.keepable(own, at))
    return found


def taken_units(cluster: Cluster, at: datetime) -> dict[int, int]:
    """Units by class id that cannot be lent: in force, and what runs on in a grace. One query, four with a grace."""
    by_holder = _by_holder(_alive(at).filter(gpu_class__cluster=cluster))
    taken: dict[int, int] = {}
    beyond: dict[tuple[int, int], tuple[int, int]] = {}
    for (tenant_id, pk), own in by_holder.items():
        units, keepable = promises.in_force(own, at), promises.keepable(own, at)
        taken[pk] = taken.get(pk, 0) + units
        if keepable > units:
            beyond[tenant_id, pk] = (units, keepable)
    used = _used(cluster, {pk for _, pk in beyond}) if beyond else None
    for (tenant_id, pk), (units, keepable) in beyond.items():
        runs = keepable if used is None else used.get((tenant_id, pk), 0)
        taken[pk] += max(0, min(runs, keepable) - units)
    return taken


def _used(cluster: Cluster, class_ids: Collection[int]) -> dict[tuple[int, int], int] | None:
    """(tenant, class) → units that run; None when the mirror does not know."""
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
    """In force, or over and in their grace."""
    rows = Grant.objects.alias(over_at=OVER_AT).filter(period__startswith__lte=at)
    return rows.filter(Q(over_at__gt=at) | Q(period__endswith__gt=at))


def _by_holder(rows: Iterable[Grant]) -> dict[tuple[int, int], list[Promise]]:
    """(tenant, class) → its grants."""
    found: dict[tuple[int, int], list[Promise]] = {}
    for grant in rows:
        one = Promise(grant.units, grant.period.lower, grant.period.upper, grant.grace)
        found.setdefault((grant.tenant_id, grant.gpu_class_id), []).append(one)
    return found
