"""The totals that are granted when the reductions that staff propose start."""

from __future__ import annotations

from collections.abc import Collection

from catalog.classes import queries as catalog
from catalog.models import GpuClass
from tenants.grants.queries import base_grant_at
from tenants.models import QuotaLine, Tenant
from tenants.requests.reclaims.policy import ReclaimableTotal
from tenants.requests.types import ReclaimLine


def reclaimable_totals(tenant: Tenant, lines: Collection[ReclaimLine]) -> dict[str, ReclaimableTotal]:
    """By slug, for classes of the team's cluster, including classes that it may no longer use: granted units stay. Two
    queries, and one per line.
    """
    starts = {line.gpu_class: line.starts for line in lines}
    classes = GpuClass.objects.filter(cluster__namespaces__tenant=tenant, slug__in=starts).distinct()
    pending = QuotaLine.objects.filter(tenant=tenant, state=QuotaLine.State.PENDING)
    waiting = set(pending.values_list("gpu_class_id", flat=True))
    found = {}
    for one in classes:
        grant = base_grant_at(tenant.pk, one.pk, starts[one.slug])
        found[one.slug] = ReclaimableTotal(
            pk=one.pk,
            slug=one.slug,
            name=one.name,
            team=tenant.name,
            units=grant.units if grant else 0,
            ends=grant.period.upper if grant else starts[one.slug],
            is_pending=one.pk in waiting,
            unit=catalog.counted_in(one),
            is_storage=one.is_storage,
        )
    return found
