"""Namespaces that stay in Terminating, and what blocks them according to the mirror."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cluster.models import Cluster, MirrorJob, MirrorObject, MirrorPod, MirrorWorkload
from cluster.reads import queries as mirror
from cluster.reads.namespace_deletion import DeletionBlocker, deletion_blockers
from cluster.reads.observed import conditions
from tenants.models import Namespace

OBJECTS_NAMED_MAX = 5


@dataclass(frozen=True)
class TerminatingNamespace:
    """`since`: when it was deleted; `objects`: names of the remaining objects, of the kinds that the portal watches."""

    name: str
    tenant: str
    since: datetime
    blockers: tuple[DeletionBlocker, ...]
    objects: tuple[str, ...]


def terminating_of(row: Namespace) -> TerminatingNamespace | None:
    """None if it is not being deleted, or this is unknown. One query, five if it is."""
    found = mirror.object_named(row.cluster_id, "Namespace", row.name)
    if found is None or found.deleting_since is None:
        return None
    held = deletion_blockers(row.name, conditions(found.record))
    return TerminatingNamespace(row.name, row.tenant.slug, found.deleting_since, tuple(held), tuple(_named(row)))


def terminating_namespaces(cluster: Cluster) -> list[TerminatingNamespace]:
    """Of teams, by name. One query, six more for each that is being deleted."""
    going = MirrorObject.objects.filter(cluster_id=cluster.pk, kind="Namespace", deleting_since__isnull=False)
    rows = Namespace.objects.filter(cluster=cluster, name__in=going.values("name")).select_related("tenant")
    return [stuck for row in rows.order_by("name") if (stuck := terminating_of(row)) is not None]


def _named(row: Namespace) -> Iterable[str]:
    of_row = {"cluster_id": row.cluster_id, "namespace": row.name}
    found: list[str] = []
    for kind, model in (("Pod", MirrorPod), ("Job", MirrorJob), ("Workload", MirrorWorkload)):
        names = model.objects.filter(**of_row).order_by("name").values_list("name", flat=True)
        found += [f"{kind} {name}" for name in names[:OBJECTS_NAMED_MAX]]
    others = MirrorObject.objects.filter(**of_row).order_by("kind", "name").values_list("kind", "name")
    return [*found, *(f"{kind} {name}" for kind, name in others[:OBJECTS_NAMED_MAX])][:OBJECTS_NAMED_MAX]
