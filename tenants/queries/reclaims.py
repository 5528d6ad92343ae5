"""Reads about taking units back: what is granted when, and what is proposed or was cut."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

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
        )
    return found


def base_at(tenant_id: int, class_id: int, at: datetime) -> Grant | None:
    """The total that is granted at that instant. One query."""
    rows = Grant.objects.filter(tenant_id=tenant_id, gpu_class_id=class_id, kind=Grant.Kind.BASE)
    return rows.filter(period__contains=at).first()
