"""What a namespace should be made of, against what was sent for it."""

from __future__ import annotations

from collections.abc import Collection

from cluster.apply import Key, key_of
from cluster.manifests import namespace as manifests
from cluster.models import AppliedObject, Cluster
from cluster.specs import NamespaceSpec, QuotaSpec
from portal.due import owner_label
from tenants.models import Namespace


def unsent(row: Namespace, sent: Collection[AppliedObject]) -> list[Key]:
    """(kind, namespace, name) of what it always has and has no record of; [] for one that nobody has looked at yet, or
    that is being closed. No query.
    """
    if not sent or row.wanted == Namespace.Wanted.CLOSED:
        return []
    known = {(one.kind, one.namespace, one.name) for one in sent}
    return [key for key in map(key_of, manifests.objects(_bare(row))) if key not in known]


def _bare(row: Namespace) -> NamespaceSpec:
    """Without numbers: they change what is in the objects, not which there are."""
    has_queue = row.cluster.queue_system == Cluster.QueueSystem.KUEUE
    return NamespaceSpec(
        name=row.name,
        owner=owner_label(row),
        group="",
        cohort="",
        quota=QuotaSpec(devices={}, cpu=0, memory_gib=0),
        cells=() if has_queue else None,
        is_held=True,
    )
