"""What a team asked for before, and what it was given."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from catalog import queries as catalog
from catalog.models import GpuClass
from tenants.models import QuotaLine, QuotaRequest
from tenants.queries.requests import decider

LIMIT = 10


@dataclass(frozen=True)
class Ask:
    """A line that is not pending any more. `units`: granted, None unless it was approved."""

    request_id: int
    name: str
    unit: str
    kind: str
    asked: int
    units: int | None
    state: str
    at: datetime | None
    by: str
    reason: str


def classes_of(request: QuotaRequest) -> list[GpuClass]:
    """That its lines are about, whatever became of them. One query."""
    return list(GpuClass.objects.filter(lines__request=request).distinct().order_by("pk"))


def asked_before(tenant_id: int, class_ids: Collection[int], *, request_id: int | None = None) -> list[Ask]:
    """The last ten lines about these classes, newest first, but for those of this request. One query."""
    lines = QuotaLine.objects.filter(tenant_id=tenant_id, gpu_class__in=class_ids)
    lines = lines.exclude(state=QuotaLine.State.PENDING).exclude(request_id=request_id)
    return [
        Ask(
            request_id=line.request_id,
            name=line.gpu_class.name,
            unit=catalog.unit_of(line.gpu_class),
            kind=line.kind,
            asked=line.asked_units,
            units=line.decided_units,
            state=line.state,
            at=line.decided_at,
            by=decider(line),
            reason=line.reason,
        )
        for line in lines.select_related("gpu_class", "decided_by").order_by("-decided_at", "-pk")[:LIMIT]
    ]
