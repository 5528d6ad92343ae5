"""What a decision is based on: the figures of a class, and the team's earlier requests."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from catalog.classes import queries as class_queries
from catalog.classes.capacity import queries as capacity_queries
from catalog.classes.capacity import types as capacity_types
from catalog.models import GpuClass
from tenants.core.queries import database_now
from tenants.grants.overcommit.queries import PromisedUnits, promised_of
from tenants.grants.queries import promised_units
from tenants.models import Namespace, QuotaLine, Tenant
from tenants.requests.queries import decider_name

PAST_LINES_MAX = 10


@dataclass(frozen=True)
class ClassFigures:
    """One class for one team, as an approver sees it. None: the mirror has no current data.

    `base`: of the units `held`, those of the total, without temporary increases. `limit`: units that may be allocated
    at one time (the limit set by staff, else allocatable). `promised`: allocated now to all teams. `used`: by the team;
    `in_use`: by all teams, now.
    """

    held: int
    base: int
    used: int | None
    allocatable: int | None
    in_use: int | None
    free: int | None
    promised: int
    limit: int | None
    as_of: datetime | None


def class_figures(
    tenant: Tenant,
    classes: Collection[GpuClass],
    *,
    at: datetime,
    target: Namespace | None = None,
    promised: PromisedUnits | None = None,
) -> dict[int, ClassFigures]:
    """Returns figures by class id. About ten queries, whatever the number of classes; fewer if the caller passes the
    team's `target` with its cluster, and the units `promised` of these classes at that instant.
    """
    if not classes:
        return {}
    target = target or tenant.namespaces.select_related("cluster").get()
    capacities = capacity_queries.capacities(target.cluster, classes)
    used = capacity_queries.units_used(target.cluster, classes, namespace=target.name)
    promised = promised or promised_of(tenant.pk, [one.pk for one in classes], at=at)
    return {
        gpu_class.pk: ClassFigures(
            held=promised.held(gpu_class.pk),
            base=promised.base(gpu_class.pk),
            used=used.get(gpu_class.pk),
            allocatable=(capacity := capacities[gpu_class.pk]).allocatable,
            in_use=capacity.used,
            free=capacity.free,
            promised=promised.steps[gpu_class.pk][0].units,
            limit=capacity.limit(gpu_class),
            as_of=capacity.as_of,
        )
        for gpu_class in classes
    }


def pool_sentences(class_ids: Collection[int]) -> dict[int, str]:
    """What is allocated of each class to all tenants together, as a sentence. About ten queries."""
    classes = list(GpuClass.objects.filter(pk__in=class_ids).select_related("cluster"))
    if not classes:
        return {}
    capacities = capacity_queries.capacities(classes[0].cluster, classes)
    promised = promised_units(classes[0].cluster, database_now())
    return {one.pk: pool_sentence(one, capacities[one.pk], promised.get(one.pk, 0)) for one in classes}


def pool_sentence(gpu_class: GpuClass, capacity: capacity_types.Capacity, promised: int) -> str:
    limit = capacity.limit(gpu_class)
    if gpu_class.is_storage:
        return f"{promised} of {'unknown' if limit is None else limit} GiB allocated to teams"
    free = "free: unknown" if capacity.free is None else f"{capacity.free} free now"
    return f"{promised} of {'unknown' if limit is None else limit} allocated to teams; {free}"


@dataclass(frozen=True)
class PastLine:
    """A line that is no longer pending. `units`: granted, None unless it was approved."""

    request_id: int
    slug: str
    name: str
    unit: str
    kind: str
    asked: int
    units: int | None
    state: str
    at: datetime | None
    by: str
    reason: str


def past_lines(tenant_id: int, class_ids: Collection[int], *, request_id: int | None = None) -> list[PastLine]:
    """Returns the last ten lines about these classes, newest first, without those of this request. One query."""
    lines = QuotaLine.objects.filter(tenant_id=tenant_id, gpu_class__in=class_ids)
    lines = lines.exclude(state=QuotaLine.State.PENDING).exclude(request_id=request_id)
    return [
        PastLine(
            request_id=line.request_id,
            slug=line.gpu_class.slug,
            name=line.gpu_class.name,
            unit=class_queries.unit_of(line.gpu_class),
            kind=line.kind,
            asked=line.asked_units,
            units=line.decided_units,
            state=line.state,
            at=line.decided_at,
            by=decider_name(line),
            reason=line.reason,
        )
        for line in lines.select_related("gpu_class", "decided_by").order_by("-decided_at", "-pk")[:PAST_LINES_MAX]
    ]
