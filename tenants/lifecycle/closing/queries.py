"""What closing a team deletes, and which step of closing its namespace has reached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenants.grants.timeline import queries as timeline_queries
from tenants.grants.timeline.types import GrantRow
from tenants.lifecycle.contents import NamespaceContents
from tenants.models import Namespace, QuotaLine


@dataclass(frozen=True)
class PendingLine:
    """A pending line: once the team is closed, it can only be denied or withdrawn."""

    request: int
    name: str
    kind: str
    units: int


@dataclass(frozen=True)
class FreedUnits:
    """Units of a class that are allocated to the team now and that closing makes available to others."""

    name: str
    units: int


@dataclass(frozen=True)
class ClosingPreview:
    inside: NamespaceContents
    queue: str
    grants: tuple[GrantRow, ...]
    freed: tuple[FreedUnits, ...]
    pending: tuple[PendingLine, ...]


def closing_preview(namespace: Namespace, inside: NamespaceContents, *, at: datetime) -> ClosingPreview:
    """Six queries. `queue`: the name of its ClusterQueue, "" without Kueue."""
    grants = tuple(row for row in timeline_queries.grant_rows(namespace.tenant, at=at) if row.state != "grace")
    freed: dict[str, int] = {}
    for row in grants:
        if row.state == "now":
            freed[row.name] = freed.get(row.name, 0) + row.units
    lines = QuotaLine.objects.filter(tenant_id=namespace.tenant_id, state=QuotaLine.State.PENDING).order_by("pk")
    return ClosingPreview(
        inside=inside,
        queue=namespace.name if namespace.cluster.queue_system == "kueue" else "",
        grants=grants,
        freed=tuple(FreedUnits(name, units) for name, units in sorted(freed.items())),
        pending=tuple(
            PendingLine(line.request_id, line.gpu_class.name, line.kind, line.asked_units)
            for line in lines.select_related("gpu_class")
        ),
    )
