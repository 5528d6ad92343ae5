"""What goes with a team that is closed, and what its namespace is on its way to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenants.goes import Inside
from tenants.models import Namespace, QuotaLine
from tenants.queries import last_days
from tenants.queries.last_days import GrantRow


@dataclass(frozen=True)
class Pending:
    """A line that waits: it can only be denied or withdrawn once the team is closed."""

    request: int
    name: str
    kind: str
    units: int


@dataclass(frozen=True)
class Freed:
    """Units of a class that are promised to the team now and free for others after."""

    name: str
    units: int


@dataclass(frozen=True)
class Goes:
    inside: Inside
    queue: str
    grants: tuple[GrantRow, ...]
    freed: tuple[Freed, ...]
    pending: tuple[Pending, ...]


def goes(namespace: Namespace, inside: Inside, *, at: datetime) -> Goes:
    """Six queries. `queue`: the name of its ClusterQueue, "" without Kueue."""
    grants = tuple(row for row in last_days.grant_rows(namespace.tenant, at=at) if row.state != "grace")
    freed: dict[str, int] = {}
    for row in grants:
        if row.state == "now":
            freed[row.name] = freed.get(row.name, 0) + row.units
    lines = QuotaLine.objects.filter(tenant_id=namespace.tenant_id, state=QuotaLine.State.PENDING).order_by("pk")
    return Goes(
        inside=inside,
        queue=namespace.name if namespace.cluster.queue_system == "kueue" else "",
        grants=grants,
        freed=tuple(Freed(name, units) for name, units in sorted(freed.items())),
        pending=tuple(
            Pending(line.request_id, line.gpu_class.name, line.kind, line.asked_units)
            for line in lines.select_related("gpu_class")
        ),
    )
