"""Reads about taking units back: what is granted when, and what is proposed or was cut."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from catalog import queries as catalog
from catalog.models import GpuClass
from tenants.line_policy import Held
from tenants.models import Grant, QuotaLine, Tenant
from tenants.policy import Taken


def held_then(tenant: Tenant, lines: Collection[Taken]) -> dict[str, Held]:
    """By slug, for classes of the tenant's cluster, those that it may use no more included: what was granted stays.
    Two queries, and one a line.
    """
    starts = {line.gpu_class: line.starts for line in lines}
    classes = GpuClass.objects.filter(cluster__namespaces__tenant=tenant, slug__in=starts).distinct()
    pending = QuotaLine.objects.filter(tenant=tenant, state=QuotaLine.State.PENDING)
    waiting = set(pending.values_list("gpu_class_id", flat=True))
    found = {}
    for one in classes:
        grant = base_at(tenant.pk, one.pk, starts[one.slug])
        found[one.slug] = Held(
            pk=one.pk,
            slug=one.slug,
            name=one.name,
            team=tenant.name,
            units=grant.units if grant else 0,
            ends=grant.period.upper if grant else starts[one.slug],
            is_pending=one.pk in waiting,
            unit=catalog.counted_in(one),
        )
    return found


@dataclass(frozen=True)
class Taking:
    """Units of a grant that may be taken back, or were: what is left of it from `starts` on. `until`: its old end."""

    request: int
    is_pending: bool
    units: int
    starts: datetime
    until: datetime


def takings(tenant: Tenant, *, at: datetime) -> dict[int, list[Taking]]:
    """By class id, what is pending and what was decided of grants that would not be over. One query."""
    rows = QuotaLine.objects.filter(tenant=tenant, kind=QuotaLine.Kind.RECLAIM, asked_until__gt=at)
    found: dict[int, list[Taking]] = {}
    for row in rows.filter(state__in=[QuotaLine.State.PENDING, QuotaLine.State.APPROVED]).order_by("pk"):
        units = row.asked_units if row.decided_units is None else row.decided_units
        starts = row.decided_from or row.asked_from
        taking = Taking(row.request_id, row.state == QuotaLine.State.PENDING, units, starts, row.asked_until)
        found.setdefault(row.gpu_class_id, []).append(taking)
    return found


def base_at(tenant_id: int, class_id: int, at: datetime) -> Grant | None:
    """The total that is granted at that instant. One query."""
    rows = Grant.objects.filter(tenant_id=tenant_id, gpu_class_id=class_id, kind=Grant.Kind.BASE)
    return rows.filter(period__contains=at).first()
